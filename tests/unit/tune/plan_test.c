#include "tune/plan.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "unit.h"

/* A loader without workers, and what is known of it. */
struct stated {
    struct facts f;
    struct pipeline pipe;
    struct plan_known known;
};

static void state_run(struct stated *s)
{
    facts_init(&s->f);
    s->f.v[FACT_CORES] = 2;
    s->f.v[FACT_INPUT_SHARE] = 0.8;
    s->pipe = (struct pipeline){ .known = true,
                                 .prefetch = 2,
                                 .cores = 2,
                                 .step_ns = 1e7,
                                 .compute_ns = 2e6,
                                 .make_ns = 8e6,
                                 .transform_share = NAN,
                                 .collate_share = NAN };
    s->known = (struct plan_known){ &s->f, &s->pipe, "train.py:41" };
}

static struct plan cure_of(struct stated *s, const char *id, const char *place)
{
    char why[PLAN_WHY] = "";
    struct plan p;
    const struct finding f = { .id = id, .place = place, .gain = { 0.2, 0.4, 0.5 } };
    if (plan_cure(&s->known, &f, &p, why) != 0)
        fail_msg("%s: %s", id, why);
    return p;
}

static struct plan asked_for(struct stated *s, const char *text)
{
    char error[WHATIF_ERROR_LEN], why[PLAN_WHY] = "";
    struct settings settings = whatif_now(&s->pipe);
    struct plan p;
    assert_int_equal(whatif_parse(text, &settings, error), 0);
    if (plan_asked(&s->known, text, &settings, &p, why) != 0)
        fail_msg("%s: %s", text, why);
    return p;
}

static json_t *written(const struct plan *p)
{
    const struct plan_course course = { .scratch = "/tmp/s \"x\"",
                                        .outcome = "/tmp/s/o",
                                        .steps = 60,
                                        .warmup = 10,
                                        .last = 420,
                                        .seconds = 120,
                                        .least_s = 2 };
    struct buf text = BUF_INIT;
    plan_write(p, &course, &text);
    json_t *root = json_loadb(text.data, text.len, 0, NULL);
    buf_release(&text);
    assert_non_null(root);
    return root;
}

static double number(const json_t *root, const char *key, const char *inner)
{
    const json_t *o = json_object_get(root, key);
    return json_number_value(inner ? json_object_get(o, inner) : o);
}

static void settings_of_the_loader_are_for_the_loader_that_trains(void **state)
{
    (void)state;
    struct stated s;
    state_run(&s);
    const struct plan p = asked_for(&s, "workers=4,prefetch=3");
    json_t *root = written(&p);
    assert_near(number(root, "loader", "workers"), 4, 0);
    assert_near(number(root, "loader", "prefetch"), 3, 0);
    assert_string_equal(json_string_value(json_object_get(root, "place")),
                        "train.py:41");
    assert_string_equal(json_string_value(json_object_get(root, "scratch")),
                        "/tmp/s \"x\"");
    assert_near(number(root, "last", NULL), 420, 0);
    assert_near(number(root, "least_s", NULL), 2, 0);
    assert_null(json_object_get(root, "sample"));
    assert_false(p.by_loop);
    json_decref(root);
}

static void of_a_sample_what_is_no_transform_stays(void **state)
{
    (void)state;
    struct stated s;
    state_run(&s);
    s.pipe.transform_share = 0.6; /* of a batch, of which a fifth is collating */
    s.pipe.collate_share = 0.2;
    const struct plan p = asked_for(&s, "transform=4");
    assert_near(p.sample_left, 1 - 0.75 + 0.75 / 4, 1e-9);
    assert_near(p.sample_least_us, 0, 0);
    s.pipe.transform_share = NAN;
    assert_near(asked_for(&s, "transform=4").sample_left, 0.25, 1e-9);
}

static void of_a_sample_what_is_no_file_stays_as_in_the_prediction(void **state)
{
    (void)state;
    struct stated s;
    state_run(&s);
    s.f.v[FACT_BATCH_SIZE] = 10;
    s.f.v[FACT_OPEN_SHARE] = 0;
    s.f.v[FACT_READ_SHARE] =
        0.3; /* of making a batch, and around reads as much again */
    s.f.v[FACT_READ_KB] = 0.01;
    s.f.v[FACT_READS_PER_STEP] = 100;
    assert_near(cure_of(&s, "small_reads", "").sample_left, 0.4, 1e-9);
    /* A fifth of a batch is collating: the files were three quarters of a sample. */
    s.pipe.collate_share = 0.2;
    assert_near(cure_of(&s, "small_reads", "").sample_left, 0.25, 1e-9);
    assert_near(cure_of(&s, "small_reads", "").sample_least_us, 20, 0);
    /* Opens go where files become few, not where reads become larger. */
    s.pipe.collate_share = NAN;
    s.f.v[FACT_OPEN_SHARE] = 0.1;
    assert_near(cure_of(&s, "small_reads", "").sample_left, 0.4, 1e-9);
    assert_near(cure_of(&s, "metadata_bound", "").sample_left, 0.2, 1e-9);
    /* Nothing but files: 10 samples of 20 µs in 8 ms. */
    s.f.v[FACT_READ_SHARE] = 0.9;
    assert_near(cure_of(&s, "small_reads", "").sample_left, 0.2 / 8, 1e-9);
    /* The model knows nothing of files: what the finding says stays. */
    s.f.v[FACT_READ_SHARE] = NAN;
    assert_near(cure_of(&s, "small_reads", "").sample_left, 1 - 0.4 / 0.8, 1e-9);
}

