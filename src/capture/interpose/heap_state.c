/* heap_state.c: the functions behind ours, the file of this process, threads' cells. */
#include <dlfcn.h>
#include <link.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/interpose/heap.h"
#include "trace/module_rows.h"

enum { OPEN = 1, FAILED = 2 };

struct heap_functions heap_real = { .malloc = heap_malloc_first };
bool heap_sizes_in_front;
uint32_t heap_way;
struct heap *heap;
static struct heap_cell no_cell; /* never written */
THREAD_LOCAL struct heap_mine heap_mine = { .cell = &no_cell };

static uint64_t allocator_flags; /* enum heap_flags */
static char allocator_path[256];

/* ---- Before there is a malloc ----------------------------------------------------- */

char heap_early_memory[HEAP_EARLY] __attribute__((aligned(64)));

void *heap_early(size_t size, size_t alignment)
{
    static size_t used;
    if (alignment < 16)
        alignment = 16;
    if (size > HEAP_EARLY || alignment > 4096)
        return NULL;
    const size_t need = size + 2 * alignment;
    const size_t at = __atomic_fetch_add(&used, need, __ATOMIC_RELAXED);
    if (at + need > HEAP_EARLY)
        return NULL;
    uintptr_t p = (uintptr_t)heap_early_memory + at + 2 * alignment - 1;
    p &= ~(uintptr_t)(alignment - 1);
    ((size_t *)p)[-1] = 2;
    return (void *)p;
}

/* ---- The functions behind ours ---------------------------------------------------- */

static size_t usable_unknown(void *p)
{
    (void)p;
    return 0;
}

/* The file a function is in, or "". */
static const char *file_of(const void *function)
{
    Dl_info info;
    return function && dladdr(function, &info) && info.dli_fname ? info.dli_fname : "";
}

/* malloc of one library and malloc_usable_size of another must not meet. */
static void check_usable(struct heap_functions *f)
{
    const char *path = file_of((void *)f->malloc);
    strncpy(allocator_path, path, sizeof allocator_path - 1);
    if (f->usable && strcmp(path, file_of((void *)f->usable)) == 0)
        return;
    f->usable = usable_unknown;
    allocator_flags |= HEAP_NO_USABLE;
}

/* Small blocks only: they come from and go to a cache, and leave the program's heap as it
 * was. A freed mapping would even change how glibc treats the next ones. */
static bool test_sizes(const struct heap_functions *f)
{
    static const size_t sizes[] = { 1, 24, 25, 100, 500, 1000 };
    bool same = strstr(allocator_path, "libc.so") != NULL;
    for (size_t i = 0; same && i < sizeof sizes / sizeof *sizes; i++) {
        void *p = f->malloc(sizes[i]);
        same = p && heap_usable_in_front(p) == f->usable(p);
        f->free(p);
    }
    return same;
}

/* An executable at a fixed address that takes malloc's address has a stub for it, which
 * then is `malloc` to everybody, and calls ours. Debian's Python is one. */
static bool is_stub(const void *function)
{
#ifdef __GLIBC__
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    return function && dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) &&
           symbol && symbol->st_shndx == SHN_UNDEF;
#else
    (void)function;
    return false;
#endif
}

/* Who else has a malloc or an operator new that does not come by ours? */
static void check_others(const struct heap_functions *f)
{
    /* Compared by file: in here too `malloc` is whichever comes first. */
    const void *first = dlsym(RTLD_DEFAULT, "malloc");
    if (!is_stub(first) && strcmp(file_of(first), file_of((void *)heap_resolve)) != 0)
        allocator_flags |= HEAP_OWN_MALLOC;
    const void *operator_new = dlsym(RTLD_DEFAULT, "_Znwm");
    const char *where = file_of((void *)f->malloc);
    if (operator_new && !strstr(where, "libc.so") &&
        strcmp(file_of(operator_new), where) == 0)
        allocator_flags |= HEAP_OWN_NEW;
}

/* malloc last: it is what others look at. Racing threads write the same. */
static void publish(const struct heap_functions *f)
{
    struct heap_functions rest = *f;
    rest.malloc = heap_real.malloc;
    heap_real = rest;
    if (f->malloc)
        __atomic_store_n(&heap_real.malloc, f->malloc, __ATOMIC_RELEASE);
}

