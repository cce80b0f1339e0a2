/* What is taken from a report, and that missing stays missing. */
#include "fake_training.h"

#include <math.h>

#include "analyse/facts.h"
#include "analyse/thresholds.h"

static void open_run(struct training *t)
{
    char json[2048];
    (void)snprintf(json, sizeof json, training_json, "0", "null", "ok");
    training_traces(t);
    training_open(t, json);
}

/* No monitors, no samples, no loader, no files: none of their facts may have a value. */
static void what_nobody_measured_is_unknown(void **state)
{
    (void)state;
    static const enum fact known[] = {
        FACT_RUN_S,
        FACT_LOOP_S,
        FACT_STEPS,
        FACT_STEP_MS,
        FACT_STEP_P99_MS,
        FACT_STEADY_SHARE,
        FACT_STARTUP_S,
        FACT_STARTUP_SHARE,
        FACT_IMPORT_S, /* a program without Python imports nothing */
        FACT_WARMUP_SHARE,
        FACT_EPOCH_SHARE,
        FACT_EPOCHS,
        FACT_CHECKPOINT_SHARE,
        FACT_CHECKPOINTS,
        FACT_EVALUATION_SHARE,
        FACT_SLOW_STEP_SHARE,
        FACT_SLOW_STEPS,
        FACT_DRIFT,
        FACT_WAIT_SHARE,
        FACT_PREPROCESSING_SHARE,
        FACT_COLLATE_SHARE,
        FACT_INPUT_SHARE,
        FACT_TRANSFER_SHARE,
        FACT_FORWARD_SHARE,
        FACT_BACKWARD_SHARE,
        FACT_OPTIMIZER_SHARE,
        FACT_SYNC_SHARE,
        FACT_COMMUNICATION_SHARE,
        FACT_OTHER_SHARE,
        FACT_STEP_MEAN_MS,
        FACT_EVALUATIONS,
        FACT_CHECKPOINT_BESIDE, /* none, so nothing beside them */
        FACT_EVALUATION_BESIDE,
        FACT_CORES,
        FACT_CPU_CORES,
        FACT_RSS_MB,
        FACT_MEMORY_LIMIT_MB,
        FACT_MEMORY_SHARE,
        FACT_GPUS,
        FACT_RANKS,
    };
    struct training t = { 0 };
    struct facts f;
    open_run(&t);
    assert_int_equal(facts_read(t.report, &f), 0);
    for (int fact = 1; fact < FACT_COUNT; fact++) {
        bool may = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            may |= known[i] == (enum fact)fact;
        if (!may && fact_known(&f, (enum fact)fact))
            fail_msg("%s is %g", fact_infos[fact].metric, f.v[fact]);
    }
    training_free(&t);
}

static void steps_come_from_the_account(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct facts f;
    open_run(&t);
    assert_int_equal(facts_read(t.report, &f), 0);
    assert_near(f.v[FACT_RUN_S], 10, 1e-9);
    assert_near(f.v[FACT_STEPS], 99, 0);
    assert_near(f.v[FACT_STEP_MS], 91, 0.5);
    assert_near(f.v[FACT_STARTUP_S], 0.3, 1e-6);
    assert_near(f.v[FACT_SLOW_STEPS], 1, 0);
    assert_near(f.v[FACT_MEMORY_SHARE], 512.5 / 131072, 1e-9);
    training_free(&t);
}

/* A run of which nothing but time is known gets no finding. */
static void little_data_give_no_finding(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct thresholds limits;
    open_run(&t);
    assert_int_equal(t.report->diagnosis.finding_count, 0);
    assert_true(t.report->diagnosis.unchecked_count > 20);
    thresholds_init(&limits);
    assert_int_equal(thresholds_use_set(&limits, "reference"), 0);
    assert_int_equal(report_diagnose(t.report, &limits), 0);
    assert_int_equal(t.report->diagnosis.finding_count, 0);
    training_free(&t);
}

/* ---- Places and shapes --------------------------------------------------------------- */

