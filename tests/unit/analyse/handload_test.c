/* handload_test.c: whose time is loading by hand, told by stacks that are made up. */
#include "unit.h"

#include <string.h>

#include "analyse/handload.h"
#include "made_pystacks.h"

#define OWN     "/home/u/train.py"
#define OPTIM   "/usr/lib/python3/dist-packages/torch/optim/sgd.py"
#define NUMPY   "/usr/lib/python3/dist-packages/numpy/lib/npyio.py"
#define PATHS   "/usr/lib/python3.11/genericpath.py"
#define MODULES "/usr/lib/python3/dist-packages/torch/nn/modules/module.py"
#define LOGS    "/usr/lib/python3.11/logging/__init__.py"

static struct handload read_all(void)
{
    struct handload load;
    tables_close(&tables);
    assert_int_equal(handload_read(&report, &load), 0);
    return load;
}

static void train_for(uint64_t ms)
{
    STACK(ms, ms, { "main", OWN, 110 }, { "learn", OWN, 220 }, { "step", OPTIM, 110 });
    STACK(ms, ms, { "main", OWN, 110 }, { "learn", OWN, 215 },
          { "_call_impl", MODULES, 110 }, { "forward", OWN, 310 });
}

static void all_of_a_function_that_reads_and_does_not_train_is_loading(void **state)
{
    (void)state;
    train_for(100);
    STACK(30, 10, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "draw", OWN, 410 },
          { "load", NUMPY, 110 });
    STACK(50, 50, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "draw", OWN, 420 });
    STACK(20, 20, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "draw", OWN, 430 },
          { "getsize", PATHS, 110 });
    const struct handload load = read_all();
    assert_true(load.known);
    assert_near(load.wall_ns, 100e6, 1);
    assert_near(load.cpu_ns, 80e6, 1);
    assert_near(load.look_ns, 20e6, 1);
    assert_int_equal(load.line, 420);
    assert_string_equal(load.function, "draw");
}

static void of_a_loop_that_is_one_function_only_the_calls_that_read_are(void **state)
{
    (void)state;
    train_for(100);
    STACK(30, 30, { "main", OWN, 110 }, { "learn", OWN, 211 }, { "load", NUMPY, 110 });
    STACK(50, 50, { "main", OWN, 110 }, { "learn", OWN, 230 });
    const struct handload load = read_all();
    assert_near(load.wall_ns, 30e6, 1);
    assert_int_equal(load.line, 211);
}

/* What is read before the loop, written, logged, or made by another thread. */
static void what_is_not_the_loops_reading_is_not_counted(void **state)
{
    (void)state;
    train_for(100);
    STACK(10, 10, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "draw", OWN, 410 },
          { "load", NUMPY, 110 });
    STACK(70, 70, { "main", OWN, 105 }, { "prepare", OWN, 510 },
          { "load", NUMPY, 110 });
    STACK(60, 60, { "main", OWN, 110 }, { "learn", OWN, 240 }, { "keep", OWN, 610 },
          { "save", NUMPY, 110 });
    STACK(50, 50, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "draw", OWN, 440 },
          { "info", LOGS, 110 });
    assert_near(read_all().wall_ns, 10e6, 1);
}

/* open() and read() are in no library's frames: calls for files tell that there are
 * some, and the time outside of training whose they are. */
static void who_opens_files_in_every_step_is_who_is_at_it_longest(void **state)
{
    (void)state;
    train_for(100);
    STACK(60, 60, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "draw", OWN, 420 });
    STACK(30, 30, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "count", OWN, 510 });
    STACK(10, 10, { "main", OWN, 110 }, { "learn", OWN, 205 },
          { "__lt__", PATHS, 110 });
    STACK(90, 90, { "main", OWN, 105 }, { "make", OWN, 710 }, { "load", NUMPY, 110 });
    report.account = (struct step_account){ .known = true, .steps = 50 };
    report.io.hand = (struct io_hand){ .known = true, .opens = 200, .read_bytes = 900 };
    const struct handload load = read_all();
    assert_near(load.wall_ns, 70e6, 1); /* and the loop's own call that reads */
    assert_string_equal(load.function, "draw");
}

static void a_file_or_two_in_a_step_do_not_tell_whose_time_it_is(void **state)
{
    (void)state;
    train_for(100);
    STACK(60, 60, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "draw", OWN, 420 });
    report.account = (struct step_account){ .known = true, .steps = 50 };
    report.io.hand = (struct io_hand){ .known = true, .opens = 199, .read_bytes = 900 };
    assert_near(read_all().wall_ns, 0, 1);
}

static void who_reads_back_what_it_wrote_may_do_anything_meanwhile(void **state)
{
    (void)state;
    train_for(100);
    STACK(60, 60, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "roll", OWN, 420 });
    report.account = (struct step_account){ .known = true, .steps = 50 };
    report.io.hand = (struct io_hand){ .known = true, .opens = 500, .read_bytes = 900 };
    report.io.total[1].bytes = 450;
    assert_near(read_all().wall_ns, 0, 1);
}

