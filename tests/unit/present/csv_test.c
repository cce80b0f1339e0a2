/* csv_test.c: the operations as CSV, read back by python's csv. */
#include "fake_training.h"

#include <sys/wait.h>
#include <unistd.h>

#include "present/report/report.h"

/* The file's cells as python reads them: cells end with US, rows with RS. */
static void read_back(const char *path, struct buf *ret_text)
{
    char command[1024];
    char part[4096];
    (void)snprintf(
        command, sizeof(command),
        "/usr/bin/python3 -c '\n"
        "import csv, sys\n"
        "for row in csv.reader(open(sys.argv[1], newline=\"\", "
        "encoding=\"utf-8\"), strict=True):\n"
        "    sys.stdout.buffer.write((\"\\x1f\".join(row) + \"\\x1e\").encode())\n"
        "' %s",
        path);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    for (size_t n; (n = fread(part, 1, sizeof(part), f)) > 0;)
        buf_append(ret_text, part, n);
    assert_int_equal(pclose(f), 0);
}

static void print(const struct training *t, struct buf *ret_text)
{
    const struct report_style style = { .format = REPORT_CSV };
    char path[300];
    (void)snprintf(path, sizeof(path), "%s/out.csv", fake_root);
    FILE *f = fopen(path, "w");
    assert_int_equal(report_print(t->report, &style, f), 0);
    assert_int_equal(fclose(f), 0);
    read_back(path, ret_text);
}

/* Cell of a row; rows and columns count from 0. */
static const char *cell(const struct buf *text, size_t row, const char *column)
{
    static char result[512];
    size_t number = 0;
    const char *p = text->data;
    for (size_t len; (len = strcspn(p, "\x1f\x1e")),
                     strncmp(p, column, len) != 0 || strlen(column) != len;
         p += len + 1) {
        assert_int_equal(p[len], '\x1f');
        number++;
    }
    p = text->data;
    for (size_t i = 0; i < row; i++)
        p += strcspn(p, "\x1e") + 1;
    for (size_t i = 0; i < number; i++)
        p += strcspn(p, "\x1f") + 1;
    (void)snprintf(result, sizeof(result), "%.*s", (int)strcspn(p, "\x1f\x1e"), p);
    return result;
}

static void rows_are_operations_parents_first(void **state)
{
    (void)state;
    struct training t;
    struct buf text = BUF_INIT;
    training_make(&t, ENDS_WELL);
    print(&t, &text);
    size_t row = 1;
    while (strcmp(cell(&text, row, "name"), "attention") != 0)
        row++;
    assert_string_equal(cell(&text, row, "path"),
                        "train › epoch › forward › attention");
    assert_string_equal(cell(&text, row, "count"), "200");
    assert_near(atof(cell(&text, row, "total_s")), 2.4, 1e-9);
    assert_near(atof(cell(&text, row, "mean_ms")), 12, 1e-6);
    assert_string_equal(cell(&text, row, "cpu_s"), "");
    assert_string_equal(cell(&text, row, "tags"), "heads=8,kind=flash");
    assert_string_equal(cell(&text, row - 1, "name"), "forward");
    assert_string_equal(cell(&text, row - 1, "phase"), "forward");
    buf_release(&text);
    training_free(&t);
}

static void formulas_quotes_and_control_characters_do_no_harm(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shown;
    } cases[] = {
        { "=HYPERLINK(\"http://x\")", "'=HYPERLINK(\"http://x\")" },
        { "+1", "'+1" },
        { "-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0" },
        { "@SUM(A1)", "'@SUM(A1)" },
        { "\t=1", "'\\x09=1" },
        { "a,b\"c\"", "a,b\"c\"" },
        { "line\r\nbreak", "line\\x0d\\x0abreak" },
        { "\033[2J", "\\x1b[2J" },
        { "plain", "plain" },
    };
    struct training t = { 0 };
    struct buf text = BUF_INIT;
    training_traces(&t);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        fake_calls(t.main,
                   fake_node(t.main, 0, fake_site(t.main, cases[i].name, 0, "", 0)), 1,
                   1e12 - (double)i);
    training_open(&t, "{\"pid\":4242}");
    print(&t, &text);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(cell(&text, i + 1, "name"), cases[i].shown);
    buf_release(&text);
    training_free(&t);
}

static void every_row_has_as_many_cells_as_the_header(void **state)
{
    (void)state;
    struct training t;
    struct buf text = BUF_INIT;
    training_make(&t, IS_KILLED);
    print(&t, &text);
    size_t expected = 0;
    size_t cells = 1;
    for (const char *p = text.data; *p; p++) {
        cells += *p == '\x1f';
        if (*p != '\x1e')
            continue;
        expected = expected ? expected : cells;
        assert_int_equal(cells, expected);
        cells = 1;
    }
    assert_int_equal(expected, 29);
    buf_release(&text);
    training_free(&t);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_are_operations_parents_first),
        TEST(formulas_quotes_and_control_characters_do_no_harm),
        TEST(every_row_has_as_many_cells_as_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