static struct facts with_loader(struct training *t, struct loader *l)
{
    struct facts f;
    t->report->loaders.list = l;
    t->report->loaders.count = 1;
    assert_int_equal(facts_read(t->report, &f), 0);
    t->report->loaders.count = 0;
    return f;
}

/* The zone of loading is at data.c:33: where that is the line of DataLoader(…) itself, it
 * says nothing about what makes samples. */
static void without_a_line_the_class_that_makes_samples_is_named(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct loader_transform resize = { .name = "Resize", .share = 0.5 };
    struct loader l = { .file = "/home/u/data.c",
                        .line = 33,
                        .dataset = "Pictures",
                        .objects = "",
                        .batch_size = -1,
                        .ready_share = NAN };
    open_run(&t);
    struct facts f = with_loader(&t, &l);
    assert_string_equal(f.place[PLACE_LOADER], "data.c:33");
    assert_string_equal(f.place[PLACE_TRANSFORM], "Pictures.__getitem__");
    l.transforms = &resize;
    l.transform_count = 1;
    f = with_loader(&t, &l);
    assert_string_equal(f.place[PLACE_TRANSFORM], "Pictures.__getitem__ (Resize)");
    l.iterable = true;
    l.dataset = "";
    l.transform_count = 0;
    f = with_loader(&t, &l);
    assert_string_equal(f.place[PLACE_TRANSFORM], "the data set.__iter__");
    l.line = 99;
    f = with_loader(&t, &l);
    assert_string_equal(f.place[PLACE_TRANSFORM], "data.c:33"); /* a line is better */
    training_free(&t);
}

static void rows_are_the_batch_where_no_loader_trains(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct facts f;
    struct loader l = { .file = "",
                        .dataset = "",
                        .objects = "",
                        .batch_size = 64,
                        .training = true,
                        .ready_share = NAN };
    open_run(&t);
    t.report->loaders.rows = (struct distribution){ .count = 7, .mean = 2 };
    assert_int_equal(facts_read(t.report, &f), 0);
    assert_false(fact_known(&f, FACT_BATCH_SIZE)); /* too few calls to tell */
    t.report->loaders.rows.count = 8;
    assert_int_equal(facts_read(t.report, &f), 0);
    assert_near(f.v[FACT_BATCH_SIZE], 2, 0);
    assert_near(f.v[FACT_BATCH_ROWS], 2, 0);
    assert_non_null(strstr(f.source[FACT_BATCH_SIZE], "rows"));
    f = with_loader(&t, &l);
    assert_near(f.v[FACT_BATCH_SIZE], 64, 0);
    assert_false(fact_known(&f, FACT_BATCH_ROWS));
    training_free(&t);
}

static void padding_is_what_is_not_filled(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct facts f;
    open_run(&t);
    t.report->loaders.cells = 400;
    t.report->loaders.filled = 100;
    assert_int_equal(facts_read(t.report, &f), 0);
    assert_near(f.v[FACT_PADDING_SHARE], 0.75, 1e-12);
    training_free(&t);
}

/* ---- What comes from workers --------------------------------------------------------- */

/* Half of the batches had come before their turn and cost nothing then; the others took
 * 2 ms, or 20 where their worker computed. */
static void taken(struct distribution *d)
{
    distribution_add(d, 50, 0, 0, 0, 0);
    distribution_add(d, 30, 2e6, 0, 2e6, 2e6);
    distribution_add(d, 20, 20e6, 0, 20e6, 20e6);
    assert_int_equal(distribution_add_bucket(d, 0, 50), 0);
    assert_int_equal(distribution_add_bucket(d, 2e6, 30), 0);
    assert_int_equal(distribution_add_bucket(d, 20e6, 20), 0);
    distribution_settle(d);
}

