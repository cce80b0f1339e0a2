/* The measured cases are those of BUDGETS ("Loading and preprocessing"). */
#include "analyse/whatif.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "unit.h"

static double speedup(const struct pipeline *p, int workers)
{
    const struct settings s = { .workers = workers,
                                .prefetch = 2,
                                .transform_speed = 1 };
    return p->step_ns / whatif_predict(p, &s).step_ns;
}

static bool covers(const struct pipeline *p, int workers, double measured)
{
    const struct settings s = { .workers = workers,
                                .prefetch = 2,
                                .transform_speed = 1 };
    const struct forecast f = whatif_predict(p, &s);
    return p->step_ns / f.high_ns <= measured && measured <= p->step_ns / f.low_ns;
}

/* 4 ms of waiting per sample and half a millisecond of work, 2 cores; one sample a
 * batch, nothing to ship, a consumer that does nothing. */
static const struct pipeline waiting = {
    .known = true,
    .workers = 0,
    .prefetch = 2,
    .cores = 2,
    .step_ns = 4.5e6,
    .make_ns = 4.5e6,
    .make_cpu_ns = 0.5e6,
    .compute_ns = 0,
    .compute_cpu_ns = 0,
    .transform_share = NAN,
    .ship_ns = NAN,
    .receive_ns = NAN,
    .batch_mb = 0,
};

static void waits_scale_beyond_the_cores(void **state)
{
    (void)state;
    static const struct {
        int workers;
        double measured;
    } rows[] = { { 1, 0.99 }, { 2, 1.98 }, { 4, 3.93 }, { 8, 7.1 }, { 12, 9.5 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_near(speedup(&waiting, rows[i].workers) / rows[i].measured, 1, 0.15);
        assert_true(covers(&waiting, rows[i].workers, rows[i].measured));
    }
    assert_true(whatif_best(&waiting).workers > 2);
}

/* CPU-bound, batches of 4.9 MB, 2 cores: every number of workers made it slower, 0.57
 * to 0.44 times. */
static const struct pipeline shipping = {
    .known = true,
    .workers = 0,
    .prefetch = 2,
    .cores = 2,
    .step_ns = 5.6e6,
    .make_ns = 5.6e6,
    .make_cpu_ns = 5.6e6,
    .compute_ns = 0,
    .compute_cpu_ns = 0,
    .transform_share = NAN,
    .ship_ns = NAN,
    .receive_ns = NAN,
    .batch_mb = 4.9,
};

static void workers_do_not_help_when_shipping_costs_more(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 8; workers++) {
        const double s = speedup(&shipping, workers);
        assert_true(s < 0.65);
        assert_true(s > 0.40);
    }
    assert_true(covers(&shipping, 1, 0.57));
    assert_true(covers(&shipping, 2, 0.50));
    assert_true(covers(&shipping, 4, 0.44));
    assert_int_equal(whatif_best(&shipping).workers, 0);
}

/* 16 cores, 3×224×224 floats: 677 samples a second in the process; 909, 1,671, 2,920 and
 * 2,847 with 2, 4, 8 and 14 workers. */
