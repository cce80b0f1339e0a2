/* Data loaders: rows of who iterates and of workers come together; files that lie. */
#include "unit.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "analyse/report.h"
#include "base/files.h"
#include "store/run.h"
#include "trace/control.h"
#include "trace/loader_rows.h"
#include "trace/tables.h"

static const struct tables_spec specs[] = {
    { "loaders", sizeof(struct loader_row), LOADER_MAX_LOADERS },
    { "epochs", sizeof(struct loader_epoch_row), LOADER_MAX_EPOCHS },
    { "workers", sizeof(struct loader_worker_row), LOADER_MAX_WORKERS },
    { "self", sizeof(struct loader_self_row), 1 },
    { "sums", sizeof(struct loader_sum_row), LOADER_MAX_SUMS },
    { "batches", sizeof(struct loader_batch_row), LOADER_RING_BATCHES },
    { "made", sizeof(struct loader_made_row), LOADER_RING_MADE },
    { "samples", sizeof(struct loader_sample_row), LOADER_RING_SAMPLES },
    { "slowest", sizeof(struct loader_slow_row), LOADER_SLOWEST_KEPT },
};

static char dir[64];
static struct tables tables;
static struct run *run;
static struct report *report;

static void open_file(uint32_t pid)
{
    if (tables.base)
        tables_close(&tables);
    assert_int_equal(
        tables_create(dir, LOADER_KIND, NULL, specs, LOADER_TABLE_END - 1, &tables), 0);
    tables_head(&tables)->pid = pid;
}

static void *append(unsigned table)
{
    uint32_t index;
    void *row = tables_append(&tables, table, &index);
    assert_non_null(row);
    return row;
}

static uint32_t text(const char *words)
{
    return tables_text(&tables, words, strlen(words));
}

static struct loader_row *add_loader(int workers)
{
    struct loader_row *row = append(LOADER_LOADERS);
    row->file = text("/home/u/train.py");
    row->line = 12;
    row->dataset = text("Images");
    row->dataset_length = 100;
    row->num_workers = workers;
    row->prefetch_factor = 2;
    row->batch_size = 4;
    row->batches = 10;
    row->samples = 40;
    row->fetches = 9;
    row->ready = 3;
    row->key = 1;
    return row;
}

static struct loader_sum_row *add_sum(uint32_t loader, enum loader_sum what,
                                      uint64_t value, uint64_t times)
{
    struct loader_sum_row *row = append(LOADER_SUMS);
    row->loader = loader;
    row->unit = LOADER_NS;
    row->every = 1;
    row->count = times;
    row->sum = (double)(value * times);
    row->squares = (double)value * (double)value * (double)times;
    row->min = row->max = value;
    row->bucket[loader_bucket(value)] = (uint32_t)times;
    row->key = what;
    return row;
}

static void add_start(uint32_t number, uint32_t pid, uint64_t started)
{
    struct loader_worker_row *row = append(LOADER_WORKERS);
    row->number = number;
    row->pid = pid;
    row->started = started;
    row->key = 1;
}

static int set_up(void **state)
{
    (void)state;
    struct control *control = NULL;
    if (!unit_temp_dir(dir))
        return -1;
    const char json[] = "{\"schema\": \"sonde.run/1\", \"id\": \"x\"}";
    struct buf path = BUF_INIT;
    path_join(&path, dir, "run.json");
    int rc = file_write_atomic(path.data, json, sizeof json - 1, 0600);
    buf_release(&path);
    if (rc == 0)
        rc = control_create(dir, &(struct control_options){ .run_id = "x" }, &control);
    if (rc == 0) {
        (void)usleep(2000);
        control_append_clock(control);
        control_unmap(control);
    }
    run = NULL;
    report = NULL;
    return rc;
}

static int tear_down(void **state)
{
    (void)state;
    report_free(report);
    run_free(run);
    if (tables.base)
        tables_close(&tables);
    return file_remove_tree(dir);
}

static const struct loader_report *read_all(void)
{
    tables_close(&tables);
    assert_int_equal(run_open(dir, &run), 0);
    assert_int_equal(report_build(run, &report), 0);
    return &report->loaders;
}