static void a_loop_that_loads_by_itself_has_its_function_kept(void **state)
{
    (void)state;
    struct stated s;
    char why[PLAN_WHY];
    struct plan p;
    const struct finding reads = { .id = "small_reads",
                                   .place = "/data/x.bin",
                                   .gain = { 0.1, 0.4, 0.5 } };
    state_run(&s);
    s.pipe.by_hand = true;
    assert_int_equal(plan_cure(&s.known, &reads, &p, why), -ENOTSUP);
    s.f.place[PLACE_TRANSFORM] = "strips.py:12 in read_strip";
    p = cure_of(&s, "small_reads", "/data/x.bin");
    assert_string_equal(p.memo_place, "strips.py:12 in read_strip");
    assert_near(p.memo_left, 1 - 0.4 / 0.8, 1e-9); /* the prediction's */
    assert_true(isnan(p.sample_left));
}

static void rarer_work_is_measured_by_the_loop_where_it_lies_between_steps(void **state)
{
    (void)state;
    struct stated s;
    state_run(&s);
    s.f.place[PLACE_LOG] = "weir_gates.py:27 in line";
    const struct plan log = asked_for(&s, "logging=20");
    assert_int_equal(log.rare_count, 1);
    assert_string_equal(log.rare[0].place, "weir_gates.py:27 in line");
    assert_false(log.by_loop);
    assert_true(asked_for(&s, "evaluation=10").by_loop);
    assert_true(asked_for(&s, "checkpoint=10").by_loop);
    json_t *root = written(&log);
    const json_t *one = json_array_get(json_object_get(root, "seldom"), 0);
    assert_near(json_number_value(json_object_get(one, "times")), 20, 0);
    assert_string_equal(json_string_value(json_object_get(one, "what")), "logging");
    json_decref(root);
}

static void a_finding_is_cured_as_its_advice_says(void **state)
{
    (void)state;
    struct stated s;
    state_run(&s);
    s.f.v[FACT_WORKERS_BEST] = 8;
    assert_int_equal(cure_of(&s, "data_loading_bound", "").workers, 8);
    assert_string_equal(cure_of(&s, "data_loading_bound", "").asked, "workers=8");
    assert_string_equal(cure_of(&s, "data_loading_bound", "").finding,
                        "data_loading_bound");
    assert_near(cure_of(&s, "metadata_bound", "").sample_least_us, 20, 0);
    assert_true(cure_of(&s, "slow_samples", "").even);
    assert_true(cure_of(&s, "gc_pauses", "").gc_freeze);
    assert_int_equal(cure_of(&s, "oversubscribed", "").threads, 2);
    assert_true(cure_of(&s, "precision_unused", "").single);
    assert_true(cure_of(&s, "padding_waste", "").alike);
    assert_near(cure_of(&s, "allocation_churn", "").keep_mb, 1024, 0);
    s.f.v[FACT_MEMORY_LIMIT_MB] = 8192;
    assert_near(cure_of(&s, "allocation_churn", "").keep_mb, 2048, 0);
    s.f.v[FACT_WORKERS] = 3; /* each process keeps its own */
    assert_near(cure_of(&s, "allocation_churn", "").keep_mb, 512, 0);
    s.f.v[FACT_EVALUATION_SHARE] = 0.5; /* to be a tenth: nine times as rare */
    assert_near(cure_of(&s, "evaluation_heavy", "").rare[0].times, 9, 0);
    s.f.v[FACT_BATCH_SIZE] = 4;
    assert_near(cure_of(&s, "batch_too_small", "").batch, 16, 0);
}

static void batches_made_by_hand_are_larger_by_their_rows(void **state)
{
    (void)state;
    struct stated s;
    state_run(&s);
    s.known.loader = "";
    s.f.v[FACT_BATCH_SIZE] = 3.97; /* the last one of each epoch is smaller */
    const struct plan asked = asked_for(&s, "batch=8");
    assert_true(asked.by_loop);
    json_t *root = written(&asked);
    assert_near(number(root, "rows", "from"), 4, 0);
    assert_near(number(root, "rows", "times"), 8, 0);
    assert_null(json_object_get(root, "loader"));
    json_decref(root);
    const struct plan cure = cure_of(&s, "batch_too_small", "");
    assert_near(cure.rows, 4, 0);
    assert_near(cure.batch, 16, 0);
    s.known.loader = "train.py:41"; /* a loader makes them: it is asked for more */
    const struct plan loaded = asked_for(&s, "batch=8");
    root = written(&loaded);
    assert_null(json_object_get(root, "rows"));
    assert_near(number(root, "loader", "batch"), 8, 0);
    json_decref(root);
}