bool heap_resolve(void)
{
    if (inside_resolving)
        return false;
    struct heap_functions f = { 0 };
    f.malloc = (void *(*)(size_t))inside_real("malloc");
    f.calloc = (void *(*)(size_t, size_t))inside_real("calloc");
    f.realloc = (void *(*)(void *, size_t))inside_real("realloc");
    f.free = (void (*)(void *))inside_real("free");
    f.memalign = (void *(*)(size_t, size_t))inside_real("memalign");
    f.posix_memalign = (int (*)(void **, size_t, size_t))inside_real("posix_memalign");
    f.aligned_alloc = (void *(*)(size_t, size_t))inside_real("aligned_alloc");
    f.valloc = (void *(*)(size_t))inside_real("valloc");
    f.pvalloc = (void *(*)(size_t))inside_real("pvalloc");
    f.usable = (size_t(*)(void *))inside_real("malloc_usable_size");
    if (!inside_sanitizer()) {
        inside_resolving = 1;
        check_usable(&f);
        check_others(&f);
        heap_sizes_in_front = sizeof(size_t) == 8 && test_sizes(&f);
        inside_resolving = 0;
    }
    publish(&f);
    return f.malloc && f.free;
}

/* ---- The file --------------------------------------------------------------------- */

static const struct tables_spec specs[] = {
    { "process", sizeof(struct heap_process_row), 1 },
    { "threads", sizeof(struct heap_thread_row), INSIDE_THREADS + 1 },
    { "counters", sizeof(struct heap_counter_row), HEAP_MAX_COUNTERS },
    { "sites", sizeof(struct heap_site_row), HEAP_MAX_SITES },
    { "live", sizeof(struct heap_live_row), HEAP_MAX_LIVE },
    { MODULES_TABLE, sizeof(struct module_row), HEAP_MAX_MODULES },
    { "snapshots", sizeof(struct heap_snapshot_row), 4096 },
    { "snapsites", sizeof(struct heap_snapsite_row), 1 << 18 },
    { "events", sizeof(struct heap_event_row),
      1 << 20 }, /* HEAP_EVENT_BLOCKS of them */
    { FRAMES_TABLE, sizeof(struct frame_row), HEAP_MAX_FRAMES },
};

/* What a fork leaves of the parent's file: its mapping and descriptor. */
static struct {
    struct tables tables;
    struct heap_process_row *process;
    uint32_t pid;
} previous;

int64_t heap_untold(const struct tables *t)
{
    int64_t sum = 0;
    const uint64_t rows = tables_head(t)->table[HEAP_COUNTERS].count;
    for (uint64_t i = 0; i < rows; i++) {
        const struct heap_counter_row *row = tables_row(t, HEAP_COUNTERS, (uint32_t)i);
        sum += row ? __atomic_load_n(&row->untold, __ATOMIC_RELAXED) : 0;
    }
    return sum;
}

/* Live bytes at the fork, nearly: the parent may have gone on. */
static uint64_t leave_parent(void)
{
    if (!previous.tables.base)
        return 0;
    const int64_t live = __atomic_load_n(&previous.process->live, __ATOMIC_RELAXED) +
                         heap_untold(&previous.tables);
    tables_close(&previous.tables);
    previous.process = NULL;
    return live > 0 ? (uint64_t)live : 0;
}

static uint32_t text(const char *s)
{
    return tables_text(&heap->tables, s, strlen(s));
}

static struct heap_process_row *new_process_row(uint64_t inherited)
{
    uint32_t index;
    struct heap_process_row *p = tables_append(&heap->tables, HEAP_PROCESS, &index);
    if (!p)
        return NULL;
    p->flags = allocator_flags | (inherited ? HEAP_FORKED : 0) |
               (heap->events ? HEAP_EVENTS | HEAP_EVENT_ZONES : 0) |
               (heap->events == 2 ? HEAP_EVENT_STACKS : 0) |
               (heap_way == HEAP_COUNTS ? HEAP_COUNTS_ONLY : 0);
    p->allocator = text(allocator_path);
    p->start_ticks = ticks_now();
    p->inherited = p->peak = inherited;
    p->live = (int64_t)inherited;
    return p;
}

/* SONDE_ALLOC_EXACT_S: seconds, or "inf". */
static uint64_t exact_ms(void)
{
    enum { USUAL_MS = 10000, MOST_S = 1 << 30 };
    const char *text = secure_getenv("SONDE_ALLOC_EXACT_S");
    if (!text || !*text)
        return USUAL_MS;
    uint64_t seconds = 0;
    for (; *text >= '0' && *text <= '9' && seconds < MOST_S; text++)
        seconds = 10 * seconds + (uint64_t)(*text - '0');
    return *text ? UINT64_MAX : 1000 * seconds;
}