static void buckets_hold_what_their_middle_says(void **state)
{
    (void)state;
    for (uint64_t v = 1; v < (uint64_t)1 << 41; v += 1 + v / 97) {
        const double middle = loader_bucket_middle(loader_bucket(v));
        assert_true(fabs(middle - (double)v) <= 0.0323 * (double)v);
    }
    assert_int_equal(loader_bucket(UINT64_MAX), LOADER_BUCKETS - 1);
}

static void add_looking_worker(uint32_t number, uint64_t looks,
                               const struct loader_look *first,
                               const struct loader_look *last)
{
    open_file(200 + number);
    struct loader_self_row *self = append(LOADER_SELF);
    self->looks = looks;
    self->first_look = *first;
    self->last_look = *last;
    self->key = 1 + number;
}

/* Of three, two looked: one copied 40 MiB and allocated 100 of its own, one got 90 MiB
 * private with faults for 20, because others let go of theirs. */
static void what_workers_copied_is_told_from_what_they_allocated(void **state)
{
    (void)state;
    const struct loader_look young = { 1, 10 << 10, 300 << 10, 50 << 10 };
    const struct loader_look copied = { 9, 150 << 10, 400 << 10, 300 << 10 };
    const struct loader_look left = { 9, 100 << 10, 300 << 10, 70 << 10 };
    open_file(100);
    add_loader(3)->objects = text("Images.names: list of 50,000 str");
    for (uint32_t i = 0; i < 3; i++)
        add_start(i, 200 + i, 1);
    add_looking_worker(0, 3, &young, &copied);
    add_looking_worker(1, 2, &young, &left);
    add_looking_worker(2, 1, &young, &left); /* killed after its first look */
    const struct loader *l = &read_all()->list[0];
    assert_string_equal(l->objects, "Images.names: list of 50,000 str");
    assert_near(l->workers[0].copied_mb, 40, 1e-9);
    assert_near(l->workers[0].private_mb, 150, 1e-9);
    assert_near(l->workers[1].copied_mb, 20, 1e-9);
    assert_true(isnan(l->workers[2].copied_mb));
    assert_near(loader_copied_mb(l), 90, 1e-9);
    assert_near(loader_private_mb(l), 375, 1e-9);
}

static void workers_that_did_not_look_copied_nobody_knows_what(void **state)
{
    (void)state;
    open_file(100);
    (void)add_loader(1);
    add_start(0, 200, 1);
    const struct loader *l = &read_all()->list[0];
    assert_string_equal(l->objects, "");
    assert_true(isnan(loader_copied_mb(l)));
}

static void workers_are_joined_by_the_pid_they_were_started_with(void **state)
{
    (void)state;
    open_file(100);
    (void)add_loader(2);
    add_start(0, 200, 1);
    add_start(1, 201, 1);
    add_start(1, 999, 1); /* of whom nothing was heard */
    for (uint32_t i = 0; i < 2; i++) {
        open_file(200 + i);
        struct loader_self_row *self = append(LOADER_SELF);
        self->samples = 20;
        self->batches = 5;
        self->key = 1 + i;
        (void)add_sum(LOADER_OF_WORKER, LOADER_SAMPLE, 1000 * (1 + i), 20);
        struct loader_sum_row *t = add_sum(LOADER_OF_WORKER, LOADER_TRANSFORM, 500, 20);
        t->name = text("Resize");
    }
    const struct loader_report *r = read_all();
    assert_int_equal(r->count, 1);
    const struct loader *l = &r->list[0];
    assert_int_equal(l->sample.d.count, 40);
    assert_true(fabs(l->sample.d.mean - 1500) < 1e-6);
    assert_true(fabs(distribution_std(&l->sample.d) - 506.369) < 0.01);
    assert_true(l->sample.every);
    assert_int_equal(l->worker_count, 2);
    assert_int_equal(l->workers[1].processes, 2);
    assert_int_equal(l->workers[1].unheard, 1);
    assert_true(fabs(l->workers[0].sample.d.mean - 1000) < 1e-6);
    assert_int_equal(l->transform_count, 1);
    assert_string_equal(l->transforms[0].name, "Resize");
    assert_int_equal(l->transforms[0].wall.d.count, 40);
    assert_true(fabs(l->transforms[0].share - 20000.0 / 60000) < 1e-9);
    assert_true(fabs(l->ready_share - 1.0 / 3) < 1e-9);
}