static void batches_of_an_unknown_size_are_not_enlarged(void **state)
{
    (void)state;
    struct stated s;
    struct plan p;
    char why[PLAN_WHY] = "";
    const struct finding f = { .id = "batch_too_small", .place = "" };
    state_run(&s);
    s.known.loader = "";
    assert_int_equal(plan_cure(&s.known, &f, &p, why), -ENOTSUP);
    assert_non_null(strstr(why, "not known"));
}

static void a_thread_with_the_lock_becomes_a_process(void **state)
{
    (void)state;
    struct stated s;
    state_run(&s);
    const struct plan p = cure_of(&s, "gil_contention", "watch.py:9 in scan");
    json_t *root = written(&p);
    const json_t *place = json_object_get(json_object_get(root, "apart"), "place");
    assert_string_equal(json_string_value(place), "watch.py:9 in scan");
    json_decref(root);
    /* Where no line was seen, the layer looks for a thread that computes. */
    const struct plan q = cure_of(&s, "gil_contention", "");
    root = written(&q);
    place = json_object_get(json_object_get(root, "apart"), "place");
    assert_string_equal(json_string_value(place), "");
    json_decref(root);
    const struct plan other = cure_of(&s, "gc_pauses", "");
    root = written(&other);
    assert_null(json_object_get(root, "apart"));
    json_decref(root);
}

static void an_optimizer_gives_way_to_torchs_own_unless_it_is_asked_how_fast(
    void **state)
{
    (void)state;
    struct stated s;
    state_run(&s);
    const struct plan own = cure_of(&s, "optimizer_bound", "");
    const struct plan asked = asked_for(&s, "optimizer=4");
    json_t *root = written(&own);
    assert_near(number(root, "foreach", NULL), 1, 0);
    assert_null(json_object_get(root, "optimizer"));
    json_decref(root);
    root = written(&asked);
    assert_near(number(root, "optimizer", NULL), 4, 0);
    assert_null(json_object_get(root, "foreach"));
    json_decref(root);
}

static void padding_without_a_loader_is_refused(void **state)
{
    (void)state;
    struct stated s;
    struct plan p;
    char why[PLAN_WHY] = "";
    const struct finding f = { .id = "padding_waste", .place = "" };
    state_run(&s);
    s.known.loader = "";
    assert_int_equal(plan_cure(&s.known, &f, &p, why), -ENOTSUP);
    assert_non_null(strstr(why, "no loader"));
}

static void what_nothing_can_stand_for_is_refused_with_the_reason(void **state)
{
    (void)state;
    struct stated s;
    struct plan p;
    static const char *const none[] = { "slow_blas", "memory_leak",
                                        "sync_stall" /* without a place */,
                                        "epoch_boundary_stall" /* no workers */ };
    state_run(&s);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char why[PLAN_WHY] = "";
        const struct finding f = { .id = none[i], .place = "" };
        assert_int_equal(plan_cure(&s.known, &f, &p, why), -ENOTSUP);
        assert_true(why[0] != '\0');
    }
    char why[PLAN_WHY] = "";
    struct settings exchange = whatif_now(&s.pipe);
    exchange.exchange = 4;
    assert_int_equal(plan_asked(&s.known, "exchange=4", &exchange, &p, why), -ENOTSUP);
    assert_true(why[0] != '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_of_the_loader_are_for_the_loader_that_trains),
        cmocka_unit_test(of_a_sample_what_is_no_transform_stays),
        cmocka_unit_test(of_a_sample_what_is_no_file_stays_as_in_the_prediction),
        cmocka_unit_test(a_loop_that_loads_by_itself_has_its_function_kept),
        cmocka_unit_test(
            rarer_work_is_measured_by_the_loop_where_it_lies_between_steps),
        cmocka_unit_test(a_finding_is_cured_as_its_advice_says),
        cmocka_unit_test(batches_made_by_hand_are_larger_by_their_rows),
        cmocka_unit_test(batches_of_an_unknown_size_are_not_enlarged),
        cmocka_unit_test(a_thread_with_the_lock_becomes_a_process),
        cmocka_unit_test(
            an_optimizer_gives_way_to_torchs_own_unless_it_is_asked_how_fast),
        cmocka_unit_test(padding_without_a_loader_is_refused),
        cmocka_unit_test(what_nothing_can_stand_for_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