static void batches_before_their_turn_are_no_quick_ones(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct pipeline p;
    struct loader_worker w = { .busy_s = 9, .alive_s = 10 };
    struct loader l = { .file = "", .dataset = "", .objects = "", .num_workers = 1 };
    taken(&l.receive.d);
    distribution_add(&l.make.d, 100, 5e6, 0, 5e6, 5e6);
    distribution_add(&l.batch_bytes, 100, 1 << 20, 0, 1 << 20, 1 << 20);
    l.workers = &w;
    l.worker_count = 1;
    open_run(&t);
    t.report->loaders.list = &l;
    t.report->loaders.count = 1;
    pipeline_of(t.report, &p);
    assert_near(p.receive_idle_ns, 2e6, 0.05e6);
    assert_true(p.receive_ns <= 2.7e6); /* a worker that computes answers late */
    t.report->loaders.count = 0;
    distribution_release(&l.receive.d);
    training_free(&t);
}

/* Forty tensors a batch, and a worker that waits for work: nobody answered late. */
static void what_an_idle_worker_sends_takes_what_it_takes(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct pipeline p;
    struct loader_worker w = { .busy_s = 1, .alive_s = 10 };
    struct loader l = { .file = "", .dataset = "", .objects = "", .num_workers = 1 };
    distribution_add(&l.receive.d, 100, 13e6, 0, 13e6, 13e6);
    assert_int_equal(distribution_add_bucket(&l.receive.d, 13e6, 100), 0);
    distribution_settle(&l.receive.d);
    distribution_add(&l.make.d, 100, 5e6, 0, 5e6, 5e6);
    distribution_add(&l.batch_bytes, 100, 1 << 18, 0, 1 << 18, 1 << 18);
    l.workers = &w;
    l.worker_count = 1;
    open_run(&t);
    t.report->loaders.list = &l;
    t.report->loaders.count = 1;
    pipeline_of(t.report, &p);
    assert_near(p.receive_ns, 13e6, 0.2e6);
    t.report->loaders.count = 0;
    distribution_release(&l.receive.d);
    training_free(&t);
}

static void batches_read_from_workers_are_no_files(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct io_by_zone zones[] = {
        { .zone = "DataLoader.next", .phase = SONDE_DATA_LOADING },
        { .zone = "Pictures.__getitem__", .phase = SONDE_DATA_LOADING },
    };
    zones[0].calls[0] = zones[1].calls[0] = 99;
    zones[0].ns[0] = 3e9;
    zones[1].ns[0] = 1e9;
    struct loader_worker w = { .busy_s = 4, .alive_s = 10 };
    struct loader l = { .file = "",
                        .dataset = "",
                        .objects = "",
                        .num_workers = 1,
                        .training = true,
                        .ready_share = NAN,
                        .workers = &w,
                        .worker_count = 1 };
    open_run(&t);
    t.report->io.captured = t.report->io.hand.known = true;
    t.report->io.zones = zones;
    t.report->io.zone_count = 2;
    struct facts f = with_loader(&t, &l);
    assert_near(f.v[FACT_READ_SHARE], 0.25, 1e-6);
    l.num_workers = 0; /* then next() itself reads */
    l.worker_count = 0;
    t.report->readers_ns = 0;
    distribution_add(&l.make.d, 100, 80e6, 0, 80e6, 80e6);
    f = with_loader(&t, &l);
    assert_near(f.v[FACT_READ_SHARE], 0.5, 1e-6);
    t.report->io.zones = NULL;
    t.report->io.zone_count = 0;
    training_free(&t);
}

/* ---- Loading by hand -------------------------------------------------------------------- */

/* 99 steps of 91 ms, half of them in no zone. */
static void by_hand(struct training *t, struct facts *ret_facts)
{
    t->report->io.captured = true;
    t->report->account.phases.share[SONDE_OTHER] = 0.5;
    assert_int_equal(facts_read(t->report, ret_facts), 0);
}