static void of_samples_looked_at_now_and_then_totals_are_scaled(void **state)
{
    (void)state;
    open_file(100);
    add_loader(0)->samples = 400;
    add_sum(0, LOADER_SAMPLE, 1000, 40)->every = 0;
    struct loader_sum_row *t = add_sum(0, LOADER_TRANSFORM, 500, 40);
    t->name = text("RandomCrop");
    const struct loader *l = &read_all()->list[0];
    assert_false(l->sample.every);
    assert_true(fabs(l->transforms[0].total_s - 400 * 500e-9) < 1e-12);
    assert_true(l->transforms[0].random);
    assert_true(isnan(l->ready_share)); /* without workers nothing is ready */
}

static void slowest_samples_come_first_and_secrets_are_taken_out(void **state)
{
    (void)state;
    open_file(100);
    (void)add_loader(0);
    for (uint64_t i = 1; i <= 3; i++) {
        struct loader_slow_row *row = append(LOADER_SLOWEST);
        row->index = (int64_t)i;
        row->path = text("/data/x.jpg?token=abcdefghijklmnop123456");
        row->cpu_ns = UINT64_MAX;
        row->key = 1000 * i;
    }
    const struct loader *l = &read_all()->list[0];
    assert_int_equal(l->slowest_count, 3);
    assert_int_equal(l->slowest[0].index, 3);
    assert_true(isnan(l->slowest[0].cpu_ns));
    assert_null(strstr(l->slowest[0].path, "abcdefghijklmnop"));
}

/* Rows and padding belong to processes: loaders or none, each file counts once. */
static void shapes_of_all_processes_are_added_once(void **state)
{
    (void)state;
    open_file(100);
    (void)add_loader(1);
    add_start(0, 200, 1);
    (void)add_sum(LOADER_OF_WORKER, LOADER_ROWS, 8, 10);
    open_file(200);
    struct loader_self_row *self = append(LOADER_SELF);
    self->key = 1;
    (void)add_sum(LOADER_OF_WORKER, LOADER_CELLS, 100, 5);
    (void)add_sum(LOADER_OF_WORKER, LOADER_FILLED, 30, 5);
    const struct loader_report *r = read_all();
    assert_int_equal(r->rows.count, 10);
    assert_true(fabs(r->rows.mean - 8) < 1e-9);
    assert_true(fabs(r->cells - 500) < 1e-9);
    assert_true(fabs(r->filled - 150) < 1e-9);
}

/* Whatever numbers are in the rows, everything is read and nothing beyond. */
static void files_that_lie_do_no_harm(void **state)
{
    (void)state;
    open_file(100);
    memset(add_loader(1), 0xff, sizeof(struct loader_row));
    for (int i = 0; i < 3; i++) {
        memset(append(LOADER_EPOCHS), 0xff, sizeof(struct loader_epoch_row));
        memset(append(LOADER_WORKERS), 0xff, sizeof(struct loader_worker_row));
        memset(append(LOADER_SUMS), 0xff, sizeof(struct loader_sum_row));
        memset(append(LOADER_BATCHES), 0xff, sizeof(struct loader_batch_row));
        memset(append(LOADER_MADE), 0xff, sizeof(struct loader_made_row));
        memset(append(LOADER_SLOWEST), 0xff, sizeof(struct loader_slow_row));
    }
    struct loader_sum_row *s = append(LOADER_SUMS);
    memset(s, 0x7f, sizeof *s);
    s->loader = 0;
    s->key = LOADER_TRANSFORM;
    struct loader_worker_row *w = append(LOADER_WORKERS);
    w->loader = 0;
    w->number = UINT32_MAX;
    w->key = 1;
    const struct loader_report *r = read_all();
    assert_int_equal(r->count, 1);
    assert_int_equal(r->list[0].worker_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_hold_what_their_middle_says),
        cmocka_unit_test_setup_teardown(
            workers_are_joined_by_the_pid_they_were_started_with, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_workers_copied_is_told_from_what_they_allocated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            workers_that_did_not_look_copied_nobody_knows_what, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            of_samples_looked_at_now_and_then_totals_are_scaled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            slowest_samples_come_first_and_secrets_are_taken_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shapes_of_all_processes_are_added_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(files_that_lie_do_no_harm, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
