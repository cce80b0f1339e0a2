/* ownwork_test.c: what a program does in its loop beside training, told by stacks that are
 * made up. */
#include "unit.h"

#include "analyse/ownwork.h"
#include "made_pystacks.h"

#define OWN     "/home/u/train.py"
#define OPTIM   "/usr/lib/python3/dist-packages/torch/optim/sgd.py"
#define TENSOR  "/usr/lib/python3/dist-packages/torch/_tensor.py"
#define LOADER  "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py"
#define MODULES "/usr/lib/python3/dist-packages/torch/nn/modules/module.py"
#define LOGS    "/usr/lib/python3.11/logging/__init__.py"

#define MAIN_                                                                          \
    {                                                                                  \
        "main", OWN, 110                                                               \
    }

static struct ownwork read_all(void)
{
    struct ownwork work;
    tables_close(&tables);
    assert_int_equal(ownwork_read(&report, &work), 0);
    return work;
}

/* main:110 → learn: model at 210, backward at 220, the optimizer at 230. */
static void train_for(uint64_t ms)
{
    STACK(ms, ms, MAIN_, { "learn", OWN, 210 }, { "_call_impl", MODULES, 110 },
          { "forward", OWN, 310 });
    STACK(ms, ms, MAIN_, { "learn", OWN, 220 }, { "backward", TENSOR, 110 });
    STACK(ms, ms, MAIN_, { "learn", OWN, 230 }, { "step", OPTIM, 110 });
}

static void what_is_called_beside_training_is_own_work(void **state)
{
    (void)state;
    train_for(100);
    STACK(30, 20, MAIN_, { "learn", OWN, 240 }, { "note", OWN, 410 });
    STACK(20, 20, MAIN_, { "learn", OWN, 225 }, { "watch", OWN, 510 });
    const struct ownwork work = read_all();
    assert_true(work.known);
    assert_near(work.wall_ns, 50e6, 1);
    assert_near(work.cpu_ns, 40e6, 1);
    assert_near(work.after_ns, 30e6, 1);
}

/* It names a module's parameters, which are the module's frames and no model's call. */
static void who_goes_through_the_weights_runs_no_model(void **state)
{
    (void)state;
    train_for(100);
    STACK(10, 10, MAIN_, { "learn", OWN, 240 }, { "note", OWN, 410 },
          { "named_parameters", MODULES, 900 });
    STACK(20, 20, MAIN_, { "learn", OWN, 240 }, { "note", OWN, 411 },
          { "row", OWN, 510 });
    assert_near(read_all().wall_ns, 30e6, 1);
}

/* The loop calls a function that does all of the training: what it calls behind that is
 * beside it too. */
static void the_loop_may_be_outside_of_what_trains(void **state)
{
    (void)state;
    train_for(100);
    STACK(30, 30, { "main", OWN, 115 }, { "note", OWN, 410 });
    assert_near(read_all().wall_ns, 30e6, 1);
}

/* Its lines themselves are the step's; so is what comes before the first backward: a batch,
 * a forward pass without modules, a loss. And the start is none of it. */
static void what_comes_before_backward_may_be_training(void **state)
{
    (void)state;
    train_for(100);
    STACK(10, 10, { "main", OWN, 105 }, { "write_files", OWN, 610 });
    STACK(20, 20, MAIN_, { "learn", OWN, 215 }, { "loss", OWN, 710 });
    STACK(40, 40, MAIN_, { "learn", OWN, 240 });
    STACK(80, 80, MAIN_, { "learn", OWN, 240 }, { "cross_entropy", MODULES, 240 });
    assert_near(read_all().wall_ns, 0, 1);
}

static void who_runs_a_model_evaluates(void **state)
{
    (void)state;
    train_for(100);
    STACK(50, 50, MAIN_, { "learn", OWN, 240 }, { "test", OWN, 410 },
          { "_call_impl", MODULES, 110 });
    STACK(30, 30, MAIN_, { "learn", OWN, 240 }, { "test", OWN, 420 });
    STACK(30, 30, MAIN_, { "learn", OWN, 240 }, { "test", OWN, 430 },
          { "print_table", OWN, 510 });
    STACK(30, 30, MAIN_, { "learn", OWN, 240 }, { "peek", OWN, 810 },
          { "__next__", LOADER, 110 });
    assert_near(read_all().wall_ns, 0, 1);
}