static void nobody_is_taken_for_the_reader_with_less_than_half_of_the_time(void **state)
{
    (void)state;
    train_for(100);
    STACK(49, 49, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "draw", OWN, 420 });
    STACK(48, 48, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "count", OWN, 510 });
    STACK(3, 3, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "note", OWN, 610 });
    report.account = (struct step_account){ .known = true, .steps = 50 };
    report.io.hand = (struct io_hand){ .known = true, .opens = 500, .read_bytes = 900 };
    assert_near(read_all().wall_ns, 0, 1);
}

/* A client of a store: it waits, with files or without, and no matter who wrote them. */
static void who_waits_all_the_time_is_loading(void **state)
{
    (void)state;
    train_for(100);
    STACK(60, 12, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "get", OWN, 420 });
    STACK(40, 40, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "join", OWN, 510 });
    const struct handload load = read_all();
    assert_near(load.wall_ns, 60e6, 1);
    assert_near(load.cpu_ns, 12e6, 1);
    assert_string_equal(load.function, "get");
}

static void who_waits_below_what_writes_in_every_step_logs(void **state)
{
    (void)state;
    writing = "note";
    train_for(100);
    STACK(60, 2, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "note", OWN, 420 },
          { "<listcomp>", OWN, 520 });
    report.account = (struct step_account){ .known = true, .steps = 50 };
    report.io.hand = (struct io_hand){ .known = true,
                                       .writes_known = true,
                                       .write_steps = 25 };
    assert_near(read_all().wall_ns, 0, 1);
}

static void who_runs_a_fifth_of_the_time_does_something(void **state)
{
    (void)state;
    train_for(100);
    STACK(60, 13, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "get", OWN, 420 });
    assert_near(read_all().wall_ns, 0, 1);
}

static void waiting_for_ones_own_threads_is_no_loading(void **state)
{
    (void)state;
    train_for(100);
    STACK(60, 1, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "get", OWN, 420 },
          { "wait", "/usr/lib/python3.11/threading.py", 110 });
    assert_near(read_all().wall_ns, 0, 1);
}

static void a_program_that_does_not_train_is_not_known(void **state)
{
    (void)state;
    STACK(30, 10, { "main", OWN, 110 }, { "draw", OWN, 410 }, { "load", NUMPY, 110 });
    assert_false(read_all().known);
    report.python.present = false;
    struct handload load;
    assert_int_equal(handload_read(&report, &load), 0);
    assert_false(load.known);
}

/* Batches of data in memory: whoever is below a function that is called like it. A
 * simulator, a copy of the weights, or a batch made before the loop is not. */
static void what_prepares_data_is_known_by_its_name(void **state)
{
    (void)state;
    train_for(100);
    STACK(40, 30, { "main", OWN, 110 }, { "learn", OWN, 210 },
          { "Archive.Batches", OWN, 410 }, { "geometry", OWN, 510 });
    STACK(20, 20, { "main", OWN, 110 }, { "learn", OWN, 210 },
          { "Archive.Batches", OWN, 420 });
    STACK(70, 70, { "main", OWN, 110 }, { "learn", OWN, 210 }, { "move", OWN, 610 });
    STACK(60, 60, { "main", OWN, 105 }, { "make_batch", OWN, 710 });
    STACK(50, 50, { "main", OWN, 110 }, { "learn", OWN, 215 },
          { "fit_batch", OWN, 810 });
    STACK(50, 50, { "main", OWN, 110 }, { "learn", OWN, 215 },
          { "fit_batch", OWN, 820 }, { "step", OPTIM, 110 });
    struct handload made;
    tables_close(&tables);
    assert_int_equal(handload_made(&report, &made), 0);
    assert_true(made.known);
    assert_near(made.wall_ns, 60e6, 1);
    assert_near(made.cpu_ns, 50e6, 1);
    assert_string_equal(made.function, "geometry");
    assert_int_equal(made.line, 510);
    /* Nobody of them reads. */
    assert_int_equal(handload_read(&report, &made), 0);
    assert_near(made.wall_ns, 0, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_of_a_function_that_reads_and_does_not_train_is_loading),
        TEST(of_a_loop_that_is_one_function_only_the_calls_that_read_are),
        TEST(what_is_not_the_loops_reading_is_not_counted),
        TEST(who_opens_files_in_every_step_is_who_is_at_it_longest),
        TEST(a_file_or_two_in_a_step_do_not_tell_whose_time_it_is),
        TEST(who_reads_back_what_it_wrote_may_do_anything_meanwhile),
        TEST(nobody_is_taken_for_the_reader_with_less_than_half_of_the_time),
        TEST(who_waits_all_the_time_is_loading),
        TEST(who_waits_below_what_writes_in_every_step_logs),
        TEST(who_runs_a_fifth_of_the_time_does_something),
        TEST(waiting_for_ones_own_threads_is_no_loading),
        TEST(a_program_that_does_not_train_is_not_known),
        TEST(what_prepares_data_is_known_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