/* Imports read more files than data sets, and are nobody's illness. */
static void what_imports_read_is_no_data(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct facts f;
    struct io_path paths[] = {
        { .path = "(installed modules)", .io_class = IO_CLASS_FILE, .opens = 2000 },
        { .path = "/data/a.bin", .io_class = IO_CLASS_FILE, .opens = 198 },
    };
    paths[0].side[0].calls = 4000;
    paths[0].side[0].ns = 1e9;
    paths[1].side[0].calls = 198;
    paths[1].side[0].ns = 1e6;
    open_run(&t);
    t.report->io.captured = true;
    t.report->io.paths = paths;
    t.report->io.path_count = 2;
    assert_int_equal(facts_read(t.report, &f), 0);
    assert_near(f.v[FACT_OPENS_PER_STEP], 2, 1e-9);
    assert_string_equal(f.place[PLACE_READ], "/data/a.bin");
    t.report->io.paths = NULL;
    t.report->io.path_count = 0;
    training_free(&t);
}

/* Of all pipes of a run together; beside workers they are queues, not logs. */
static void pipes_of_workers_are_no_logs(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct facts f;
    struct io_path pipes = { .path = "(pipes)", .io_class = IO_CLASS_PIPE };
    pipes.side[1].calls = 100000;
    pipes.side[1].bytes = 1000000;
    pipes.side[1].ns = 1e9;
    open_run(&t);
    t.report->io.captured = true;
    t.report->io.paths = &pipes;
    t.report->io.path_count = 1;
    assert_int_equal(facts_read(t.report, &f), 0);
    assert_true(f.v[FACT_SYNC_IO_SHARE] > 0);
    struct loader l = {
        .file = "", .dataset = "", .objects = "", .training = true, .num_workers = 2
    };
    f = with_loader(&t, &l);
    assert_near(f.v[FACT_WORKERS], 2, 0);
    assert_near(f.v[FACT_SYNC_IO_SHARE], 0, 0);
    t.report->io.paths = NULL;
    t.report->io.path_count = 0;
    training_free(&t);
}

static void calls_in_steps_are_input_where_there_is_no_loader(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct facts f;
    open_run(&t);
    const double all_ns = t.report->account.mean_ns * 99;
    struct io_hand *h = &t.report->io.hand;
    *h = (struct io_hand){ .known = true,
                           .steps = 98,
                           .opens = 990,
                           .looks = 9900,
                           .reads = 990,
                           .small_reads = 990,
                           .read_bytes = 99000,
                           .open_ns = 0.1 * all_ns,
                           .look_ns = 0.2 * all_ns,
                           .read_ns = 0.1 * all_ns };
    const double zones = t.report->account.phases.share[SONDE_DATA_LOADING] +
                         t.report->account.phases.share[SONDE_PREPROCESSING];
    by_hand(&t, &f);
    assert_near(f.v[FACT_INPUT_SHARE] - zones, 0.4, 1e-6);
    assert_near(f.v[FACT_OTHER_SHARE], 0.1, 1e-6);
    assert_near(f.v[FACT_OPEN_SHARE], 0.75, 1e-6);
    assert_near(f.v[FACT_READ_SHARE], 0.25, 1e-6);
    assert_near(f.v[FACT_OPENS_PER_STEP], 10, 1e-6);
    assert_near(f.v[FACT_LOOKS_PER_STEP], 100, 1e-6);
    assert_near(f.v[FACT_SMALL_READ_SHARE], 1, 1e-6);
    /* What is made of the bytes nobody saw. */
    assert_false(fact_known(&f, FACT_TRANSFORM_OF_SAMPLE));
    assert_non_null(strstr(f.source[FACT_INPUT_SHARE], "I/O calls"));
    h->look_ns = 5 * all_ns; /* never more than there is outside of zones */
    by_hand(&t, &f);
    assert_near(f.v[FACT_INPUT_SHARE] - zones, 0.5, 1e-6);
    assert_true(f.v[FACT_OPEN_SHARE] <= 1);
    training_free(&t);
}

