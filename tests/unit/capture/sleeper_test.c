// labels: no_asan
/* Stacks of sleeping threads, read from outside with nothing but sp and pc. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

#include "base/buf.h"
#include "base/files.h"
#include "capture/sample/sleeper.h"
#include "capture/symbol/symbol.h"

static void the_kernel_s_text_is_understood(void **state)
{
    (void)state;
    struct sleeper_place p;
    assert_true(sleeper_where("202 0x10 0x80 0x2 0x0 0x0 0x0 0x7ffc8 0x7f12b\n", &p));
    assert_int_equal(p.call, 202);
    assert_int_equal(p.arg, 0x10);
    assert_int_equal(p.sp, 0x7ffc8);
    assert_int_equal(p.pc, 0x7f12b);
    assert_true(sleeper_where("-1 0x7ffc8 0x7f12b", &p));
    assert_int_equal(p.sp, 0x7ffc8);
    assert_false(sleeper_where("running", &p));
    assert_false(sleeper_where("", &p));
    assert_false(sleeper_where("202 0x10 0x80", &p));
}

#if defined(__x86_64__)

__attribute__((noinline)) void sleeper_inner(volatile int *depth);
__attribute__((noinline)) void sleeper_outer(volatile int *depth);

void sleeper_inner(volatile int *depth)
{
    for (;;) {
        (void)pause();
        *depth += 1;
    }
}

void sleeper_outer(volatile int *depth)
{
    sleeper_inner(depth);
    *depth += 1;
}

static void read_text(pid_t pid, const char *name, struct buf *ret_text)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    assert_int_equal(file_read_all(path, 1 << 20, ret_text), 0);
}

/* A child that sleeps, once it does. */
static pid_t start_sleeper(struct sleeper_place *ret_place)
{
    const struct timespec moment = { 0, 5000000 };
    const pid_t pid = fork();
    volatile int depth = 0;
    if (pid == 0)
        sleeper_outer(&depth);
    for (int i = 0; i < 2000; i++) {
        struct buf text = BUF_INIT;
        read_text(pid, "syscall", &text);
        const bool sleeps = sleeper_where(text.data, ret_place) &&
                            ret_place->call == 34; /* pause */
        buf_release(&text);
        if (sleeps)
            return pid;
        (void)nanosleep(&moment, NULL);
    }
    fail_msg("the child does not sleep");
    return pid;
}

static void end_sleeper(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static bool is_called(const struct sleeper_frame *f, const char *function)
{
    struct symbol_module *m;
    struct symbol_frame frames[SYMBOL_FRAMES];
    if (symbol_open(&(struct symbol_file){ .path = f->path }, &m) < 0)
        return false;
    const unsigned n = symbol_find(m, f->offset - f->caller, frames, SYMBOL_FRAMES);
    const bool yes = n && strcmp(frames[n - 1].function, function) == 0;
    symbol_close(m);
    return yes;
}

static void a_sleeping_child_s_callers_are_found(void **state)
{
    (void)state;
    struct sleeper_place place;
    struct sleeper_stack stack;
    struct buf maps = BUF_INIT;
    const pid_t pid = start_sleeper(&place);
    struct sleeper *s = sleeper_new();
    assert_non_null(s);
    read_text(pid, "maps", &maps);
    assert_int_equal(sleeper_process(s, pid, maps.data), 0);
    sleeper_walk(s, &place, &stack);
    unsigned inner = 0;
    while (inner < stack.count && !is_called(&stack.frame[inner], "sleeper_inner"))
        inner++;
    assert_in_range(inner, 1, 3); /* behind the C library's pause() */
    assert_true(stack.frame[inner].caller);
    assert_false(stack.frame[0].caller);
    assert_true(inner + 1 >= stack.count ||
                is_called(&stack.frame[inner + 1], "sleeper_outer"));
    sleeper_free(s);
    buf_release(&maps);
    end_sleeper(pid);
}

/* Whatever the program shows us: it ends, and the innermost frame is there. */
static void rubbish_ends(void **state)
{
    (void)state;
    struct sleeper_place place;
    struct sleeper_stack stack;
    struct buf maps = BUF_INIT;
    const pid_t pid = start_sleeper(&place);
    struct sleeper *s = sleeper_new();
    read_text(pid, "maps", &maps);
    srand(1);
    for (int round = 0; round < 300; round++) {
        struct sleeper_place other = place;
        other.sp += (uint64_t)(rand() % 4096);
        other.pc += (uint64_t)(rand() % 65536);
        if (round % 8 == 7)
            maps.data[(size_t)rand() % maps.len] = (char)rand();
        assert_int_equal(sleeper_process(s, pid, maps.data), 0);
        sleeper_walk(s, &other, &stack);
        assert_in_range(stack.count, 1, SLEEPER_FRAMES);
    }
    sleeper_free(s);
    buf_release(&maps);
    end_sleeper(pid);
}

static void without_mappings_or_a_process_there_is_the_innermost(void **state)
{
    (void)state;
    const struct sleeper_place place = { .call = 1, .sp = 0x1000, .pc = 0x2000 };
    struct sleeper_stack stack;
    struct sleeper *s = sleeper_new();
    assert_int_equal(sleeper_process(s, 1 << 30, ""), 0);
    sleeper_walk(s, &place, &stack);
    assert_int_equal(stack.count, 1);
    assert_string_equal(stack.frame[0].path, "");
    assert_false(stack.whole);
    sleeper_free(s);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_s_text_is_understood),
#if defined(__x86_64__)
        cmocka_unit_test(a_sleeping_child_s_callers_are_found),
        cmocka_unit_test(rubbish_ends),
        cmocka_unit_test(without_mappings_or_a_process_there_is_the_innermost),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
