/* io.c: file and socket calls of this process: state, tables, readings, the end.
 *
 * Coverage. The kernel counts what a process reads and writes through read, write and
 * their kin (/proc/self/io: rchar, wchar). Once a second, and at the end, that count is
 * kept beside ours; the difference is what we did not see: libc's own reads (dlopen,
 * locales, name service), raw system calls, io_uring's are in neither. What we read from
 * /proc for this purpose is taken off.
 */
#include "capture/interpose/io.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct io_state *io;
bool io_has_counter;

enum {
    READING_FIRST = 10, /* the first reading comes after a tenth of a second */
    PATIENCE = 10000,   /* how often to yield while another thread sets things up */
};

static long missing(void)
{
    errno = ENOSYS;
    return -1;
}

void *io_real(const char *name)
{
    const int saved = errno;
    inside_busy++;
    void *real = inside_real(name);
    inside_busy--;
    errno = saved;
    return real ? real : (void *)missing;
}

extern const struct io_real_entry __start_io_reals[], __stop_io_reals[];

__attribute__((constructor)) static void find_reals(void)
{
    io_has_counter = ticks_source() != TICKS_CLOCK_NS;
    const size_t count = ((uintptr_t)__stop_io_reals - (uintptr_t)__start_io_reals) /
                         sizeof(struct io_real_entry);
    for (size_t i = 0; i < count; i++)
        if (!*__start_io_reals[i].pointer)
            *__start_io_reals[i].pointer = io_real(__start_io_reals[i].name);
    /* This libc has not all of them; the program is not to find our failures. */
    inside_busy++;
    (void)dlerror();
    inside_busy--;
}

/* ---- /proc/self/io -------------------------------------------------------------------- */

static uint64_t number_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    uint64_t n = 0;
    for (at += at ? strlen(name) : 0; at && *at >= '0' && *at <= '9'; at++)
        n = n * 10 + (uint64_t)(*at - '0');
    return n;
}

/* Raw system calls: nothing of this may count, and errno is saved by callers. */
static int read_proc_io(struct io_state *s, uint64_t ret_chars[2], uint64_t ret_own[2])
{
    char text[512];
    const long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/io", O_RDONLY | O_CLOEXEC,
                            0);
    if (fd < 0)
        return errno;
    const long n = syscall(SYS_read, fd, text, sizeof text - 1);
    (void)syscall(SYS_close, fd);
    if (n <= 0)
        return n < 0 ? errno : EIO;
    text[n] = '\0';
    ret_chars[0] = number_after(text, "rchar: ");
    ret_chars[1] = number_after(text, "wchar: ");
    ret_own[0] = s->own[IO_READ] + __atomic_load_n(&inside_own_bytes, __ATOMIC_RELAXED);
    ret_own[1] = s->own[IO_WRITE];
    io_add(&s->own[IO_READ], (uint64_t)n, false);
    return 0;
}

static void add_seen(const struct io_file_row *row, uint64_t seen[2])
{
    for (int d = 0; row && d < 2; d++)
        seen[d] += __atomic_load_n(&row->side[d].bytes, __ATOMIC_RELAXED) -
                   __atomic_load_n(&row->side[d].uncounted, __ATOMIC_RELAXED);
}

static void keep_reading(struct io_state *s, uint64_t now)
{
    struct io_process_row *p = s->process;
    struct io_reading *r = &p->reading[p->readings % 2];
    uint64_t chars[2] = { 0, 0 }, own[2] = { 0, 0 };
    const int error = read_proc_io(s, chars, own);
    if (error) {
        p->unreadable = (uint64_t)error;
        return;
    }
    uint64_t seen[2] = { 0, 0 };
    const uint64_t rows = tables_head(&s->tables)->table[IO_TABLES_FILES].count;
    for (uint32_t i = 0; i < rows; i++)
        add_seen(tables_row(&s->tables, IO_TABLES_FILES, i), seen);
    r->ticks = now;
    for (int d = 0; d < 2; d++) {
        r->all[d] = chars[d];
        r->kernel[d] = chars[d] - own[d] - s->base[d];
        r->seen[d] = seen[d];
    }
    __atomic_store_n(&p->readings, p->readings + 1, __ATOMIC_RELEASE);
}

