/* gate_test.c: who may record, when several have a say in it.
 *
 * The supervisor opens the window instruction by instruction (ptrace), and after each
 * of them, in a run of its own, the program pauses. Whoever comes last, it is paused.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "trace/control.h"
#include "unit.h"

enum { STEPS_MOST = 300 }; /* it takes some 40 */

struct meeting {
    struct control control;
    struct trace_live live;
};

static void open_window(struct meeting *m)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(1);
    (void)raise(SIGSTOP);
    __atomic_store_n(&m->control.gate, 0, __ATOMIC_SEQ_CST);
    control_settle_gate(&m->control, &m->live);
    _exit(0);
}

static void pause_program(struct meeting *m)
{
    __atomic_store_n(&m->live.paused, 1, __ATOMIC_SEQ_CST);
    control_settle_gate(&m->control, &m->live);
}

/* False: it had ended before. */
static bool step(pid_t supervisor, int steps)
{
    int status = 0;
    for (int i = 0; i < steps; i++) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, supervisor, NULL, NULL), 0);
        assert_int_equal(waitpid(supervisor, &status, 0), supervisor);
        if (WIFEXITED(status))
            return false;
    }
    return true;
}

/* Whether the supervisor was still at it when the program paused. */
static bool pause_after(struct meeting *m, int steps)
{
    int status;
    *m = (struct meeting){ .control.gate = SONDE_GATE_OFF,
                           .live.gate = SONDE_GATE_OFF };
    const pid_t supervisor = fork();
    if (supervisor == 0)
        open_window(m);
    assert_int_equal(waitpid(supervisor, &status, 0), supervisor);
    if (!WIFSTOPPED(status))
        skip(); /* no ptrace here */
    const bool there = step(supervisor, steps);
    pause_program(m);
    if (there) {
        assert_int_equal(ptrace(PTRACE_CONT, supervisor, NULL, NULL), 0);
        assert_int_equal(waitpid(supervisor, &status, 0), supervisor);
        assert_true(WIFEXITED(status));
    }
    assert_int_equal(m->live.gate, SONDE_GATE_OFF);
    return there;
}

static void a_pause_holds_wherever_the_supervisor_is(void **state)
{
    (void)state;
    struct meeting *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(m != MAP_FAILED);
    int steps = 0;
    while (steps < STEPS_MOST && pause_after(m, steps))
        steps++;
    assert_true(steps > 10);
    (void)munmap(m, sizeof *m);
}

static void the_window_of_steps_counts_when_there_is_one(void **state)
{
    (void)state;
    static const struct {
        uint64_t step;
        uint32_t gate;
    } cases[] = { { 9, SONDE_GATE_OFF }, { 10, 0 }, { 20, 0 }, { 21, SONDE_GATE_OFF } };
    struct control control = { .first_step = 10, .last_step = 20 };
    struct trace_live live = { .gate = 7 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        live.steps = cases[i].step;
        control_settle_gate(&control, &live);
        assert_int_equal(live.gate, cases[i].gate);
    }
    live.steps = 15;
    live.paused = 1;
    control_settle_gate(&control, &live);
    assert_int_equal(live.gate, SONDE_GATE_OFF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_holds_wherever_the_supervisor_is),
        cmocka_unit_test(the_window_of_steps_counts_when_there_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