static bool open_file(void)
{
    const uint64_t inherited = leave_parent();
    if (tables_create(inside_dir(), HEAP_KIND, inside_control(), specs,
                      sizeof specs / sizeof *specs, &heap->tables) < 0) {
        /* Fail open, not silently. */
        __atomic_fetch_add(&inside_control()->capture_refused, 1, __ATOMIC_RELAXED);
        return false;
    }
    heap->events = inside_traces("alloc") ? inside_traces("stacks") ? 2 : 1 : 0;
    heap->counts_ticks = ticks_source() != TICKS_CLOCK_NS;
    heap->began_ms = inside_now_ms();
    heap->exact_ms = exact_ms();
    heap_way = heap->events              ? HEAP_IN_DETAIL
               : inside_traces("counts") ? HEAP_COUNTS
               : heap_sizes_in_front     ? HEAP_USUAL
                                         : HEAP_IN_DETAIL;
    heap->modules.tables = &heap->tables;
    heap->modules.table = HEAP_MODULES;
    heap->process = new_process_row(inherited);
    if (!heap->process)
        return false;
    __atomic_store_n(&heap->process->state, HEAP_CAPTURED, __ATOMIC_RELEASE);
    previous.tables = heap->tables;
    previous.process = heap->process;
    return true;
}

static bool make_memory(void)
{
    static uint32_t once;
    if (__atomic_load_n(&heap, __ATOMIC_ACQUIRE))
        return true;
    if (__atomic_exchange_n(&once, 1, __ATOMIC_ACQUIRE))
        return false; /* another thread is at it: this one counts from its next call */
    struct heap *h = inside_wiped(sizeof *h);
    __atomic_store_n(&heap, h, __ATOMIC_RELEASE);
    return h != NULL;
}

static bool left_alone; /* also in children */

/* Whether there is a file; made at the first call in a process. */
static bool ensure_file(void)
{
    if (left_alone || (!heap && inside_sealed) || !make_memory())
        return false;
    const uint32_t state = __atomic_load_n(&heap->state, __ATOMIC_ACQUIRE);
    if (state)
        return state == OPEN;
    if (!inside_lock(&heap->open_lock))
        return false;
    if (!heap->state)
        __atomic_store_n(&heap->state, !inside_sealed && open_file() ? OPEN : FAILED,
                         __ATOMIC_RELEASE);
    inside_unlock(&heap->open_lock);
    return heap->state == OPEN;
}

void heap_stays_out(const char *why)
{
    left_alone = true;
    heap = inside_wiped(sizeof *heap);
    if (!heap || tables_create(inside_dir(), HEAP_KIND, inside_control(), specs,
                               sizeof specs / sizeof *specs, &heap->tables) < 0)
        return;
    heap->process = new_process_row(0);
    if (heap->process) {
        heap->process->why = text(why);
        __atomic_store_n(&heap->process->state, HEAP_STAYED_OUT, __ATOMIC_RELEASE);
    }
    tables_close(&heap->tables);
}

/* In the child: its cell has been wiped, its thread variables have not. */
static void forked(void)
{
    heap_mine.gear = HEAP_EVERY;
}

/* A program with its own malloc never comes by ours, but for the odd function it does
 * not have: half of the numbers would be worse than none. */
void heap_start(void)
{
    if (heap_real.malloc == heap_malloc_first)
        (void)heap_resolve();
    if ((allocator_flags & HEAP_OWN_MALLOC) && !heap)
        heap_stays_out(
            "it has a malloc of its own, which nothing can stand in front of");
    else
        heap_keeps();
    (void)pthread_atfork(NULL, NULL, forked);
}

/* The file grows no more: it would take system calls. */
void heap_sealed(void)
{
    if (heap && heap->tables.base)
        heap->tables.cap_blocks = tables_head(&heap->tables)->block_count;
}

/* ---- Rows of counters ------------------------------------------------------------- */

