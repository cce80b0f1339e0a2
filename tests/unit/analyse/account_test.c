/* Where the time of steps went, on traces whose truth is known to the nanosecond. */
#include "unit.h"

#include "analyse/account.h"
#include "fake_trace.h"

enum { MAIN = 100 };
static const int64_t MS = 1000000;

static int forget(void **state)
{
    (void)state;
    fake_forget();
    return 0;
}

struct maker {
    struct trace *t;
    unsigned load, train, check, evaluate, inner;
    int64_t now;
};

static void put(struct maker *m, enum trace_event_kind kind, unsigned site,
                unsigned sub)
{
    fake_event(m->t, (struct trace_event){
                         .kind = kind, .time_ns = m->now, .site = site, .sub = sub });
}

static void zone(struct maker *m, unsigned site, int64_t ns)
{
    put(m, TRACE_BEGIN, site, 0);
    m->now += ns;
    put(m, TRACE_END, site, 0);
}

static void start(struct maker *m, uint64_t steps)
{
    *m = (struct maker){ .t = fake_trace("a.sonde", MAIN), .now = 1000 * MS };
    struct trace_lane *lane = fake_lane(m->t, 0, MAIN, "main");
    lane->steps = steps;
    m->load = fake_site(m->t, "load", SONDE_DATA_LOADING, "a.c", 1);
    m->train = fake_site(m->t, "train", SONDE_FORWARD, "a.c", 2);
    m->check = fake_site(m->t, "save", SONDE_CHECKPOINT, "a.c", 3);
    m->evaluate = fake_site(m->t, "evaluate", SONDE_EVALUATION, "a.c", 4);
    m->inner = fake_site(m->t, "inner", SONDE_FORWARD, "a.c", 5);
}

/* 3 ms loading, 6 ms training, 1 ms outside of zones. */
static void step(struct maker *m)
{
    put(m, TRACE_STEP, 0, STEP_NEXT);
    zone(m, m->load, 3 * MS);
    zone(m, m->train, 6 * MS);
    m->now += 1 * MS;
}

static struct step_account finish(struct maker *m, int64_t from)
{
    struct step_account a;
    assert_int_equal(account_read(m->t, from, m->now, &a), 0);
    return a;
}

/* However it is cut, nothing is lost and nothing counted twice. */
static void check_sums(const struct step_account *a, double wall_ns)
{
    double shares = 0;
    assert_near(a->wall_ns, wall_ns, 1);
    for (int p = 0; p < SONDE_PHASE_COUNT; p++)
        shares += a->phases.share[p];
    assert_near(shares, 1, 1e-9);
}

static void every_nanosecond_is_in_one_part_and_one_phase(void **state)
{
    (void)state;
    struct maker m;
    start(&m, 50);
    m.now += 500 * MS;
    for (int i = 0; i < 50; i++)
        step(&m);
    put(&m, TRACE_STEP, 0, STEP_END);
    m.now += 70 * MS;
    const struct step_account a = finish(&m, 1000 * MS);
    check_sums(&a, 500e6 + 50 * 10e6 + 70e6);
    assert_int_equal(a.steps, 50);
    assert_int_equal(a.warmup, 0);
    assert_near(a.startup_ns, 500e6, 1);
    assert_near(a.end_ns, 70e6, 1);
    assert_near(a.median_ns, 10e6, 1);
    assert_near(a.phases.share[SONDE_DATA_LOADING], 0.3, 1e-9);
    assert_near(a.phases.share[SONDE_FORWARD], 0.6, 1e-9);
    assert_near(a.phases.share[SONDE_OTHER], 0.1, 1e-9);
}

static void slow_first_steps_are_warm_up(void **state)
{
    (void)state;
    struct maker m;
    start(&m, 40);
    for (int i = 0; i < 40; i++) {
        step(&m);
        if (i < 3)
            m.now += 40 * MS;
    }
    put(&m, TRACE_STEP, 0, STEP_END);
    const struct step_account a = finish(&m, 1000 * MS);
    check_sums(&a, 40 * 10e6 + 3 * 40e6);
    assert_int_equal(a.warmup, 3);
    assert_near(a.warmup_ns, 150e6, 1);
    assert_near(a.phases.share[SONDE_OTHER], 0.1, 1e-9);
}

