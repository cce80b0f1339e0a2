/* io_text_test.c: the section I/O of the text report. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "present/report/sections.h"

static struct report report;
static struct io_path paths[3];
static const struct limits limits = { .files = 2 };

static void sum(struct io_sum *s, uint64_t calls, uint64_t bytes, double ns)
{
    *s = (struct io_sum){ .calls = calls,
                          .timed = calls,
                          .bytes = calls * bytes,
                          .ns = (double)calls * ns,
                          .sequential = calls };
    s->sizes[io_size_class(bytes)] = calls;
    s->p50_ns = s->p95_ns = s->p99_ns = ns;
}

static int set_up(void **state)
{
    (void)state;
    memset(paths, 0, sizeof paths);
    static const char *const names[] = { "/data/train.bin", "/log\x1b[31m", "/third" };
    for (int i = 0; i < 3; i++) {
        paths[i] = (struct io_path){ .path = names[i], .io_class = IO_CLASS_FILE };
        sum(&paths[i].side[IO_READ], 2000, 1000, 5e3);
    }
    report = (struct report){ .io = { .captured = true,
                                      .paths = paths,
                                      .path_count = 3,
                                      .coverage = 0.999,
                                      .coverage_why = "" } };
    sum(&report.io.total[IO_READ], 6000, 1000, 5e3);
    report.io.file_reads = report.io.small_reads = 6000;
    return 0;
}

static const char *print(int width)
{
    static char text[8192];
    struct page page;
    page_init(&page, width, false, true);
    section_io(&page, &report, &limits);
    (void)snprintf(text, sizeof text, "%s", page.out.len ? page.out.data : "");
    page_release(&page);
    return text;
}

static void nothing_is_said_when_nothing_was_captured(void **state)
{
    (void)state;
    report.io.captured = false;
    assert_string_equal(print(100), "");
}

static void totals_files_and_small_reads_are_named(void **state)
{
    (void)state;
    const char *text = print(100);
    assert_non_null(strstr(text, "5.7 MiB read in 6,000 calls, 30.0 ms"));
    assert_non_null(strstr(text, "/data/train.bin"));
    assert_non_null(strstr(text, "sequential"));
    assert_non_null(strstr(text, "99.9 % of the kernel's count seen"));
    assert_non_null(strstr(text, "100.0 % of 6,000 reads of files were below 4 KiB"));
    assert_null(strstr(text, "/third")); /* two are enough */
}

static void what_was_not_seen_is_said_with_its_reason(void **state)
{
    (void)state;
    report.io.file_reads = 0;
    report.io.coverage = 0.5;
    report.io.coverage_why = "the rest went elsewhere";
    const char *text = print(200);
    assert_non_null(strstr(text, "50.0 % of the bytes were not seen: the rest went"));
}

static void a_few_open_descriptors_are_no_news_many_are(void **state)
{
    (void)state;
    report.io.file_reads = 0;
    report.io.open_at_end = paths[2].open_at_end = 2;
    assert_null(strstr(print(100), "descriptors"));
    report.io.open_at_end = paths[2].open_at_end = 50;
    report.io.open_grows = true;
    assert_non_null(strstr(print(200), "50 descriptors were open at the end, more and "
                                       "more all along, 50 of them /third"));
}

static void hostile_paths_do_not_reach_the_terminal(void **state)
{
    (void)state;
    for (int width = 60; width <= 200; width += 10)
        assert_null(strchr(print(width), '\x1b'));
}

static void every_line_fits_every_width(void **state)
{
    (void)state;
    static char longest[600];
    memset(longest, 'x', sizeof longest - 1);
    paths[0].path = longest;
    for (int width = 60; width <= 200; width++) {
        char line[8192];
        const char *text = print(width);
        for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
            (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
            assert_true(text_columns(line) <= (size_t)width);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_said_when_nothing_was_captured),
        TEST(totals_files_and_small_reads_are_named),
        TEST(what_was_not_seen_is_said_with_its_reason),
        TEST(a_few_open_descriptors_are_no_news_many_are),
        TEST(hostile_paths_do_not_reach_the_terminal),
        TEST(every_line_fits_every_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