static void reading_now_and_then_or_beside_a_loader_is_none(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct facts f;
    open_run(&t);
    struct io_hand *h = &t.report->io.hand;
    const double zones = t.report->account.phases.share[SONDE_DATA_LOADING] +
                         t.report->account.phases.share[SONDE_PREPROCESSING];
    *h = (struct io_hand){ .known = true, .steps = 49, .read_ns = 1e9, .reads = 500 };
    by_hand(&t, &f);
    assert_near(f.v[FACT_INPUT_SHARE], zones, 1e-9); /* not in every other step */
    h->steps = 50;
    by_hand(&t, &f);
    assert_true(f.v[FACT_INPUT_SHARE] > zones + 0.05);
    struct loader l = { .file = "",
                        .dataset = "",
                        .objects = "",
                        .batch_size = 64,
                        .training = true,
                        .ready_share = NAN };
    f = with_loader(&t, &l);
    assert_near(f.v[FACT_INPUT_SHARE], zones, 1e-9);
    h->known = false; /* an older run: nothing was counted */
    by_hand(&t, &f);
    assert_near(f.v[FACT_INPUT_SHARE], zones, 1e-9);
    training_free(&t);
}

/* Asked what a transform three times as fast would bring: without a list of transforms it
 * is what is left of loading when calls for files are taken away. */
static void what_if_knows_transforms_without_a_loader(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct facts f;
    struct pipeline p;
    open_run(&t);
    const double step = t.report->account.mean_ns;
    t.report->io.hand = (struct io_hand){
        .known = true, .steps = 98, .reads = 990, .read_ns = 0.4 * step * 99
    };
    pipeline_of(t.report, &p);
    assert_false(p.known);
    by_hand(&t, &f);
    pipeline_of(t.report, &p);
    assert_true(p.known && p.by_hand && p.workers == 0);
    assert_near(p.make_ns, 0.4 * step, 1);
    assert_near(p.compute_ns, 0.6 * step, 1);
    assert_true(isnan(p.transform_share)); /* no stacks: nobody knows */
    assert_true(isnan(p.make_cpu_ns));
    t.report->hand_cpu_share = 0.25; /* as stacks of a store's client say */
    pipeline_of(t.report, &p);
    assert_near(p.make_cpu_ns, 0.1 * step, 1);
    t.report->hand_cpu_share = NAN;
    t.report->transform_of_load = 0.75;
    pipeline_of(t.report, &p);
    struct settings s = whatif_now(&p);
    s.transform_speed = 3;
    /* Two thirds of three quarters of 0.4 go; caches are no colder than they were. */
    assert_near(whatif_predict(&p, &s).step_ns / step, 0.8, 0.01);
    t.report->io.hand.known = false;
    by_hand(&t, &f);
    pipeline_of(t.report, &p);
    assert_false(p.known);
    training_free(&t);
}

static void every_fact_has_a_name_a_unit_and_a_source(void **state)
{
    (void)state;
    for (int i = 1; i < FACT_COUNT; i++) {
        assert_true(fact_infos[i].metric[0] && fact_infos[i].unit[0] &&
                    fact_infos[i].source[0]);
        for (int k = 1; k < i; k++)
            assert_string_not_equal(fact_infos[i].metric, fact_infos[k].metric);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_nobody_measured_is_unknown, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(steps_come_from_the_account, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(little_data_give_no_finding, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(
            without_a_line_the_class_that_makes_samples_is_named, fake_setup,
            fake_teardown),
        cmocka_unit_test_setup_teardown(rows_are_the_batch_where_no_loader_trains,
                                        fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(padding_is_what_is_not_filled, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(pipes_of_workers_are_no_logs, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(what_imports_read_is_no_data, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(
            calls_in_steps_are_input_where_there_is_no_loader, fake_setup,
            fake_teardown),
        cmocka_unit_test_setup_teardown(reading_now_and_then_or_beside_a_loader_is_none,
                                        fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(batches_before_their_turn_are_no_quick_ones,
                                        fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(what_an_idle_worker_sends_takes_what_it_takes,
                                        fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(batches_read_from_workers_are_no_files,
                                        fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(what_if_knows_transforms_without_a_loader,
                                        fake_setup, fake_teardown),
        cmocka_unit_test(every_fact_has_a_name_a_unit_and_a_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