/* Told late: what came behind the last one's work is no step, and nothing is lost. */
static void a_step_that_ended_earlier_ends_with_its_work(void **state)
{
    (void)state;
    struct maker m;
    start(&m, 40);
    const unsigned work = fake_site(m.t, "update", SONDE_OPTIMIZER, "a.c", 6);
    for (int i = 0; i < 40; i++) {
        put(&m, TRACE_STEP, 0, STEP_NEXT);
        zone(&m, m.load, 4 * MS);
        zone(&m, work, 6 * MS);
    }
    zone(&m, m.evaluate, 300 * MS);
    m.now += 200 * MS;
    fake_event(m.t, (struct trace_event){ .kind = TRACE_STEP,
                                          .time_ns = m.now,
                                          .sub = STEP_END,
                                          .wall_ns = 500e6 });
    const struct step_account a = finish(&m, 1000 * MS);
    check_sums(&a, 40 * 10e6 + 500e6);
    assert_int_equal(a.steps, 40);
    assert_near(a.p99_ns, 10e6, 1);
    assert_near(a.evaluation_ns, 300e6, 1);
    assert_near(a.end_ns, 200e6, 1);
    assert_near(a.phases.share[SONDE_OPTIMIZER], 0.6, 1e-9);
}

/* Inner zones of an evaluation are evaluation, whatever they are called. */
static void checkpoints_and_evaluations_are_no_part_of_their_step(void **state)
{
    (void)state;
    struct maker m;
    start(&m, 40);
    for (int i = 0; i < 40; i++) {
        step(&m);
        if (i % 10 == 9)
            zone(&m, m.check, 20 * MS);
        if (i % 20 == 19) {
            put(&m, TRACE_BEGIN, m.evaluate, 0);
            zone(&m, m.inner, 30 * MS);
            m.now += 5 * MS;
            put(&m, TRACE_END, m.evaluate, 0);
        }
    }
    put(&m, TRACE_STEP, 0, STEP_END);
    const struct step_account a = finish(&m, 1000 * MS);
    check_sums(&a, 40 * 10e6 + 4 * 20e6 + 2 * 35e6);
    assert_near(a.checkpoint_ns, 80e6, 1);
    assert_int_equal(a.checkpoints, 4);
    assert_near(a.evaluation_ns, 70e6, 1);
    assert_int_equal(a.evaluations, 2);
    assert_near(a.median_ns, 10e6, 1);
    assert_near(a.phases.share[SONDE_FORWARD], 0.6, 1e-9);
}

/* Ranking what the model answered is in no zone: between two answers it is evaluating;
 * behind the last nobody knows, and before a training pass it is not. */
static void what_lies_between_two_evaluations_is_evaluating(void **state)
{
    (void)state;
    struct maker m;
    start(&m, 40);
    for (int i = 0; i < 40; i++) {
        step(&m);
        if (i % 20 != 19)
            continue;
        for (int batch = 0; batch < 3; batch++) {
            zone(&m, m.evaluate, 10 * MS);
            m.now += 30 * MS;
        }
    }
    put(&m, TRACE_STEP, 0, STEP_END);
    const struct step_account a = finish(&m, 1000 * MS);
    check_sums(&a, 40 * 10e6 + 2 * 120e6);
    assert_near(a.evaluation_ns, 2 * (3 * 10e6 + 2 * 30e6), 1);
    assert_int_equal(a.evaluations, 2);
}

/* Saved every fourth step; 5 ms behind it the file is synced, in no zone, and the step
 * after that takes 2 ms longer. */
static void what_a_checkpoint_brings_with_it_is_told_from_steps_without(void **state)
{
    (void)state;
    struct maker m;
    start(&m, 200);
    for (int i = 0; i < 200; i++) {
        step(&m);
        if (i % 4 == 1)
            m.now += 2 * MS;
        if (i % 4 == 0) {
            zone(&m, m.check, 20 * MS);
            m.now += 5 * MS;
        }
    }
    put(&m, TRACE_STEP, 0, STEP_END);
    const struct step_account a = finish(&m, 1000 * MS);
    assert_int_equal(a.checkpoints, 50);
    assert_near(a.checkpoint_ns, 50 * 20e6, 1);
    assert_near(account_beside_ns(&a, EXTRA_CHECKPOINT), 50 * 7e6, 20e6);
    assert_near(account_beside_ns(&a, EXTRA_EVALUATION), 0, 0);
}

/* Every second step evaluates: those behind are the usual ones. In every step: nobody
 * knows. */
static void without_usual_steps_nothing_is_known_beside(void **state)
{
    (void)state;
    for (int every = 1; every <= 2; every++) {
        struct maker m;
        start(&m, 100);
        for (int i = 0; i < 100; i++) {
            step(&m);
            if (i % every == 0) {
                zone(&m, m.evaluate, 20 * MS);
                m.now += 5 * MS;
            }
        }
        put(&m, TRACE_STEP, 0, STEP_END);
        const struct step_account a = finish(&m, 1000 * MS);
        if (every == 1)
            assert_true(isnan(account_beside_ns(&a, EXTRA_EVALUATION)));
        else
            assert_near(account_beside_ns(&a, EXTRA_EVALUATION), 50 * 5e6, 10e6);
        fake_forget();
    }
}