static void the_main_process_bounds_what_many_workers_ship(void **state)
{
    (void)state;
    const struct pipeline p = {
        .known = true,
        .workers = 0,
        .prefetch = 2,
        .cores = 16,
        .step_ns = 1e9 / 677,
        .make_ns = 1e9 / 677,
        .make_cpu_ns = 1e9 / 677,
        .compute_ns = 0,
        .compute_cpu_ns = 0,
        .transform_share = NAN,
        .ship_ns = NAN,
        .receive_ns = NAN,
        .batch_mb = 3 * 224 * 224 * 4 / 1048576.0,
    };
    static const struct {
        int workers;
        double rate;
    } rows[] = { { 2, 909 }, { 4, 1671 }, { 8, 2920 }, { 14, 2847 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_near(677 * speedup(&p, rows[i].workers) / rows[i].rate, 1, 0.15);
        assert_true(covers(&p, rows[i].workers, rows[i].rate / 677));
    }
    const int best = whatif_best(&p).workers;
    assert_true(best >= 6 && best <= 10);
}

/* All the work in the main process, then two workers on two cores: 47.7 ms became 25.5
 * (unpacking plates), 37.3 became 26.4 (spectrograms). */
static void two_workers_on_two_cores_share_them(void **state)
{
    (void)state;
    static const struct {
        double make_ns, compute_ns, mb, measured_ns;
    } rows[] = { { 43.7e6, 4.0e6, 0.32, 25.5e6 }, { 27.4e6, 9.9e6, 0.95, 26.4e6 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pipeline p = waiting;
        p.make_ns = p.make_cpu_ns = rows[i].make_ns;
        p.compute_ns = p.compute_cpu_ns = rows[i].compute_ns;
        p.step_ns = p.make_ns + p.compute_ns;
        p.batch_mb = rows[i].mb;
        const double ratio = p.step_ns / rows[i].measured_ns / speedup(&p, 2);
        assert_true(ratio > 1 / 1.35 && ratio < 1.35);
        assert_true(covers(&p, 2, p.step_ns / rows[i].measured_ns));
    }
}

static void the_run_itself_comes_out_as_it_was(void **state)
{
    (void)state;
    struct pipeline p = shipping;
    p.workers = 2;
    p.step_ns = 11.3e6;
    const struct settings now = whatif_now(&p);
    assert_near(whatif_predict(&p, &now).step_ns, 11.3e6, 1e3);
}

/* What changes little is known well; what takes most of a step away is not. */
static void the_more_goes_the_less_sure_it_is(void **state)
{
    (void)state;
    const struct settings now = whatif_now(&waiting);
    const struct settings eight = { .workers = 8, .prefetch = 2, .transform_speed = 1 };
    const struct forecast same = whatif_predict(&waiting, &now);
    const struct forecast less = whatif_predict(&waiting, &eight);
    assert_true(same.high_ns / same.low_ns < 1.4);
    assert_true(less.step_ns < 0.2 * waiting.step_ns);
    assert_true(less.high_ns >= 1.3 * less.step_ns);
    assert_true(less.low_ns <= less.step_ns / 1.3);
    assert_near(forecast_unsure(0), 1.08, 1e-9);
    assert_near(forecast_unsure(-3), 1.08, 1e-9);
    assert_near(forecast_unsure(1), 1.35, 1e-9);
}

static void data_for_free_leaves_the_computing(void **state)
{
    (void)state;
    struct pipeline p = waiting;
    p.compute_ns = 3e6;
    p.step_ns = p.make_ns + p.compute_ns;
    const struct settings s = { .data_free = true };
    /* … and caches that stay warm: 0.31 ms less after 4.5 ms of something else. */
    assert_near(whatif_predict(&p, &s).step_ns, 3e6 - 0.31e6, 0.01e6);
    assert_int_equal(whatif_predict(&p, &s).limit, LIMIT_COMPUTE);
}

static void one_worker_hides_what_the_step_covers(void **state)
{
    (void)state;
    struct pipeline p = waiting;
    p.compute_ns = p.compute_cpu_ns = 6e6;
    p.step_ns = p.make_ns + p.compute_ns;
    const struct settings s = { .workers = 1, .prefetch = 2, .transform_speed = 1 };
    assert_near(whatif_predict(&p, &s).step_ns / 6e6, 1, 0.05);
}

static void computing_on_all_cores_leaves_none_for_workers(void **state)
{
    (void)state;
    struct pipeline p = waiting;
    p.make_cpu_ns = p.make_ns = 5e6;
    p.compute_ns = 5e6;
    p.compute_cpu_ns = 10e6; /* both cores */
    p.step_ns = 10e6;
    const double with_two = speedup(&p, 2);
    assert_true(with_two < 1.2);
}

/* 36.5 ms of unpacking and 14.3 ms of one thread's computing (weld_seams): two workers on
 * two cores took 24.7 ms. Where BLAS's threads spin in the one process they do in each
 * worker: 37.3 ms became 26.4 (hydrophone_calls). */
static void two_workers_have_cores_of_their_own_unless_threads_spin(void **state)
{
    (void)state;
    struct pipeline p = waiting;
    p.make_cpu_ns = p.make_ns = 36.5e6;
    p.compute_ns = p.compute_cpu_ns = 14.3e6;
    p.step_ns = 50.8e6;
    const struct settings s = { .workers = 2, .prefetch = 2, .transform_speed = 1 };
    const double calm = whatif_predict(&p, &s).step_ns;
    assert_near(calm / 24.7e6, 1, 0.15);
    p.spinning_cores = 1;
    const double spinning = whatif_predict(&p, &s).step_ns;
    assert_true(spinning > 1.15 * calm);
    /* It computes with both cores: they are not the workers'. */
    p.spinning_cores = NAN;
    p.compute_cpu_ns = 1.5 * p.compute_ns;
    assert_true(whatif_predict(&p, &s).step_ns > 1.15 * calm);
}

/* Were cores all that counts, eleven workers on two would do as well as four. */
static void taking_turns_costs_something(void **state)
{
    (void)state;
    struct pipeline p = waiting;
    p.make_cpu_ns = p.make_ns = p.step_ns = 20e6;
    assert_true(speedup(&p, 11) < 0.95 * speedup(&p, 4));
    assert_true(speedup(&p, 11) < speedup(&p, 2));
    assert_true(speedup(&p, 11) > 0.8 * speedup(&p, 2));
}

static void a_faster_transform_counts_for_its_share(void **state)
{
    (void)state;
    struct pipeline p = waiting;
    p.transform_share = 0.5;
    const struct settings s = { .workers = 0, .transform_speed = 2 };
    assert_near(whatif_predict(&p, &s).step_ns / p.step_ns, 0.75, 1e-6);
}

/* One batch in twenty takes twenty times as long: with little prefetch the order makes
 * the others wait, with more of it they are hidden. */
/* One worker, 10 ms a batch, 2 ms of computing, 1 ms to take it. */
static const struct pipeline fed = {
    .known = true,
    .workers = 1,
    .prefetch = 2,
    .cores = 4,
    .step_ns = 10e6,
    .make_ns = 10e6,
    .make_cpu_ns = 10e6,
    .compute_ns = 2e6,
    .compute_cpu_ns = 2e6,
    .transform_share = NAN,
    .ship_ns = 0,
    .receive_ns = 1e6,
    .batch_mb = 0,
};

/* Of 5 ms the collate function takes 4, the transform the rest. */
static void a_faster_collate_function_counts_for_its_share(void **state)
{
    (void)state;
    struct pipeline p = waiting;
    p.make_ns = p.make_cpu_ns = 50e6;
    p.compute_ns = p.compute_cpu_ns = 40e6;
    p.step_ns = 90e6;
    p.collate_share = 0.8;
    p.transform_share = 0.5; /* no more than the rest of it */
    struct settings s = whatif_now(&p);
    s.collate_speed = 10;
    assert_near(whatif_predict(&p, &s).step_ns, 40e6 + 10e6 + 4e6, 1e6);
    s.transform_speed = 10;
    assert_near(whatif_predict(&p, &s).step_ns, 40e6 + 1e6 + 4e6, 1e6);
    /* Workers make it beside the step: it is no longer what the step waits for. */
    p.workers = 2;
    p.cores = 4;
    p.make_ns = p.make_cpu_ns = 180e6;
    s.workers = 2;
    s.transform_speed = 1;
    assert_near(whatif_predict(&p, &s).step_ns, 41e6, 4e6);
}

static void what_is_left_of_making_a_batch_bounds_the_step(void **state)
{
    (void)state;
    struct settings s = whatif_now(&fed);
    s.make_part = 0.5;
    assert_near(whatif_predict(&fed, &s).step_ns, 5e6, 0.3e6);
    s.make_part = 0.05; /* then the main process has its own work to do */
    assert_near(whatif_predict(&fed, &s).step_ns, 3e6 - 0.38e6, 0.1e6);
}

static void workers_that_do_less_leave_cores_to_the_step(void **state)
{
    (void)state;
    struct pipeline p = fed;
    struct settings s = whatif_now(&p);
    p.compute_ns = 8e6;
    p.compute_wait_ns = 5e6;
    s.data_free = true;
    assert_near(whatif_predict(&p, &s).step_ns, 3e6, 0.7e6);
    /* Without workers there was nobody of its own to wait for. */
    p.workers = s.workers = 0;
    p.step_ns = 18e6;
    assert_near(whatif_predict(&p, &s).step_ns, 8e6 - 0.5e6, 0.1e6);
}

/* Eight workers that have little to do, whose batches of many tensors take long to take. */
static void without_workers_the_cores_are_the_steps_own(void **state)
{
    (void)state;
    const struct pipeline p = { .known = true,
                                .workers = 8,
                                .prefetch = 2,
                                .cores = 2,
                                .step_ns = 22e6,
                                .make_ns = 2e6,
                                .make_cpu_ns = 2e6,
                                .compute_ns = 12e6,
                                .compute_cpu_ns = 8e6,
                                .compute_wait_ns = 4e6,
                                .transform_share = NAN,
                                .ship_ns = 1e6,
                                .receive_ns = 10e6,
                                .batch_mb = 0.3 };
    const struct settings none = { .workers = 0, .prefetch = 2, .transform_speed = 1 };
    assert_near(whatif_predict(&p, &none).step_ns, 8e6 + 2e6 - 0.4e6, 0.1e6);
    /* parking_bays: what nobody can explain of the step goes with them. */
    struct pipeline longer = p;
    longer.step_ns = 100e6;
    longer.receive_ns = 0;
    assert_near(whatif_predict(&longer, &none).step_ns, 8e6 + 2e6, 0.1e6);
}

/* Batches of 10 MiB that torch puts together in shared memory, 9 of 10 ms; the main thread
 * computes 8 ms, of which 3 are their pages. Without workers a copy is left, 3.1 ms, and
 * none of the pages. */
static void without_workers_nothing_is_shared(void **state)
{
    (void)state;
    struct pipeline p = fed;
    struct settings s = whatif_now(&p);
    p.compute_ns = p.compute_cpu_ns = 8e6;
    p.step_ns = 10e6;
    p.batch_mb = 10;
    p.shared_collate_ns = 9e6;
    s.workers = 0;
    const double none = whatif_predict(&p, &s).step_ns;
    assert_near(none, 5e6 + 1e6 + 3.1e6, 0.3e6);
    /* Its own collate is not known to share anything. */
    p.shared_collate_ns = NAN;
    assert_near(whatif_predict(&p, &s).step_ns - none, 9e6 - 3.1e6, 0.3e6);
    /* Small batches have few pages. */
    p.batch_mb = 0.01;
    p.shared_collate_ns = 9e6;
    assert_near(whatif_predict(&p, &s).step_ns, 18e6, 0.3e6);
}

/* A second of a batch's making between two steps costs a long step a millisecond, a short
 * one 0.6 of it; steps that follow each other at once cost nothing. */
static void a_step_that_begins_warm_is_shorter(void **state)
{
    (void)state;
    struct pipeline p = waiting;
    struct settings s = whatif_now(&p);
    p.make_ns = p.make_cpu_ns = 1e9;
    p.compute_ns = p.compute_cpu_ns = 50e6;
    p.step_ns = 1050e6;
    s.data_free = true;
    assert_near(whatif_predict(&p, &s).step_ns, 49.01e6, 0.02e6);
    p.compute_ns = p.compute_cpu_ns = 0.3e6;
    p.step_ns = 1000.3e6;
    assert_near(whatif_predict(&p, &s).step_ns, 0.12e6, 0.003e6);
    p.make_ns = p.make_cpu_ns = 0.01e6;
    p.step_ns = 0.31e6;
    assert_near(whatif_predict(&p, &s).step_ns, 0.3e6, 0.002e6);
}

/* Two workers and the step filled two cores: 140 ms of CPU time in 70. That their threads
 * were worth whole ones is measured, and of the step nothing is taken for it. */
static void what_a_thread_is_worth_is_taken_from_a_full_machine(void **state)
{
    (void)state;
    struct pipeline p = fed;
    p.workers = p.cores = 2;
    p.step_ns = 70e6;
    p.make_ns = p.make_cpu_ns = 118e6;
    p.compute_ns = 30e6;
    p.compute_wait_ns = 10e6;
    p.compute_cpu_ns = 20e6;
    p.receive_ns = 2e6;
    struct settings s = whatif_now(&p);
    assert_near(whatif_predict(&p, &s).step_ns, 70e6, 1e3);
    s.make_part = 0.01;
    assert_near(whatif_predict(&p, &s).step_ns, 22e6, 1.5e6);
}

static void others_on_the_machine_widen_the_range(void **state)
{
    (void)state;
    struct pipeline p = fed;
    const struct settings s = { .workers = 4, .prefetch = 2, .transform_speed = 1 };
    const struct forecast alone = whatif_predict(&p, &s);
    p.foreign_cores = 2;
    const struct forecast crowded = whatif_predict(&p, &s);
    assert_true(crowded.high_ns / crowded.low_ns > alone.high_ns / alone.low_ns);
}

static void prefetch_hides_tails(void **state)
{
    (void)state;
    struct distribution d = { 0 };
    distribution_add(&d, 95, 1e6, 0, 1e6, 1e6);
    distribution_add(&d, 5, 20e6, 0, 20e6, 20e6);
    assert_int_equal(distribution_add_bucket(&d, 1e6, 95), 0);
    assert_int_equal(distribution_add_bucket(&d, 20e6, 5), 0);
    distribution_settle(&d);
    struct pipeline p = waiting;
    p.make = &d;
    p.make_ns = d.mean;
    p.make_cpu_ns = 0.1e6;
    p.compute_ns = p.compute_cpu_ns = 1.2e6;
    p.step_ns = p.make_ns + p.compute_ns;
    const struct settings little = { .workers = 2,
                                     .prefetch = 1,
                                     .transform_speed = 1 };
    const struct settings much = { .workers = 2, .prefetch = 16, .transform_speed = 1 };
    assert_true(whatif_predict(&p, &much).step_ns <
                0.9 * whatif_predict(&p, &little).step_ns);
    distribution_release(&d);
}

static void settings_are_read_from_words(void **state)
{
    (void)state;
    char error[WHATIF_ERROR_LEN];
    struct settings s = { .workers = 1, .prefetch = 2, .transform_speed = 1 };
    assert_int_equal(whatif_parse("workers=4,prefetch=8", &s, error), 0);
    assert_int_equal(s.workers, 4);
    assert_int_equal(s.prefetch, 8);
    assert_int_equal(whatif_parse("collate=8", &s, error), 0);
    assert_near(s.collate_speed, 8, 0);
    assert_int_equal(whatif_parse("transform=2.5 data=free", &s, error), 0);
    assert_near(s.transform_speed, 2.5, 0);
    assert_true(s.data_free);
    assert_true(s.loader);
    struct settings loop = { 0 };
    assert_int_equal(
        whatif_parse("evaluation=20,checkpoint=7.5 logging=50,gc=9,batch=8,optimizer=4",
                     &loop, error),
        0);
    assert_near(loop.evaluation, 20, 0);
    assert_near(loop.checkpoint, 7.5, 0);
    assert_near(loop.logging, 50, 0);
    assert_near(loop.gc, 9, 0);
    assert_near(loop.batch, 8, 0);
    assert_near(loop.optimizer, 4, 0);
    assert_false(loop.loader);
    static const char *const wrong[] = { "workers",
                                         "workers=-1",
                                         "workers=1.5",
                                         "workers=x",
                                         "prefetch=0",
                                         "data=cheap",
                                         "transform=0",
                                         "worker=2",
                                         "workers=100000",
                                         "transform=nan",
                                         "evaluation=0.5",
                                         "checkpoint=0",
                                         "batch=nan",
                                         "logging=x",
                                         "batch=-2",
                                         "collate=0",
                                         "optimizer=0.5",
                                         ",",
                                         "",
                                         "workers=2,workers=4" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(whatif_parse(wrong[i], &s, error), -EINVAL);
        assert_int_equal(s.workers, 4);
    }
}

/* Who has the words right and a number too large is told the number. */
static void a_value_out_of_range_is_told_its_range(void **state)
{
    (void)state;
    static const struct {
        const char *text, *told;
    } rows[] = {
        { "workers=100000",
          "workers cannot be '100000': a whole number from 0 to 512" },
        { "evaluation=1e12", "1,000,000 at most" },
        { "transform=0", "above 0" },
        { ",", "names no setting" },
        { "workers=2,workers=4", "workers stands there twice" },
        { "prefetch=2 workers=2 prefetch=2", "prefetch stands there twice" },
        { "worker=2", "'worker=2' is not workers=N" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct settings s = { 0 };
        char error[WHATIF_ERROR_LEN] = "";
        assert_int_equal(whatif_parse(rows[i].text, &s, error), -EINVAL);
        if (!strstr(error, rows[i].told))
            fail_msg("'%s' does not say '%s'", error, rows[i].told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_out_of_range_is_told_its_range),
        cmocka_unit_test(waits_scale_beyond_the_cores),
        cmocka_unit_test(workers_do_not_help_when_shipping_costs_more),
        cmocka_unit_test(the_main_process_bounds_what_many_workers_ship),
        cmocka_unit_test(two_workers_on_two_cores_share_them),
        cmocka_unit_test(two_workers_have_cores_of_their_own_unless_threads_spin),
        cmocka_unit_test(the_run_itself_comes_out_as_it_was),
        cmocka_unit_test(the_more_goes_the_less_sure_it_is),
        cmocka_unit_test(data_for_free_leaves_the_computing),
        cmocka_unit_test(one_worker_hides_what_the_step_covers),
        cmocka_unit_test(computing_on_all_cores_leaves_none_for_workers),
        cmocka_unit_test(taking_turns_costs_something),
        cmocka_unit_test(a_faster_transform_counts_for_its_share),
        cmocka_unit_test(a_faster_collate_function_counts_for_its_share),
        cmocka_unit_test(what_is_left_of_making_a_batch_bounds_the_step),
        cmocka_unit_test(workers_that_do_less_leave_cores_to_the_step),
        cmocka_unit_test(without_workers_nothing_is_shared),
        cmocka_unit_test(a_step_that_begins_warm_is_shorter),
        cmocka_unit_test(without_workers_the_cores_are_the_steps_own),
        cmocka_unit_test(what_a_thread_is_worth_is_taken_from_a_full_machine),
        cmocka_unit_test(others_on_the_machine_widen_the_range),
        cmocka_unit_test(prefetch_hides_tails),
        cmocka_unit_test(settings_are_read_from_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
