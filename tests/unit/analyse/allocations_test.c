/* Allocations: sums over hand-made heap files, what is a leak and what is not, and files
 * that lie. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyse/report.h"
#include "base/files.h"
#include "store/run.h"
#include "trace/heap_rows.h"
#include "trace/module_rows.h"
#include "trace/tables.h"

enum { PROCESS = 1, THREADS, COUNTERS, SITES, LIVE, MODULES };

static const struct tables_spec specs[] = {
    { "process", sizeof(struct heap_process_row), 1 },
    { "threads", sizeof(struct heap_thread_row), 100 },
    { "counters", sizeof(struct heap_counter_row), 100 },
    { "sites", sizeof(struct heap_site_row), 100 },
    { "live", sizeof(struct heap_live_row), 10000 },
    { MODULES_TABLE, sizeof(struct module_row), 10 },
};

static const uint64_t START = 5000000000, END = 15000000000;

static char dir[64];
static struct tables tables;
static struct run *run;
static struct report *report;

static void *append(unsigned table)
{
    uint32_t index;
    void *row = tables_append(&tables, table, &index);
    assert_non_null(row);
    return row;
}

static void add_process(int64_t live, uint64_t peak)
{
    struct heap_process_row *p = append(PROCESS);
    p->start_ticks = START;
    p->exit_ticks = END;
    p->live = live;
    p->peak = peak;
    p->state = HEAP_CAPTURED;
}

static void add_site(uint64_t frame, double bytes)
{
    struct heap_site_row *s = append(SITES);
    s->depth = 1;
    s->frame[0] = frame;
    s->samples = s->live_samples = 100;
    s->count = 100;
    s->bytes = s->live_bytes = bytes;
    s->key = frame;
}

/* Blocks of a site that are still live, allocated between two shares of the life. */
static void add_live(uint32_t site, unsigned count, double from, double to)
{
    for (unsigned i = 0; i < count; i++) {
        struct heap_live_row *b = append(LIVE);
        const double at = from + (to - from) * (i + 0.5) / count;
        b->site = site;
        b->size = 65536;
        b->weight = 1;
        b->ticks = START + (uint64_t)(at * (double)(END - START));
        b->address = 0x1000 + 16 * (uint64_t)(site * 1000 + i);
    }
}

