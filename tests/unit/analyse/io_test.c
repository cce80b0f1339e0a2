/* io_test.c: rows of files and sockets become a report, whoever wrote them. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyse/report.h"
#include "base/files.h"
#include "trace/tables.h"

static char root[64];
static struct run run;
static struct report report;

static int set_up(void **state)
{
    (void)state;
    run = (struct run){ .clock = { .count = 1, .ns_per_tick = 0.5 } };
    report = (struct report){ .run = &run };
    arena_init(&report.arena);
    run.dir = unit_temp_dir(root);
    return run.dir ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    arena_release(&report.arena);
    return file_remove_tree(root);
}

/* ---- A process ------------------------------------------------------------------ */

struct process {
    struct tables tables;
    struct io_process_row *row;
};

static void begin(struct process *p, uint32_t pid, uint32_t ppid, uint64_t start)
{
    static const struct tables_spec specs[] = {
        { IO_TABLE_FILES, sizeof(struct io_file_row), IO_MAX_FILES },
        { IO_TABLE_ZONES, sizeof(struct io_zone_row), IO_MAX_ZONES },
        { IO_TABLE_PROCESS, sizeof(struct io_process_row), 1 },
        { IO_TABLE_EVENTS, sizeof(struct io_event_row), IO_MAX_EVENTS },
    };
    uint32_t index;
    assert_int_equal(tables_create(root, IO_KIND, NULL, specs, 4, &p->tables), 0);
    tables_head(&p->tables)->pid = pid;
    tables_head(&p->tables)->ppid = ppid;
    tables_head(&p->tables)->start.ticks = start;
    p->row = tables_append(&p->tables, 3, &index);
    p->row->key = 1;
}

static void end(struct process *p)
{
    tables_close(&p->tables);
}

static struct io_file_row *add(struct process *p, const char *path, unsigned io_class)
{
    uint32_t index;
    struct io_file_row *row = tables_append(&p->tables, 1, &index);
    row->path = tables_text(&p->tables, path, strlen(path));
    row->io_class = (uint8_t)io_class;
    row->ways = 1;
    row->key = 2 + index;
    return row;
}

static void reads(struct io_file_row *row, unsigned calls, uint64_t bytes,
                  uint64_t ticks)
{
    struct io_side *side = &row->side[IO_READ];
    side->bytes += calls * bytes;
    side->ticks += calls * ticks;
    side->sizes[io_size_class(bytes)] += calls;
    side->latency[io_bucket(ticks)] += calls;
}

static void take_reading(struct process *p, uint64_t ticks, uint64_t kernel,
                         uint64_t seen)
{
    p->row->finished = 1;
    struct io_reading *r = &p->row->reading[p->row->readings++ % 2];
    *r = (struct io_reading){ .ticks = ticks,
                              .kernel = { kernel, 0 },
                              .seen = { seen, 0 },
                              .all = { kernel, 0 } };
}

static const struct io_path *path_named(const char *path)
{
    for (size_t i = 0; i < report.io.path_count; i++)
        if (strcmp(report.io.paths[i].path, path) == 0)
            return &report.io.paths[i];
    fail_msg("no path %s", path);
    return NULL;
}

/* ---- Tests ----------------------------------------------------------------------- */

static void a_run_without_tables_has_nothing_and_knows_it(void **state)
{
    (void)state;
    assert_int_equal(io_read(&report), 0);
    assert_false(report.io.captured);
    assert_int_equal(report.io.path_count, 0);
    assert_true(isnan(report.io.coverage));
}

static void one_file_read_by_many_is_one_row(void **state)
{
    (void)state;
    for (uint32_t pid = 10; pid < 13; pid++) {
        struct process p;
        begin(&p, pid, 1, 100);
        reads(add(&p, "/data", IO_CLASS_FILE), 98, 4096, 1000);
        struct io_file_row *others = add(&p, "/data", IO_CLASS_FILE);
        others->shared = 1;
        reads(others, 2, 100, 100000);
        end(&p);
    }
    assert_int_equal(io_read(&report), 0);
    assert_int_equal(report.io.path_count, 1);
    const struct io_path *p = path_named("/data");
    assert_int_equal(p->side[IO_READ].calls, 300);
    assert_int_equal(p->side[IO_READ].bytes, 3 * (98 * 4096 + 200));
    assert_int_equal(p->processes, 3);
    assert_near(p->side[IO_READ].ns, 3 * (98 * 500 + 2 * 50000.0), 1);
    assert_near(p->side[IO_READ].p50_ns, 500, 500 * 0.063);
    assert_near(p->side[IO_READ].p99_ns, 50000, 50000 * 0.063);
    assert_int_equal(report.io.file_reads, 300);
    assert_int_equal(report.io.small_reads, 6);
}

