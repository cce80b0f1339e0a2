/* threads_test.c: whose CPU time is work, and what is left of a step when it is all. */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyse/facts.h"
#include "analyse/functions.h"
#include "analyse/habits.h"
#include "analyse/threads.h"
#include "made_stacks.h"

/* ---- Stacks ---------------------------------------------------------------------------- */

static uint32_t task(uint32_t pid)
{
    uint32_t index;
    struct stack_task_row *row = append(STACKS_TASKS, &index);
    row->pid = pid;
    row->key = 1;
    return index;
}

/* One frame of a module without names below another; 0: the outermost. */
static uint32_t below(uint32_t parent, uint32_t of)
{
    static uint64_t address;
    uint32_t frame_index, node_index;
    struct stack_frame_row *frame = append(STACKS_FRAMES, &frame_index);
    frame->module = of;
    frame->key = ++address;
    struct stack_node_row *node = append(STACKS_NODES, &node_index);
    node->frame = frame_index;
    node->parent = parent;
    node->key = 1;
    return node_index;
}

static void samples(uint32_t of, uint32_t node, uint64_t count)
{
    uint32_t index;
    struct stack_count_row *row = append(STACKS_COUNTS, &index);
    row->task = of;
    row->node = node;
    row->samples = count;
    row->key = 1;
}

static uint32_t module(const char *path)
{
    return module_of(path, 0);
}

/* Two processes; in the second OpenMP sleeps in the kernel, hands a piece to torch, and
 * torch touches a page for the first time and works alone. */
static void the_kernel_waits_for_whom_it_sleeps(void **state)
{
    (void)state;
    const uint32_t omp = module("/usr/lib/libgomp.so.1"), kernel = module("[kernel]");
    const uint32_t torch = module("/usr/lib/libtorch_cpu.so");
    const uint32_t first = task(10), second = task(11);
    struct arena arena;
    struct hot_functions hot;
    samples(first, below(0, torch), 5);
    samples(second, below(below(0, omp), kernel), 30);
    samples(second, below(below(0, omp), torch), 20);
    samples(second, below(below(0, torch), kernel), 7);
    samples(second, below(0, omp), 3);
    tables_close(&tables);
    arena_init(&arena);
    assert_int_equal(functions_read(root, NAN, &arena, &hot), 0);
    assert_int_equal(hot.teams.count, 2);
    assert_int_equal(hot.teams.list[0].pid, 10);
    assert_int_equal(hot.teams.list[0].alone, 5);
    assert_int_equal(hot.teams.list[1].waits, 33);
    assert_int_equal(hot.teams.list[1].pieces, 20);
    assert_int_equal(hot.teams.list[1].alone, 7);
    arena_release(&arena);
}

/* ---- What is left ------------------------------------------------------------------------ */

static struct facts nothing_known(void)
{
    struct facts f;
    for (int i = 0; i < FACT_COUNT; i++)
        f.v[i] = NAN;
    return f;
}

/* Both cores are busy, half of it is work: a fifth of a step alone, eight in pieces. */
static struct facts one_process(void)
{
    struct facts f = nothing_known();
    f.v[FACT_CORES] = f.v[FACT_CPU_CORES] = 2;
    f.v[FACT_WORK_CORES] = 1;
    f.v[FACT_SERIAL_CORES] = 0.2;
    return f;
}

/* Four processes have eight tenths of it, whatever is cut. */
static struct facts a_pool(void)
{
    struct facts f = one_process();
    f.v[FACT_CHILDREN_AT_WORK] = 4;
    f.v[FACT_CHILD_CORES] = 0.8;
    f.v[FACT_CHILD_SERIAL_CORES] = 0.1;
    f.v[FACT_BESIDE_CORES] = 0;
    return f;
}

static void pieces_are_side_by_side(void **state)
{
    (void)state;
    struct facts f = one_process();
    assert_near(threads_left(&f, 1), 1, 1e-9);
    assert_near(threads_left(&f, 2), 0.2 + 0.8 * 0.6, 1e-9);
    assert_near(threads_left_fitting(&f), 0.2 + 0.8 * 0.6, 1e-9);
    f.v[FACT_CPU_CORES] = 0.7; /* the rest of the time nobody runs */
    assert_near(threads_left(&f, 1), 0.3 + 1, 1e-9);
    f.v[FACT_WORK_CORES] = NAN;
    assert_true(isnan(threads_left(&f, 1)));
}

/* A process with one thread is on one core, four of them are on both. */
static void processes_need_no_pieces(void **state)
{
    (void)state;
    struct facts f = a_pool();
    assert_near(threads_left(&f, 1), 0.2 + 0.4, 1e-9);
    /* The main process has all cores for its own pieces. */
    assert_near(threads_left_fitting(&f), 0.1 + 0.1 * 0.6 + 0.4, 1e-9);
    f.v[FACT_CORES] = 8;
    assert_near(threads_left(&f, 1), 0.2 + 0.8 / 4, 1e-9);
    /* Its other threads run while it waits, but they need cores. */
    f.v[FACT_CORES] = 2;
    f.v[FACT_BESIDE_CORES] = 0.6;
    assert_near(threads_left(&f, 1), 1.6 / 2, 1e-9);
}

