// labels: no_asan
/* Unwinding: our own stack, from nothing but registers and a copy of its bytes. */
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "unit.h"

#include "base/error.h"
#include "base/files.h"
#include "capture/sample/unwind.h"
#include "capture/symbol/symbol.h"

#if defined(__x86_64__)

enum { COPIED = 65536 };

static uint8_t copy[COPIED];
static struct perf_sample sample;

/* Bytes of the stack above an address, as many as are there. */
static uint64_t stack_above(uint64_t address)
{
    struct buf maps = BUF_INIT;
    unsigned long start, end = 0;
    assert_int_equal(file_read_all("/proc/self/maps", 1 << 20, &maps), 0);
    for (char *line = strtok(maps.data, "\n"); line; line = strtok(NULL, "\n"))
        if (strstr(line, "[stack]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
            break;
    buf_release(&maps);
    return end - address < COPIED ? end - address : COPIED;
}

/* As the kernel would sample us here. */
__attribute__((noinline)) static void take_sample(void)
{
    static const int from[CFI_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI,
                                        REG_RDI, REG_RBP, REG_RSP, REG_R8,  REG_R9,
                                        REG_R10, REG_R11, REG_R12, REG_R13, REG_R14,
                                        REG_R15, REG_RIP };
    ucontext_t here;
    assert_int_equal(getcontext(&here), 0);
    for (unsigned i = 0; i < CFI_REGS; i++)
        sample.regs[i] = (uint64_t)here.uc_mcontext.gregs[from[i]];
    const uint64_t len = stack_above(sample.regs[CFI_RSP]);
    memcpy(copy, (const void *)sample.regs[CFI_RSP], len);
    sample.stack = (struct cfi_memory){ copy, sample.regs[CFI_RSP], len };
    sample.has_regs = true;
    sample.ip = sample.regs[CFI_PC];
}

__attribute__((noinline)) void unwind_inner(volatile int *depth);
__attribute__((noinline)) void unwind_middle(volatile int *depth);
__attribute__((noinline)) void unwind_outer(volatile int *depth);

void unwind_inner(volatile int *depth)
{
    take_sample();
    *depth += 1; /* no tail call */
}

void unwind_middle(volatile int *depth)
{
    char room[300];
    memset(room, *depth, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory");
    unwind_inner(depth);
    *depth += 1;
}

void unwind_outer(volatile int *depth)
{
    unwind_middle(depth);
    *depth += 1;
}

struct world {
    char dir[64];
    struct stacktab tab;
    struct procs procs;
    struct unwind_cache *cache;
};

static void world_open(struct world *w)
{
    assert_non_null(unit_temp_dir(w->dir));
    assert_int_equal(stacktab_open(&w->tab, w->dir, NULL), 0);
    assert_int_equal(procs_init(&w->procs, &w->tab), 0);
    w->cache = unwind_cache_new();
    procs_read_maps(&w->procs, (uint32_t)getpid());
}

static void world_close(struct world *w)
{
    unwind_cache_free(w->cache);
    procs_release(&w->procs);
    stacktab_close(&w->tab);
    (void)file_remove_tree(w->dir);
}

static const char *name_of(const struct stack_place *p)
{
    static char name[64];
    struct symbol_module *m;
    struct symbol_frame frames[SYMBOL_FRAMES];
    name[0] = '\0';
    if (symbol_open(&(struct symbol_file){ .path = "/proc/self/exe" }, &m) < 0)
        return name;
    const unsigned n = symbol_find(m, p->key - 1, frames, SYMBOL_FRAMES);
    if (n)
        (void)snprintf(name, sizeof name, "%s", frames[n - 1].function);
    symbol_close(m);
    return name;
}

static void our_own_stack_is_found_from_its_bytes(void **state)
{
    (void)state;
    struct world w;
    struct unwound u;
    volatile int depth = 0;
    world_open(&w);
    unwind_outer(&depth);
    struct proc *self = procs_get(&w.procs, (uint32_t)getpid());
    for (int again = 0; again < 2; again++) { /* the second time from the cache */
        unwind_stack(w.cache, &w.procs, self, &sample, &u);
        assert_true(u.depth >= 5);
        assert_string_equal(name_of(&u.stack[1]), "unwind_inner");
        assert_string_equal(name_of(&u.stack[2]), "unwind_middle");
        assert_string_equal(name_of(&u.stack[3]), "unwind_outer");
        assert_true(u.stack[1].flags & STACK_FRAME_CALLER);
        assert_false(u.stack[0].flags & STACK_FRAME_CALLER);
        assert_true(u.whole);
    }
    world_close(&w);
}

static void a_stack_cut_short_gives_what_there_is(void **state)
{
    (void)state;
    struct world w;
    struct unwound u;
    volatile int depth = 0;
    world_open(&w);
    unwind_outer(&depth);
    struct proc *self = procs_get(&w.procs, (uint32_t)getpid());
    unsigned before = 0;
    const uint64_t whole = sample.stack.len;
    for (uint64_t len = 0; len <= whole; len += 64) {
        sample.stack.len = len;
        unwind_stack(w.cache, &w.procs, self, &sample, &u);
        assert_true(u.depth >= 1 && u.depth >= before);
        before = u.depth;
    }
    world_close(&w);
}

static void a_stack_of_rubbish_ends(void **state)
{
    (void)state;
    struct world w;
    struct unwound u;
    volatile int depth = 0;
    world_open(&w);
    unwind_outer(&depth);
    struct proc *self = procs_get(&w.procs, (uint32_t)getpid());
    srand(1);
    for (int round = 0; round < 2000; round++) {
        for (int i = 0; i < 16; i++)
            copy[(unsigned)rand() % 4096] = (uint8_t)rand();
        sample.regs[(unsigned)rand() % (CFI_REGS - 1)] ^= (uint64_t)rand() & 0xfff8;
        sample.stack.start = sample.regs[CFI_RSP];
        unwind_stack(w.cache, &w.procs, self, &sample, &u);
        assert_true(u.depth <= STACK_DEPTH);
    }
    world_close(&w);
}

static void mappings_give_way_to_newer_ones(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    const struct mapped_file old = {
        .start = 0x10000, .len = 0x10000, .file_offset = 0x1000, .path = "/old"
    };
    const struct mapped_file hole = { .start = 0x14000, .len = 0x1000, .path = "/new" };
    procs_on_map(&w.procs, 77, &old);
    procs_on_map(&w.procs, 77, &hole);
    procs_on_fork(&w.procs, 78, 77, 78, 77);
    for (uint32_t pid = 77; pid <= 78; pid++) {
        const struct proc *p = procs_get(&w.procs, pid);
        assert_string_equal(proc_find(p, 0x13fff)->file->path, "/old");
        assert_string_equal(proc_find(p, 0x14000)->file->path, "/new");
        const struct mapping *rest = proc_find(p, 0x15000);
        assert_string_equal(rest->file->path, "/old");
        assert_int_equal(0x15000 - rest->start + rest->file_offset, 0x6000);
        assert_null(proc_find(p, 0x20000));
        assert_null(proc_find(p, 0xffff));
    }
    procs_on_name(&w.procs, 78, 78, "other", true);
    assert_null(proc_find(procs_get(&w.procs, 78), 0x13fff));
    world_close(&w);
}

static void threads_are_forgotten_without_losing_others(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    procs_on_name(&w.procs, 900, 900, "program", true);
    for (uint32_t tid = 1000; tid < 6000; tid++) {
        procs_on_fork(&w.procs, 900, 900, tid, 900);
        if (tid % 2)
            procs_on_name(&w.procs, 900, tid, "odd", false);
    }
    for (uint32_t tid = 1000; tid < 6000; tid += 2)
        procs_on_exit(&w.procs, 900, tid);
    struct proc *p = procs_get(&w.procs, 900);
    const uint32_t odd = procs_task(&w.procs, p, 1001);
    for (uint32_t tid = 1001; tid < 6000; tid += 2)
        assert_int_equal(procs_task(&w.procs, p, tid), odd);
    assert_int_not_equal(procs_task(&w.procs, p, 1000), odd);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_own_stack_is_found_from_its_bytes),
        cmocka_unit_test(a_stack_cut_short_gives_what_there_is),
        cmocka_unit_test(a_stack_of_rubbish_ends),
        cmocka_unit_test(mappings_give_way_to_newer_ones),
        cmocka_unit_test(threads_are_forgotten_without_losing_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
int main(void)
{
    return 0;
}
#endif