/* Under the lock. */
static struct heap_counter_row *find_row(uint64_t key)
{
    const uint32_t mask = 2 * HEAP_MAX_COUNTERS - 1;
    uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15ULL >> 40) & mask;
    for (; heap->counter_hash[at]; at = (at + 1) & mask) {
        struct heap_counter_row *row = tables_row(&heap->tables, HEAP_COUNTERS,
                                                  heap->counter_hash[at] - 1);
        if (row->key == key)
            return row;
    }
    uint32_t index;
    struct heap_counter_row *row = tables_append(&heap->tables, HEAP_COUNTERS, &index);
    if (row) {
        heap->counter_hash[at] = index + 1;
        __atomic_store_n(&row->key, key, __ATOMIC_RELEASE);
    }
    return row;
}

static struct heap_counter_row *locked_row(uint32_t thread, uint32_t zone)
{
    if (!inside_lock(&heap->lock))
        return NULL;
    struct heap_counter_row *row = find_row(heap_counter_key(thread, zone));
    inside_unlock(&heap->lock);
    return row;
}

void heap_stand(struct heap_cell *c, uint64_t here)
{
    c->usual = heap_way == HEAP_USUAL && heap_mine.gear == HEAP_EVERY ? here : 0;
    c->counts = heap_way == HEAP_COUNTS ? here : 0;
}

/* By addition: a handler that allocates meanwhile changes one of them or the other. */
static void move_untold(struct heap_counter_row *from, struct heap_counter_row *to)
{
    const int64_t untold = from->untold;
    from->untold -= untold;
    to->untold += untold;
}

/* A zone there is no room for counts in the thread's first row, made for no zone. */
struct heap_counter_row *heap_zone_row(struct heap_cell *c, uint32_t zone,
                                       uint64_t here)
{
    const uint32_t at = zone % HEAP_ZONE_CACHE;
    struct heap_counter_row *row = c->cache[at].row;
    if (!row || c->cache[at].zone != zone) {
        const int error = errno;
        row = locked_row(c->number, zone);
        errno = error;
        if (!row)
            return c->row;
        c->cache[at].row = NULL; /* a handler must not meet a wrong pair */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        c->cache[at].zone = zone;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        c->cache[at].row = row;
    }
    c->usual = c->counts = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (row != c->row)
        move_untold(c->row, row);
    c->row = row;
    c->zone = zone;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    heap_stand(c, here);
    return row;
}

/* ---- Cells ------------------------------------------------------------------------ */

static struct heap_thread_row *thread_row(uint32_t number)
{
    struct heap_thread_row *row;
    uint32_t index;
    while (!(row = tables_row(&heap->tables, HEAP_THREADS, number)) ||
           tables_head(&heap->tables)->table[HEAP_THREADS].count <= number)
        if (!tables_append(&heap->tables, HEAP_THREADS, &index))
            return NULL;
    __atomic_store_n(&row->number, number + 1, __ATOMIC_RELEASE);
    return row;
}

/* A number may come back with another thread: its rows go on counting. */
static bool fill_cell(struct heap_cell *c, uint32_t number)
{
    struct heap_thread_row *thread = thread_row(number);
    struct heap_counter_row *row = thread ? find_row(heap_counter_key(number, 0))
                                          : NULL;
    if (!row)
        return false;
    if (!inside_sealed)
        thread->tid = (uint64_t)syscall(SYS_gettid);
    c->enough = HEAP_UNTOLD;
    for (size_t i = 0; i < sizeof c->small_at; i++)
        c->small_at[i] = (uint8_t)(heap_class(16 * i) * sizeof(struct heap_count));
    c->number = number;
    c->zone = 0;
    c->cache[0].zone = 0;
    c->cache[0].row = row;
    if (!c->random)
        c->random = ticks_now() ^ (uintptr_t)c * 0x9E3779B97F4A7C15ULL;
    if (!c->mean)
        heap_draw(c);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    c->row = row;
    return true;
}

/* The calling thread goes on with this cell, in which everything has been told. */
static void make_mine(struct heap_cell *c)
{
    heap_mine.gear = HEAP_EVERY;
    heap_mine.any = heap->any;
    heap_restart(c);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    heap_mine.cell = c;
}

static struct heap_cell *join(void)
{
    if (!inside_ready() || !ensure_file())
        return NULL;
    const uint32_t number = inside_thread();
    struct heap_cell *c = &heap->cells[number];
    const bool empty = !c->row;
    if (empty) {
        if (!inside_lock(&heap->lock))
            return NULL;
        const bool filled = c->row || fill_cell(c, number);
        inside_unlock(&heap->lock);
        if (!filled)
            return NULL;
    }
    if (number < INSIDE_THREADS && (empty || heap_mine.cell != c))
        make_mine(c);
    return c;
}