static void a_pause_and_the_step_behind_it_are_the_change_of_an_epoch(void **state)
{
    (void)state;
    struct maker m;
    start(&m, 60);
    for (int epoch = 0; epoch < 3; epoch++) {
        for (int i = 0; i < 20; i++) {
            step(&m);
            if (i == 0 && epoch > 0)
                m.now += 100 * MS; /* workers start */
        }
        put(&m, TRACE_STEP, 0, STEP_END);
        m.now += 25 * MS;
    }
    const struct step_account a = finish(&m, 1000 * MS);
    check_sums(&a, 60 * 10e6 + 2 * 100e6 + 3 * 25e6);
    assert_int_equal(a.steps, 60);
    assert_int_equal(a.epochs, 2);
    assert_near(a.epoch_ns, 200e6, 1);
    assert_near(a.between_ns, 50e6, 1);
    assert_near(a.end_ns, 25e6, 1);
    assert_near(a.mean_ns, 10e6, 1);
}

static void a_step_taken_back_is_none(void **state)
{
    (void)state;
    struct maker m;
    start(&m, 30);
    for (int i = 0; i < 30; i++)
        step(&m);
    put(&m, TRACE_STEP, 0, STEP_NEXT);
    m.now += 50 * MS;
    put(&m, TRACE_STEP, 0, STEP_SAMPLES);
    m.now += 50 * MS;
    put(&m, TRACE_STEP, 0, STEP_CANCEL);
    m.now += 10 * MS;
    const struct step_account a = finish(&m, 1000 * MS);
    check_sums(&a, 30 * 10e6 + 110e6);
    assert_int_equal(a.steps, 30);
    assert_near(a.end_ns, 110e6, 1);
}

static void many_steps_need_no_more_memory(void **state)
{
    (void)state;
    struct maker m;
    start(&m, 800);
    for (int i = 0; i < 800; i++) {
        step(&m);
        if (i % 8 == 7)
            m.now += 30 * MS; /* every eighth takes 40 ms */
    }
    put(&m, TRACE_STEP, 0, STEP_END);
    const struct step_account a = finish(&m, 1000 * MS);
    check_sums(&a, 800 * 10e6 + 100 * 30e6);
    assert_int_equal(a.steps, 800);
    assert_int_equal(a.slow, 100);
    assert_near(a.slow_ns, 100 * 30e6, 1e3);
    assert_near(a.p95_ns, 40e6, 1);
}

static void a_program_without_steps_has_no_account(void **state)
{
    (void)state;
    struct maker m;
    start(&m, 0);
    zone(&m, m.load, 5 * MS);
    assert_false(finish(&m, 1000 * MS).known);
}

/* The series is what the points are; every second one counts double here. */
static void drift_and_jumps_are_told_from_noise(void **state)
{
    (void)state;
    struct step_series s = { .per_point = 1 };
    struct step_account a = { .known = true, .median_ns = 10e6, .drift = NAN };
    for (int i = 0; i < 200; i++)
        s.points[s.count++].mean_ns = 10e6 + (i * 7919 % 100 - 50) * 1e4;
    assert_int_equal(account_trend(&a, &s), 0);
    assert_true(a.drift_low < 0 && a.drift_high > 0);
    assert_int_equal(a.change_count, 0);
    for (int i = 0; i < 200; i++)
        s.points[i].mean_ns += i >= 120 ? 5e6 : 0;
    assert_int_equal(account_trend(&a, &s), 0);
    assert_int_equal(a.change_count, 1);
    assert_int_equal(a.changes[0].at, 120);
    assert_true(a.drift_low > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_nanosecond_is_in_one_part_and_one_phase,
                                  forget),
        cmocka_unit_test_teardown(slow_first_steps_are_warm_up, forget),
        cmocka_unit_test_teardown(a_step_that_ended_earlier_ends_with_its_work, forget),
        cmocka_unit_test_teardown(checkpoints_and_evaluations_are_no_part_of_their_step,
                                  forget),
        cmocka_unit_test_teardown(what_lies_between_two_evaluations_is_evaluating,
                                  forget),
        cmocka_unit_test_teardown(
            what_a_checkpoint_brings_with_it_is_told_from_steps_without, forget),
        cmocka_unit_test_teardown(without_usual_steps_nothing_is_known_beside, forget),
        cmocka_unit_test_teardown(
            a_pause_and_the_step_behind_it_are_the_change_of_an_epoch, forget),
        cmocka_unit_test_teardown(a_step_taken_back_is_none, forget),
        cmocka_unit_test_teardown(many_steps_need_no_more_memory, forget),
        cmocka_unit_test_teardown(a_program_without_steps_has_no_account, forget),
        cmocka_unit_test(drift_and_jumps_are_told_from_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
