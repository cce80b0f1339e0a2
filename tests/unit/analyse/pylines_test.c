/* pylines_test.c: what the time of made-up stacks was spent on. */
#include "unit.h"

#include <math.h>

#include "analyse/fact_parts.h"
#include "analyse/pylines.h"
#include "made_pystacks.h"

#define OWN    "/home/u/train.py"
#define LOCKS  "/usr/lib/python3.11/multiprocessing/synchronize.py"
#define QUEUES "/usr/lib/python3.11/multiprocessing/queues.py"
#define JIT    "/usr/lib/python3/dist-packages/torch/jit/_script.py"
#define SERIAL "/usr/lib/python3/dist-packages/torch/serialization.py"
#define FORKS  "/usr/lib/python3.11/multiprocessing/popen_fork.py"
#define LOADER "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py"

/* The main thread alone was looked at. */
static struct py_lines read_lines(void)
{
    static struct py_thread thread = { .pid = MAIN, .tid = MAIN, .wall_ns = 1e9 };
    struct py_lines lines;
    report.python.threads = &thread;
    report.python.thread_count = 1;
    tables_close(&tables);
    assert_int_equal(pylines_read(&report, &lines), 0);
    return lines;
}

static void a_lock_of_the_programs_own_is_waited_for(void **state)
{
    (void)state;
    STACK(800, 10, { "train", OWN, 110 }, { "SemLock.__enter__", LOCKS, 95 });
    STACK(200, 200, { "train", OWN, 120 });
    const struct py_lines lines = read_lines();
    assert_near(lines.used_ns[PY_LOCK], 790e6, 1);
    assert_int_equal(lines.top[PY_LOCK].line, 110);
}

/* Nobody holds it: taking it is work. */
static void a_lock_that_is_free_is_none(void **state)
{
    (void)state;
    STACK(50, 50, { "train", OWN, 110 }, { "SemLock.__enter__", LOCKS, 95 });
    assert_near(read_lines().used_ns[PY_LOCK], 0, 0);
}

/* Waiting for what others make is no lock, whatever a queue is made of. */
static void what_a_queue_locks_is_a_queues_affair(void **state)
{
    (void)state;
    STACK(300, 0, { "train", OWN, 110 }, { "Queue.get", QUEUES, 100 },
          { "SemLock.__enter__", LOCKS, 95 });
    STACK(300, 0, { "train", OWN, 110 }, { "Event.wait", LOCKS, 350 });
    assert_near(read_lines().used_ns[PY_LOCK], 0, 0);
}

/* A data set that locks makes its step wait for a batch, and that is counted there. */
static void what_a_data_set_locks_is_loading(void **state)
{
    (void)state;
    STACK(300, 0, { "train", OWN, 110 }, { "__next__", LOADER, 600 },
          { "__getitem__", OWN, 210 }, { "SemLock.__enter__", LOCKS, 95 });
    const struct py_lines lines = read_lines();
    assert_near(lines.used_ns[PY_LOCK], 0, 0);
    assert_near(lines.used_ns[PY_LOADING], 300e6, 1);
}

/* A forked worker's stack goes on below its birth, in its parent's lines. */
static void what_a_forked_child_does_is_no_line_of_its_parent(void **state)
{
    (void)state;
    static struct py_thread threads[] = { { .pid = MAIN, .tid = MAIN, .wall_ns = 1e9 },
                                          { .pid = 71, .tid = 71, .wall_ns = 1e9 } };
    struct py_lines lines;
    uint32_t index;
    struct pystack_task_row *worker = append(PYSTACKS_TASKS, &index);
    *worker = (struct pystack_task_row){ .key = 1, .pid = 71, .tid = 71 };
    stack_task = index;
    STACK(700, 700, { "main", OWN, 118 }, { "Popen._launch", FORKS, 71 },
          { "fetch", LOADER, 458 });
    STACK(300, 300, { "main", OWN, 118 }, { "Popen._launch", FORKS, 71 },
          { "fetch", LOADER, 458 }, { "__getitem__", OWN, 210 });
    report.python.threads = threads;
    report.python.thread_count = 2;
    tables_close(&tables);
    assert_int_equal(pylines_read(&report, &lines), 0);
    assert_string_equal(lines.worker.function, "__getitem__");
    assert_int_equal(lines.worker.line, 210);
    assert_near(lines.worker.ns, 300e6, 1);
}