static void coverage_is_what_was_seen_of_what_the_kernel_counted(void **state)
{
    (void)state;
    struct process p;
    begin(&p, 10, 1, 100);
    add(&p, "/a", IO_CLASS_FILE);
    take_reading(&p, 200, 100, 10);
    take_reading(&p, 300, 1000, 800);
    end(&p);
    assert_int_equal(io_read(&report), 0);
    assert_near(report.io.coverage, 0.8, 1e-9);
    assert_true(strlen(report.io.coverage_why) > 0);
}

static void a_process_that_left_no_reading_has_no_coverage(void **state)
{
    (void)state;
    struct process p;
    begin(&p, 10, 1, 100);
    add(&p, "/a", IO_CLASS_FILE);
    end(&p);
    assert_int_equal(io_read(&report), 0);
    assert_true(report.io.captured);
    assert_true(isnan(report.io.coverage));
    assert_true(strlen(report.io.coverage_why) > 0);
}

/* The kernel gave the child's 500 bytes to the parent as well, and those of the
 * grandchild to both. */
static void what_a_waited_for_child_did_is_counted_once(void **state)
{
    (void)state;
    struct process p;
    begin(&p, 10, 1, 100);
    take_reading(&p, 900, 1000 + 500 + 70, 1000);
    end(&p);
    begin(&p, 11, 10, 200);
    take_reading(&p, 800, 500 + 70, 500);
    end(&p);
    begin(&p, 12, 11, 300);
    take_reading(&p, 400, 70, 70);
    end(&p);
    begin(&p, 13, 10, 300); /* outlives its parent: nobody waited */
    take_reading(&p, 1000, 30, 30);
    end(&p);
    assert_int_equal(io_read(&report), 0);
    assert_int_equal(report.io.kernel[0], 1000 + 500 + 70 + 30);
    assert_near(report.io.coverage, 1, 1e-9);
}

/* Its parent waited, so the kernel's count of it is there, though it left none. */
static void what_a_killed_child_did_is_its_parents(void **state)
{
    (void)state;
    struct process p;
    begin(&p, 10, 1, 100);
    take_reading(&p, 900, 1000 + 4096, 1000);
    end(&p);
    begin(&p, 11, 10, 200);
    reads(add(&p, "/data", IO_CLASS_FILE), 1, 4096, 10);
    end(&p);
    assert_int_equal(io_read(&report), 0);
    assert_int_equal(report.io.seen[0], 1000 + 4096);
    assert_near(report.io.coverage, 1, 1e-9);
}

static void secrets_in_paths_do_not_leave(void **state)
{
    (void)state;
    struct process p;
    begin(&p, 10, 1, 100);
    add(&p, "/x/api_key=sk-abcdefghijklmnopqrstuvwxyz", IO_CLASS_FILE);
    end(&p);
    assert_int_equal(io_read(&report), 0);
    assert_int_equal(report.io.path_count, 1);
    assert_null(strstr(report.io.paths[0].path, "sk-abc"));
}

static void paths_beyond_the_limit_are_one(void **state)
{
    (void)state;
    for (unsigned file = 0; file < 3; file++) {
        struct process p;
        begin(&p, 10 + file, 1, 100);
        for (unsigned i = 0; i < IO_MAX_FILES; i++) {
            char path[32];
            (void)snprintf(path, sizeof path, "/%u/%u", file, i);
            reads(add(&p, path, IO_CLASS_FILE), 1, 10, 10);
        }
        end(&p);
    }
    assert_int_equal(io_read(&report), 0);
    assert_int_equal(report.io.path_count, 4097);
    assert_int_equal(path_named("(other files)")->side[IO_READ].calls,
                     3 * IO_MAX_FILES - 4096);
    assert_int_equal(report.io.total[IO_READ].calls, 3 * IO_MAX_FILES);
}

/* Several ranks train: one of them speaks, the one with most steps. */
static void what_is_done_by_hand_is_that_of_the_process_with_most_steps(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 3; i++) {
        struct process p;
        begin(&p, 10 + (uint32_t)i, 1, 100);
        p.row->by_hand = (struct io_by_hand){ .counted = i != 3,
                                              .steps = i * 10,
                                              .opens = i * 100,
                                              .open_ticks = i * 1000,
                                              .looks = 7,
                                              .look_ticks = 40,
                                              .reads = 6,
                                              .small_reads = 5 };
        end(&p);
    }
    assert_int_equal(io_read(&report), 0);
    const struct io_hand *h = &report.io.hand;
    assert_true(h->known);
    assert_int_equal(h->steps, 20);
    assert_int_equal(h->opens, 200);
    assert_near(h->open_ns, 1000, 1e-9);
    assert_near(h->look_ns, 20, 1e-9);
    assert_int_equal(h->small_reads, 5);
}