struct heap_cell *heap_join(void)
{
    if (inside_busy || inside_resolving)
        return NULL;
    const int error = errno;
    struct heap_cell *c = join();
    errno = error;
    return c;
}

void heap_thread_ended(uint32_t number)
{
    if (!heap || heap->state != OPEN || heap_mine.cell != &heap->cells[number])
        return;
    heap_tell(heap_mine.cell);
    heap_mine.cell = &no_cell;
    heap_mine.gear = HEAP_EVERY;
}

/* ---- Live bytes of the process ---------------------------------------------------- */

static void raise_peak(struct heap_process_row *p, uint64_t to)
{
    uint64_t peak = __atomic_load_n(&p->peak, __ATOMIC_RELAXED);
    while (to > peak)
        if (__atomic_compare_exchange_n(&p->peak, &peak, to, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            __atomic_store_n(&p->peak_ticks, ticks_now(), __ATOMIC_RELAXED);
            __atomic_store_n(&p->peak_step, inside_step(), __ATOMIC_RELAXED);
            break;
        }
}

/* Like the peak, but somebody takes it back down: see sonde_heap_high_(). */
static void raise_high(uint64_t to)
{
    uint64_t high = __atomic_load_n(&heap->high, __ATOMIC_RELAXED);
    while (to > high &&
           !__atomic_compare_exchange_n(&heap->high, &high, to, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
}

void heap_restart(struct heap_cell *c)
{
    heap_mine.until = c->span = c->sample_in < c->enough ? c->sample_in : c->enough;
    heap_mine.until_freed = c->span_freed = c->enough;
}

void heap_tell(struct heap_cell *c)
{
    struct heap_counter_row *row = c->row;
    const int64_t allocated = c->span - heap_mine.until;
    c->sample_in -= allocated;
    if (heap_mine.gear != HEAP_EVERY) /* else every call has done its part */
        row->untold += allocated - (c->span_freed - heap_mine.until_freed);
    const int64_t more = row->untold;
    const int64_t live = __atomic_add_fetch(&heap->process->live, more,
                                            __ATOMIC_RELAXED);
    row->untold -= more; /* a handler may have allocated meanwhile */
    if (more > 0 && live > 0) {
        raise_peak(heap->process, (uint64_t)live);
        raise_high((uint64_t)live);
    }
    const int64_t part = live / HEAP_UNTOLD_PART;
    c->enough = part > HEAP_UNTOLD ? part : HEAP_UNTOLD;
    if (heap_mine.gear != HEAP_EVERY)
        c->enough *= HEAP_UNTOLD_BUSY;
    heap_restart(c);
}

/* Found by the Python layer: the most live bytes since it last asked, as near as the peak
 * is; 0: not known. So every batch has a peak of its own. */
EXPORTED uint64_t sonde_heap_high_(void);

uint64_t sonde_heap_high_(void)
{
    struct heap_cell *c = heap_join();
    if (!c || heap->process->flags & (HEAP_NO_USABLE | HEAP_COUNTS_ONLY))
        return 0;
    if (!heap_is_shared(c) && c->row)
        heap_tell(c);
    const int64_t live = __atomic_load_n(&heap->process->live, __ATOMIC_RELAXED);
    const uint64_t now = live > 0 ? (uint64_t)live : 0;
    const uint64_t high = __atomic_exchange_n(&heap->high, now, __ATOMIC_RELAXED);
    return high > now ? high : now;
}

/* How long blocks that were never freed had lived; and what this thread, which is busy if
 * any is, has kept for itself. */
__attribute__((destructor)) static void ended(void)
{
    if (!heap || __atomic_load_n(&heap->state, __ATOMIC_ACQUIRE) != OPEN)
        return;
    __atomic_store_n(&heap->process->exit_ticks, ticks_now(), __ATOMIC_RELAXED);
    if (heap_mine.cell->row)
        heap_tell(heap_mine.cell);
}

/* ---- Memory from the kernel ------------------------------------------------------- */

void heap_mapped(size_t bytes)
{
    if (!heap_join())
        return;
    __atomic_fetch_add(&heap->process->map_count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&heap->process->mapped_bytes, bytes, __ATOMIC_RELAXED);
}

void heap_unmapped(size_t bytes)
{
    if (!heap_join())
        return;
    __atomic_fetch_add(&heap->process->unmap_count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&heap->process->unmapped_bytes, bytes, __ATOMIC_RELAXED);
}