/* Of a loop of a second, and never more than steps have outside of zones. */
static void the_share_is_of_the_loop(void **state)
{
    (void)state;
    struct facts f;
    STACK(800, 0, { "train", OWN, 110 }, { "SemLock.__enter__", LOCKS, 95 });
    (void)read_lines();
    facts_init(&f);
    facts_of_python(&report, &f);
    assert_near(f.v[FACT_LOCK_SHARE], 0.8, 1e-9);
    facts_init(&f);
    f.v[FACT_OTHER_SHARE] = 0.5;
    facts_of_python(&report, &f);
    assert_near(f.v[FACT_LOCK_SHARE], 0.5, 1e-9);
    assert_string_equal(f.place[PLACE_LOCK], "train.py:110 in train");
    /* Nobody looked at Python. */
    report.python.present = false;
    facts_init(&f);
    facts_of_python(&report, &f);
    assert_false(fact_known(&f, FACT_LOCK_SHARE));
}

/* What steps take without a checkpoint is not known where every one has one. */
static double beside_checkpoints(double known)
{
    struct facts f;
    (void)read_lines();
    facts_init(&f);
    f.v[FACT_CHECKPOINT_BESIDE] = known;
    facts_of_python(&report, &f);
    return f.v[FACT_CHECKPOINT_BESIDE];
}

static void what_the_function_that_saves_does_besides_goes_with_it(void **state)
{
    (void)state;
    STACK(300, 300, { "main", OWN, 110 }, { "keep", OWN, 210 },
          { "save", SERIAL, 400 });
    STACK(200, 0, { "main", OWN, 110 }, { "keep", OWN, 220 });
    STACK(500, 500, { "main", OWN, 120 });
    assert_near(beside_checkpoints(NAN), 0.2, 1e-9);
}

static void what_was_measured_of_the_steps_wins(void **state)
{
    (void)state;
    STACK(300, 300, { "main", OWN, 110 }, { "keep", OWN, 210 },
          { "save", SERIAL, 400 });
    STACK(200, 0, { "main", OWN, 110 }, { "keep", OWN, 220 });
    assert_near(beside_checkpoints(0.05), 0.05, 1e-9);
}

static void a_loop_that_also_saves_stays(void **state)
{
    (void)state;
    STACK(200, 200, { "main", OWN, 110 }, { "save", SERIAL, 400 });
    STACK(800, 800, { "main", OWN, 120 });
    assert_true(isnan(beside_checkpoints(NAN)));
}

/* Eleven seconds of imports, one more before the first step, five of steps. */
static void long_imports_hide_no_compiling(void **state)
{
    (void)state;
    struct facts f;
    STACK(11000, 11000, { "main", OWN, 1 },
          { "load", "<frozen importlib._bootstrap>", 5 });
    STACK(4000, 4000, { "main", OWN, 120 }, { "script", JIT, 300 });
    STACK(2000, 2000, { "main", OWN, 130 });
    (void)read_lines();
    report.account = (struct step_account){
        .known = true, .steps = 50, .startup_ns = 12e9, .wall_ns = 17e9
    };
    report.python.threads[0].wall_ns = 17e9;
    facts_init(&f);
    facts_of_python(&report, &f);
    assert_near(f.v[FACT_COMPILE_SHARE], 3.0 / 5, 1e-9);
    report.python.threads[0].wall_ns = 1e9;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lock_of_the_programs_own_is_waited_for,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lock_that_is_free_is_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_queue_locks_is_a_queues_affair, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_a_data_set_locks_is_loading, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            what_a_forked_child_does_is_no_line_of_its_parent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_share_is_of_the_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_the_function_that_saves_does_besides_goes_with_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_measured_of_the_steps_wins, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_loop_that_also_saves_stays, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(long_imports_hide_no_compiling, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