/* Who only writes has no step with a read. */
static void what_is_written_by_hand_is_counted_apart(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 3; i++) {
        struct process p;
        begin(&p, 10 + (uint32_t)i, 1, 100);
        p.row->by_hand = (struct io_by_hand){ .counted = i == 3 ? IO_HAND_READS
                                                                : IO_HAND_WRITES,
                                              .steps = 0,
                                              .write_steps = i == 2 ? 30 : 0,
                                              .writes = i * 40,
                                              .write_bytes = i * 4000,
                                              .write_ticks = i * 1000 };
        end(&p);
    }
    assert_int_equal(io_read(&report), 0);
    const struct io_hand *h = &report.io.hand;
    assert_true(h->known && h->writes_known);
    assert_int_equal(h->steps, 0);
    assert_int_equal(h->write_steps, 30);
    assert_int_equal(h->write_bytes, 8000);
    assert_near(h->write_ns, 1000, 1e-9);
}

static void older_runs_do_not_know_what_is_done_by_hand(void **state)
{
    (void)state;
    struct process p;
    begin(&p, 10, 1, 100);
    end(&p);
    assert_int_equal(io_read(&report), 0);
    assert_true(report.io.captured);
    assert_false(report.io.hand.known);
}

/* Numbers no writer leaves: nothing may break, nothing is believed about places. */
static void hostile_rows_do_no_harm(void **state)
{
    (void)state;
    struct process p;
    uint32_t index;
    begin(&p, 10, 10, UINT64_MAX);
    memset(p.row, 0xff, sizeof *p.row);
    struct io_file_row *row = add(&p, "/a\x1b[2J", IO_CLASS_COUNT + 7);
    memset(row->side, 0xff, sizeof row->side);
    row->path = 0x7fffffff;
    struct io_zone_row *zone = tables_append(&p.tables, 2, &index);
    memset(zone, 0xff, sizeof *zone);
    end(&p);
    assert_int_equal(io_read(&report), 0);
    assert_true(report.io.captured);
    for (size_t i = 0; i < report.io.path_count; i++)
        assert_string_equal(io_class_name(report.io.paths[i].io_class), "unknown");
}

static void buckets_are_right_to_their_word(void **state)
{
    (void)state;
    for (uint64_t v = 1; v < 1ULL << 38; v += v / 5 + 1) {
        const unsigned b = io_bucket(v);
        assert_true(b < IO_BUCKETS);
        assert_near(io_bucket_middle(b), (double)v, (double)v * 0.0625 + 0.5);
        assert_true(io_bucket(v + 1) >= b);
    }
    assert_int_equal(io_bucket(UINT64_MAX), IO_BUCKETS - 1);
}

static void sizes_fall_into_their_class(void **state)
{
    (void)state;
    static const uint64_t first[IO_SIZES] = { 0,       1,       512,     4096,
                                              1 << 14, 1 << 16, 1 << 18, 1 << 20 };
    for (unsigned i = 0; i < IO_SIZES; i++) {
        assert_int_equal(io_size_class(first[i]), i);
        if (i)
            assert_int_equal(io_size_class(first[i] - 1), i - 1);
    }
    assert_int_equal(io_size_class(UINT64_MAX), IO_SIZES - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_without_tables_has_nothing_and_knows_it),
        TEST(one_file_read_by_many_is_one_row),
        TEST(coverage_is_what_was_seen_of_what_the_kernel_counted),
        TEST(a_process_that_left_no_reading_has_no_coverage),
        TEST(what_a_waited_for_child_did_is_counted_once),
        TEST(what_a_killed_child_did_is_its_parents),
        TEST(secrets_in_paths_do_not_leave),
        TEST(paths_beyond_the_limit_are_one),
        TEST(what_is_done_by_hand_is_that_of_the_process_with_most_steps),
        TEST(what_is_written_by_hand_is_counted_apart),
        TEST(older_runs_do_not_know_what_is_done_by_hand),
        TEST(hostile_rows_do_no_harm),
        TEST(buckets_are_right_to_their_word),
        TEST(sizes_fall_into_their_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