/* One thread at a time: the others find the next moment set already. */
void io_take_reading(uint64_t now)
{
    struct io_state *s = io;
    uint64_t due = __atomic_load_n(&s->next_reading, __ATOMIC_RELAXED);
    if (now <= due ||
        !__atomic_compare_exchange_n(&s->next_reading, &due, now + s->second, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    const int saved = errno;
    inside_busy++;
    keep_reading(s, now);
    inside_busy--;
    errno = saved;
}

/* ---- Setting up ----------------------------------------------------------------------- */

static int make_tables(struct io_state *s)
{
    static const struct tables_spec specs[] = {
        { IO_TABLE_FILES, sizeof(struct io_file_row), IO_MAX_FILES },
        { IO_TABLE_ZONES, sizeof(struct io_zone_row), 2 * IO_MAX_ZONES },
        { IO_TABLE_PROCESS, sizeof(struct io_process_row), 1 },
        { IO_TABLE_EVENTS, sizeof(struct io_event_row), IO_MAX_EVENTS },
    };
    uint32_t index;
    const int rc = tables_create(inside_dir(), IO_KIND, inside_control(), specs,
                                 sizeof specs / sizeof *specs, &s->tables);
    if (rc < 0)
        return rc;
    s->process = tables_append(&s->tables, IO_TABLES_PROCESS, &index);
    s->other = tables_append(&s->tables, IO_TABLES_FILES, &index);
    if (!s->process || !s->other)
        return -ENOSPC;
    s->process->by_hand.counted = IO_HAND_WRITES;
    s->other->io_class = IO_CLASS_OTHER;
    s->other->shared = 1;
    __atomic_store_n(&s->other->key, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&s->process->key, 1, __ATOMIC_RELEASE);
    return 0;
}

/* A second, roughly: to measure it would take a millisecond of every process. */
static uint64_t about_a_second(void)
{
#if defined(__aarch64__)
    uint64_t per_second;
    __asm__("mrs %0, cntfrq_el0" : "=r"(per_second));
    return per_second;
#else
    return ticks_source() == TICKS_TSC ? 2500000000u : 1000000000u;
#endif
}

static uint64_t memory_device(void)
{
    struct stat st;
    return stat("/dev/shm", &st) == 0 ? st.st_dev : 0;
}

static void start_clocks(struct io_state *s)
{
    const uint64_t now = io_ticks();
    s->second = about_a_second();
    s->next_reading = now + s->second / READING_FIRST;
    s->process->series_room = IO_SERIES;
    s->process->series_ticks = s->second / 40;
    s->process->series_start = now;
    uint64_t own[2] = { 0, 0 };
    const int error = read_proc_io(s, s->base, own);
    for (int d = 0; d < 2 && !error; d++)
        s->base[d] -= own[d];
    s->process->unreadable = (uint64_t)error;
    if (error)
        s->next_reading = UINT64_MAX;
}

bool io_set_up(void)
{
    static int32_t making; /* the pid: a child that forked meanwhile is not kept out */
    const int32_t pid = (int32_t)syscall(SYS_getpid);
    for (int n = 0; __atomic_exchange_n(&making, pid, __ATOMIC_ACQUIRE) == pid; n++) {
        if (n == PATIENCE)
            return false;
        (void)sched_yield(); /* another thread is at it, and needs nothing from us */
    }
    struct io_state *s = io ? io : inside_wiped(sizeof *s);
    if (s && !s->on && !s->broken) {
        s->pid = pid;
        s->broken = make_tables(s) < 0;
        s->memory_device = memory_device();
        if (!s->broken) {
            start_clocks(s);
            s->trace = inside_traces("io");
            __atomic_store_n(&s->on, 1, __ATOMIC_RELEASE);
        }
        __atomic_store_n(&io, s, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&making, 0, __ATOMIC_RELEASE);
    return s && s->on;
}

/* ---- A call ----------------------------------------------------------------------------- */

#define HOT __attribute__((hot))

HOT bool io_begin(struct io_call *c, int fd)
{
    struct io_state *s = io;
    if (UNLIKELY(inside_busy))
        return false;
    if (UNLIKELY(!s || !s->on || (unsigned)fd >= IO_FDS))
        return io_begin_slow(c, fd);
    struct io_fd *f = &s->fd[fd];
    c->alone = f->owner == inside_thread();
    c->row = c->alone ? f->row : f->shared;
    if (UNLIKELY(!c->row || !(f->flags & IO_FD_LOOKED)))
        return io_begin_slow(c, fd);
    c->fd = f;
    c->start = io_ticks();
    return true;
}

/* Counts `bytes` that took `ticks`. */
static inline void io_count(struct io_call *c, enum io_direction d, enum io_way way,
                            uint64_t bytes, uint64_t offset, uint64_t ticks)
{
    struct io_side *side = &c->row->side[d];
    const bool alone = c->alone;
    const uint64_t at = offset == IO_HERE ? c->fd->pos : offset;
    if (bytes && io_follows(c->fd, d, offset, bytes))
        io_add(&side->sequential, 1, alone);
    io_add(&side->bytes, bytes, alone);
    io_add(&side->ticks, ticks, alone);
    io_add32(&side->latency[io_bucket(ticks)], alone);
    io_add(&side->sizes[io_size_class(bytes)], 1, alone);
    if (UNLIKELY(!(c->row->ways & 1u << way)))
        (void)__atomic_fetch_or(&c->row->ways, 1u << way, __ATOMIC_RELAXED);
    const uint32_t zone = inside_zone();
    if (zone)
        io_count_zone(zone, d, bytes, ticks);
    else if (d == IO_READ && bytes)
        io_step_read(c->fd, bytes, ticks);
    else if (bytes)
        io_step_written(c->fd, bytes, ticks);
    if (UNLIKELY(io->trace))
        io_event(c, d, way, (int64_t)bytes, at, ticks);
}

HOT void io_end(struct io_call *c, enum io_direction d, enum io_way way, int64_t result,
                uint64_t offset)
{
    const uint64_t now = io_ticks();
    if (UNLIKELY(result < 0))
        io_failed(c, d, errno);
    else
        io_count(c, d, way, (uint64_t)result, offset, now - c->start);
    if (UNLIKELY(now > io->next_reading))
        io_take_reading(now);
}

/* ---- A call, the cold half ------------------------------------------------------------- */

/* Descriptors beyond the table, and rows there is no room for. */
static void use_other(struct io_call *c)
{
    static struct io_fd beyond = { .owner = UINT16_MAX };
    c->fd = &beyond;
    c->row = io->other;
    c->alone = false;
}

static bool find_row(struct io_call *c, int fd)
{
    struct io_state *s = io;
    if ((unsigned)fd >= IO_FDS) {
        use_other(c);
        return fd >= 0;
    }
    struct io_fd *f = &s->fd[fd];
    if (!f->row && !(f->flags & IO_FD_ASIDE)) {
        io_resolve(f, fd, NULL);
        if (!(f->flags & IO_FD_OPENED))
            io_add(&s->process->inherited, 1, false);
    }
    if (f->flags & IO_FD_ASIDE)
        return false;
    if (!(f->flags & IO_FD_LOOKED))
        io_look(f, fd);
    c->fd = f;
    c->alone = f->owner == inside_thread();
    if (!c->alone && !f->shared)
        io_resolve_shared(f);
    c->row = c->alone ? f->row : f->shared;
    return c->row != NULL;
}

bool io_begin_slow(struct io_call *c, int fd)
{
    const int saved = errno;
    if (!inside_ready() || inside_resolving || (io && io->broken)) {
        errno = saved;
        return false;
    }
    inside_busy++;
    const bool counts = ((io && io->on) || io_set_up()) && find_row(c, fd);
    inside_busy--;
    errno = saved;
    if (counts)
        c->start = io_ticks();
    return counts;
}

void io_passed(int fd, enum io_direction d, int64_t moved)
{
    struct io_state *s = io;
    if (moved <= 0 || !s || !s->on)
        return;
    if (inside_busy || ((unsigned)fd < IO_FDS && s->fd[fd].flags & IO_FD_ASIDE))
        io_add(&s->own[d], (uint64_t)moved, false);
}

void io_failed(struct io_call *c, enum io_direction d, int error)
{
    struct io_side *side = &c->row->side[d];
    const bool again = error == EAGAIN || error == EINTR;
    io_add(again ? &side->again : &side->errors, 1, c->alone);
    if (io->trace)
        io_event(c, d, IO_WAY_READ, -error, IO_NO_PLACE, io_ticks() - c->start);
    errno = error;
}

/* NULL: there is no room for it. */
static struct io_zone_row *row_of_zone(uint32_t zone, bool *ret_alone)
{
    if (zone >= MAX_SITES)
        return NULL;
    struct io_zone *z = &io->zone[zone];
    bool alone = z->row && z->owner == inside_thread();
    if (UNLIKELY(!z->row || (!alone && !z->shared))) {
        const int saved = errno;
        inside_busy++;
        z = io_zone_resolve(zone);
        inside_busy--;
        errno = saved;
        alone = z && z->owner == inside_thread();
    }
    *ret_alone = alone;
    return !z ? NULL : alone ? z->row : z->shared;
}

void io_count_zone(uint32_t zone, enum io_direction d, uint64_t bytes, uint64_t ticks)
{
    bool alone = false;
    struct io_zone_row *row = row_of_zone(zone, &alone);
    if (!row)
        return;
    io_add(&row->calls[d], 1, alone);
    io_add(&row->bytes[d], bytes, alone);
    io_add(&row->ticks[d], ticks, alone);
}

void io_count_zone_open(uint32_t zone, uint64_t ticks)
{
    bool alone = false;
    struct io_zone_row *row = row_of_zone(zone, &alone);
    if (!row)
        return;
    io_add(&row->opens, 1, alone);
    io_add(&row->open_ticks, ticks, alone);
}

void io_count_zone_looks(uint32_t zone, uint64_t looks, uint64_t ticks)
{
    bool alone = false;
    struct io_zone_row *row = row_of_zone(zone, &alone);
    if (!row)
        return;
    io_add(&row->looks, looks, alone);
    io_add(&row->look_ticks, ticks, alone);
}

void io_event(const struct io_call *c, enum io_direction d, enum io_way way,
              int64_t result, uint64_t offset, uint64_t ticks)
{
    const int saved = errno;
    uint32_t index;
    inside_busy++; /* tables_append() takes a lock: handlers keep out */
    struct io_event_row *e = tables_append(&io->tables, IO_TABLES_EVENTS, &index);
    if (e) {
        e->file = c->row == io->other ? 0
                  : c->alone          ? c->fd->index
                                      : c->fd->shared_index;
        e->way = (uint8_t)way;
        e->direction = (uint8_t)d;
        e->thread = (uint16_t)inside_thread();
        e->result = result;
        e->offset = offset == IO_NO_PLACE ? UINT64_MAX : offset;
        e->ticks = ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
        e->zone = inside_zone();
        e->tid = inside_tid();
        __atomic_store_n(&e->key, c->start ? c->start : 1, __ATOMIC_RELEASE);
    }
    inside_busy--;
    errno = saved;
}

/* ---- The end ------------------------------------------------------------------------------ */

/* `flush`: exit() is going to write what FILEs still hold. */
static void finish(bool flush)
{
    struct io_state *s = io;
    if (inside_busy || !s || !s->on || s->pid != (int32_t)syscall(SYS_getpid))
        return;
    const int saved = errno;
    inside_busy++;
    io_fds_finish();
    io_maps_finish();
    keep_reading(s, io_ticks());
    if (flush)
        io_streams_finish();
    s->process->finished = 1;
    inside_busy--;
    errno = saved;
}

__attribute__((destructor)) static void finish_at_exit(void)
{
    finish(true);
}

REAL_OF(_exit);
EXPORTED _Noreturn void _exit(int status)
{
    finish(false);
    REAL(_exit)(status);
    __builtin_unreachable();
}

REAL_OF(_Exit);
EXPORTED _Noreturn void _Exit(int status)
{
    finish(false);
    REAL(_Exit)(status);
    __builtin_unreachable();
}