static int set_up(void **state)
{
    (void)state;
    if (!unit_temp_dir(dir))
        return -1;
    const char json[] = "{\"schema\": \"sonde.run/1\", \"id\": \"x\"}";
    struct buf path = BUF_INIT;
    path_join(&path, dir, "run.json");
    const int rc = file_write_atomic(path.data, json, sizeof json - 1, 0600);
    buf_release(&path);
    run = NULL;
    report = NULL;
    return rc < 0 ? rc : tables_create(dir, HEAP_KIND, NULL, specs, 6, &tables);
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

static const struct allocations *read_all(void)
{
    tables_close(&tables);
    assert_int_equal(run_open(dir, &run), 0);
    assert_int_equal(report_build(run, &report), 0);
    return &report->allocations;
}

static const struct alloc_site *site_of(const struct allocations *a, uint64_t frame)
{
    for (size_t i = 0; i < a->site_count; i++)
        if (a->sites[i].at.offset == frame - 1)
            return &a->sites[i];
    fail_msg("no site at %llx", (unsigned long long)frame);
    return NULL;
}

static void add_module(void)
{
    struct module_row *m = append(MODULES);
    m->end = 1 << 30;
    m->path = tables_text(&tables, "/bin/x", 6);
    m->file_offset = 1;
    m->start = 1;
}

static void counters_of_all_threads_are_summed(void **state)
{
    (void)state;
    add_process(1000, 5000);
    for (uint32_t thread = 0; thread < 3; thread++) {
        struct heap_counter_row *c = append(COUNTERS);
        c->size[heap_class(100)] = (struct heap_count){ 10, 1000 };
        c->size[heap_class(5000)] = (struct heap_count){ 1, 5000 };
        c->frees = 4;
        c->freed_bytes = 400;
        c->key = heap_counter_key(thread, 0);
    }
    const struct allocations *a = read_all();
    assert_true(a->known);
    assert_int_equal(a->count, 33);
    assert_int_equal(a->bytes, 18000);
    assert_int_equal(a->frees, 12);
    assert_int_equal(a->sizes[heap_class(128)].count, 30);
    assert_int_equal(a->peak_bytes, 5000);
    assert_near(a->live_bytes, 1000, 0);
}

static void what_threads_have_not_told_counts(void **state)
{
    (void)state;
    add_process(1000, 1500);
    struct heap_thread_row *t = append(THREADS);
    t->untold = -200;
    t->high = 900;
    t->number = 1;
    const struct allocations *a = read_all();
    assert_near(a->live_bytes, 800, 0);
    assert_int_equal(a->peak_bytes, 1900);
}

static void what_rows_of_counters_have_not_told_counts(void **state)
{
    (void)state;
    add_process(1000, 1500);
    for (uint32_t thread = 0; thread < 2; thread++) {
        struct heap_counter_row *c = append(COUNTERS);
        c->untold = -100;
        c->high = thread ? 900 : 10;
        c->key = heap_counter_key(thread, 7);
    }
    const struct allocations *a = read_all();
    assert_near(a->live_bytes, 800, 0);
    assert_int_equal(a->peak_bytes, 1900);
}

static void blocks_from_all_over_the_run_are_a_leak(void **state)
{
    (void)state;
    add_process(0, 0);
    add_module();
    add_site(0x1001, 100 * 65536);
    add_live(0, 100, 0, 1);
    const struct alloc_site *s = site_of(read_all(), 0x1001);
    assert_true(s->leak);
}

static void a_cache_that_stands_still_is_no_leak(void **state)
{
    (void)state;
    add_process(0, 0);
    add_module();
    add_site(0x1001, 100 * 65536);
    add_live(0, 100, 0, 0.7);
    assert_false(site_of(read_all(), 0x1001)->leak);
}

static void a_cache_that_replaces_its_entries_is_no_leak(void **state)
{
    (void)state;
    add_process(0, 0);
    add_module();
    add_site(0x1001, 100 * 65536);
    add_live(0, 100, 0.4, 1);
    assert_false(site_of(read_all(), 0x1001)->leak);
}

static void few_samples_prove_nothing(void **state)
{
    (void)state;
    add_process(0, 0);
    add_module();
    add_site(0x1001, 7 * 65536);
    ((struct heap_site_row *)tables_row(&tables, SITES, 0))->live_samples = 7;
    add_live(0, 7, 0, 1);
    assert_false(site_of(read_all(), 0x1001)->leak);
}

static void a_file_that_lies_is_read_without_harm(void **state)
{
    (void)state;
    add_process(INT64_MIN, UINT64_MAX);
    add_site(0x1001, NAN);
    ((struct heap_site_row *)tables_row(&tables, SITES, 0))->depth = UINT32_MAX;
    add_site(0, 1);
    add_live(77, 3, 0, 1);     /* no such site */
    add_live(0, 3, -1e9, 1e9); /* before the beginning, after the end */
    struct heap_counter_row *c = append(COUNTERS);
    memset(c, 0xff, sizeof *c);
    const struct allocations *a = read_all();
    assert_true(a->known);
    assert_true(a->site_count >= 1);
}

static void a_process_left_alone_is_named(void **state)
{
    (void)state;
    struct heap_process_row *p = append(PROCESS);
    p->why = tables_text(&tables, "built with X", 12);
    p->state = HEAP_STAYED_OUT;
    const struct allocations *a = read_all();
    assert_false(a->known);
    assert_true(isnan(a->live_bytes));
    assert_int_equal(a->unseen_count, 1);
    assert_non_null(strstr(a->unseen[0], "built with X"));
}

static void sizes_fall_into_their_classes(void **state)
{
    (void)state;
    assert_int_equal(heap_class(0), 0);
    assert_int_equal(heap_class(16), 0);
    assert_int_equal(heap_class(17), 1);
    for (unsigned k = 0; k + 1 < HEAP_CLASSES; k++) {
        assert_int_equal(heap_class(heap_class_limit(k)), k);
        assert_int_equal(heap_class(heap_class_limit(k) + 1), k + 1);
    }
    assert_int_equal(heap_class(UINT64_MAX), HEAP_CLASSES - 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(counters_of_all_threads_are_summed),
        CASE(what_threads_have_not_told_counts),
        CASE(what_rows_of_counters_have_not_told_counts),
        CASE(blocks_from_all_over_the_run_are_a_leak),
        CASE(a_cache_that_stands_still_is_no_leak),
        CASE(a_cache_that_replaces_its_entries_is_no_leak),
        CASE(few_samples_prove_nothing),
        CASE(a_file_that_lies_is_read_without_harm),
        CASE(a_process_left_alone_is_named),
        cmocka_unit_test(sizes_fall_into_their_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