static void logging_is_own_work_too(void **state)
{
    (void)state;
    train_for(100);
    STACK(30, 30, MAIN_, { "learn", OWN, 240 }, { "note", OWN, 410 },
          { "info", LOGS, 110 });
    assert_near(read_all().wall_ns, 30e6, 1);
}

/* note() calls row(), which writes: all of row() is below what writes, a comprehension in it
 * too, and note() goes with it. */
static void who_is_below_a_function_that_writes_logs(void **state)
{
    (void)state;
    writing = "row";
    train_for(100);
    STACK(5, 5, MAIN_, { "learn", OWN, 240 }, { "note", OWN, 410 });
    STACK(30, 30, MAIN_, { "learn", OWN, 240 }, { "note", OWN, 411 },
          { "row", OWN, 510 }, { "<listcomp>", OWN, 612 });
    STACK(20, 20, MAIN_, { "learn", OWN, 240 }, { "note", OWN, 411 },
          { "row", OWN, 520 });
    STACK(40, 40, MAIN_, { "learn", OWN, 225 }, { "watch", OWN, 710 });
    const struct ownwork work = read_all();
    assert_near(work.wall_ns, 95e6, 1);
    assert_near(work.written_ns, 50e6, 1);
    assert_near(work.written_after_ns, 50e6, 1);
    assert_near(work.whole_ns, 55e6, 1);
    assert_string_equal(work.writer.function, "row");
    assert_int_equal(work.writer.line, 510);
    assert_near(work.writer.ns, 30e6, 1);
}

/* A simulator with a line that prints below it is not all logging. */
static void a_function_that_writes_a_little_stays(void **state)
{
    (void)state;
    writing = "show";
    train_for(100);
    STACK(90, 90, MAIN_, { "learn", OWN, 240 }, { "simulate", OWN, 410 });
    STACK(10, 10, MAIN_, { "learn", OWN, 240 }, { "simulate", OWN, 411 },
          { "show", OWN, 510 });
    const struct ownwork work = read_all();
    assert_near(work.written_ns, 10e6, 1);
    assert_near(work.whole_ns, 0, 1);
}

/* Files that are made before the loop, a test that prints, the loop itself, which prints its
 * epochs, and logging that is known by its library. */
static void not_all_that_writes_logs(void **state)
{
    (void)state;
    writing = "write_files test learn tell";
    train_for(100);
    STACK(50, 50, { "main", OWN, 105 }, { "write_files", OWN, 610 });
    STACK(50, 50, MAIN_, { "learn", OWN, 240 }, { "test", OWN, 410 },
          { "_call_impl", MODULES, 110 });
    STACK(50, 50, MAIN_, { "learn", OWN, 240 }, { "test", OWN, 420 });
    STACK(50, 50, MAIN_, { "learn", OWN, 250 });
    STACK(50, 50, MAIN_, { "learn", OWN, 240 }, { "tell", OWN, 710 },
          { "info", LOGS, 110 });
    assert_near(read_all().written_ns, 0, 1);
}

static void without_training_nothing_is_known(void **state)
{
    (void)state;
    STACK(30, 30, MAIN_, { "learn", OWN, 240 }, { "note", OWN, 410 });
    assert_false(read_all().known);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_called_beside_training_is_own_work),
        TEST(who_goes_through_the_weights_runs_no_model),
        TEST(the_loop_may_be_outside_of_what_trains),
        TEST(what_comes_before_backward_may_be_training),
        TEST(who_runs_a_model_evaluates),
        TEST(logging_is_own_work_too),
        TEST(who_is_below_a_function_that_writes_logs),
        TEST(a_function_that_writes_a_little_stays),
        TEST(not_all_that_writes_logs),
        TEST(without_training_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