/* Two members of a committee: the main process is in its phases all the time, and waits for
 * no jobs of the other. */
static void members_train_beside_each_other(void **state)
{
    (void)state;
    struct facts f = one_process();
    f.v[FACT_CHILDREN_AT_WORK] = 1;
    f.v[FACT_CHILD_CORES] = 0.6;
    f.v[FACT_CHILD_SERIAL_CORES] = 0.1;
    f.v[FACT_BESIDE_CORES] = 0;
    assert_near(threads_left(&f, 1), 0.4 + 0.6, 1e-9); /* one after the other */
    assert_near(threads_that_fit(&f), 2, 1e-9);
    f.v[FACT_FORWARD_SHARE] = 0.4;
    f.v[FACT_BACKWARD_SHARE] = 0.4;
    f.v[FACT_OPTIMIZER_SHARE] = 0.1;
    assert_near(threads_left(&f, 1), 0.6, 1e-9);
    assert_near(threads_that_fit(&f), 1, 1e-9);
    assert_near(threads_left_fitting(&f), 0.6, 1e-9);
    f.v[FACT_FORWARD_SHARE] = 0.1;
    assert_near(threads_left(&f, 1), 0.4 + 0.6, 1e-9);
}

static int ask(const struct facts *f, struct settings s,
               struct habits_forecast *ret_forecast)
{
    char error[WHATIF_ERROR_LEN];
    const struct habits h = { .loop_ns = 4e9,
                              .step_ns = 40e6,
                              .steps = 100,
                              .workers = NAN,
                              .foreign_share = NAN,
                              .facts = f };
    return habits_predict(&h, &s, NULL, NAN, ret_forecast, error);
}

/* Nine tenths of a step the main thread sleeps in its data set; a helper that spins keeps
 * the process on a core all the while. */
static void sleep_does_not_shrink_with_threads(void **state)
{
    (void)state;
    struct facts f = one_process();
    f.v[FACT_CPU_CORES] = 0.93;
    f.v[FACT_WORK_CORES] = f.v[FACT_SERIAL_CORES] = 0.1;
    f.v[FACT_WORKERS] = 0;
    f.v[FACT_INPUT_SHARE] = f.v[FACT_WAIT_SHARE] = 0.9;
    f.v[FACT_SAMPLE_CPU_SHARE] = 0;
    assert_near(threads_left(&f, 1), 1, 1e-9);
    struct habits_forecast then;
    assert_int_equal(ask(&f, (struct settings){ .threads = 1 }, &then), 0);
    assert_true(then.step_low_ns >= 0.8 * 40e6 && then.step_low_ns <= then.step_ns);
    /* Samples that compute are in what works already. */
    f.v[FACT_SAMPLE_CPU_SHARE] = 1;
    assert_near(threads_left(&f, 1), 0.1 + 0.07, 1e-9);
    /* On full cores the wait may be one for a core. */
    f.v[FACT_SAMPLE_CPU_SHARE] = 0;
    f.v[FACT_CPU_CORES] = 2;
    assert_near(threads_left(&f, 1), 0.1, 1e-9);
}

static void a_question_names_the_threads_of_each_process(void **state)
{
    (void)state;
    char error[WHATIF_ERROR_LEN];
    struct settings s = { 0 };
    struct habits_forecast then;
    const struct facts f = a_pool();
    assert_int_equal(whatif_parse("threads=1", &s, error), 0);
    assert_true(habits_asked(&s) && !s.loader);
    assert_int_equal(ask(&f, s, &then), 0);
    assert_near(then.step_ns, 0.6 * 40e6, 1);
    assert_near(then.loop_ns, 0.6 * 4e9, 100);
    assert_true(then.step_low_ns < then.step_ns && then.step_ns < then.step_high_ns);
    assert_int_equal(whatif_parse("threads=0", &s, error), -EINVAL);
    assert_int_equal(whatif_parse("threads=1.5", &s, error), -EINVAL);
}

static void what_was_not_measured_is_refused(void **state)
{
    (void)state;
    struct habits_forecast then;
    struct facts f = one_process();
    assert_int_equal(ask(&f, (struct settings){ .threads = 2 }, &then), 0);
    assert_int_equal(ask(&f, (struct settings){ .threads = 3 }, &then), -EINVAL);
    assert_int_equal(ask(&f, (struct settings){ .threads = 1, .loader = true }, &then),
                     -EINVAL);
    assert_int_equal(ask(NULL, (struct settings){ .threads = 1 }, &then), -EINVAL);
    f.v[FACT_WORK_CORES] = NAN;
    assert_int_equal(ask(&f, (struct settings){ .threads = 1 }, &then), -EINVAL);
    /* Four processes with two threads each on two cores want each twice as ever. */
    f = a_pool();
    assert_int_equal(ask(&f, (struct settings){ .threads = 2 }, &then), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_kernel_waits_for_whom_it_sleeps,
                                        make_stacks, remove_stacks),
        cmocka_unit_test(pieces_are_side_by_side),
        cmocka_unit_test(sleep_does_not_shrink_with_threads),
        cmocka_unit_test(processes_need_no_pieces),
        cmocka_unit_test(members_train_beside_each_other),
        cmocka_unit_test(a_question_names_the_threads_of_each_process),
        cmocka_unit_test(what_was_not_measured_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
