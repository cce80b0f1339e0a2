/* text_test.c: the terminal report, line by line.
 *
 * Golden files lie in golden/; SONDE_UPDATE_GOLDEN=1 rewrites them, and the diff is
 * then for a person to read.
 */
#include "fake_training.h"

#include <sys/stat.h>

#include "present/report/page.h"
#include "present/report/report.h"

static void print(const struct training *t, const struct report_style *style,
                  struct buf *ret_text)
{
    char part[4096];
    FILE *f = tmpfile();
    assert_int_equal(report_print(t->report, style, f), 0);
    rewind(f);
    for (size_t n; (n = fread(part, 1, sizeof(part), f)) > 0;)
        buf_append(ret_text, part, n);
    (void)fclose(f);
}

static void compare(const char *name, const struct buf *text)
{
    char path[512];
    const char *source = getenv("SONDE_SOURCE");
    struct buf golden = BUF_INIT;
    (void)snprintf(path, sizeof(path), "%s/tests/unit/present/golden/%s",
                   source ? source : ".", name);
    if (getenv("SONDE_UPDATE_GOLDEN"))
        assert_int_equal(file_write_atomic(path, text->data, text->len, 0644), 0);
    assert_int_equal(file_read_all(path, 1 << 20, &golden), 0);
    assert_string_equal(text->data, golden.data);
    buf_release(&golden);
}

static void the_report_looks_as_it_should(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum training_end end;
        struct report_style style;
    } cases[] = {
        { "good-60.txt", ENDS_WELL, { .width = 60, .unicode = true } },
        { "good-100.txt", ENDS_WELL, { .unicode = true } },
        { "good-200.txt", ENDS_WELL, { .width = 200, .unicode = true } },
        { "good-60-ascii.txt", ENDS_WELL, { .width = 60 } },
        { "good-100-ascii.txt", ENDS_WELL, { 0 } },
        { "good-100-color.txt", ENDS_WELL, { .unicode = true, .color = true } },
        { "good-full.txt", ENDS_WELL, { .unicode = true, .full = true } },
        { "killed-60.txt", IS_KILLED, { .width = 60, .unicode = true } },
        { "killed-100.txt", IS_KILLED, { .unicode = true } },
        { "filtered.txt",
          ENDS_WELL,
          { .unicode = true, .min_time_ns = 1000000000, .depth = 3 } },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct training t;
        struct buf text = BUF_INIT;
        training_make(&t, cases[i].end);
        print(&t, &cases[i].style, &text);
        compare(cases[i].name, &text);
        buf_release(&text);
        training_free(&t);
        fake_forget();
    }
}

/* Every line within the width, no blank at its end; returns the number of lines. */
static size_t check_lines(const struct buf *text, size_t width)
{
    size_t lines = 0;
    char *copy = strdup(text->data);
    for (char *p = copy, *end; (end = strchr(p, '\n')); p = end + 1) {
        *end = '\0';
        if (text_columns(p) > width)
            fail_msg("%zu columns, not %zu: %s", text_columns(p), width, p);
        assert_true(end == p || end[-1] != ' ');
        lines++;
    }
    free(copy);
    return lines;
}

static void every_width_holds_and_one_screen_is_enough(void **state)
{
    (void)state;
    for (int end = ENDS_WELL; end <= IS_KILLED; end++) {
        struct training t;
        training_make(&t, (enum training_end)end);
        for (int width = 60; width <= 200; width++) {
            const struct report_style style = { .width = width, .unicode = true };
            struct buf text = BUF_INIT;
            print(&t, &style, &text);
            assert_true(check_lines(&text, (size_t)width) <= 46);
            buf_release(&text);
        }
        training_free(&t);
        fake_forget();
    }
}

/* More to say in every part than any run had yet. */
static void make_it_worst(struct report *r)
{
    enum { FINDINGS = 12, NOTES = 30, LONG = 700 };
    static char words[LONG + 1];
    static struct finding findings[FINDINGS];
    static const char *notes[NOTES];
    static struct trial_entry trials[TRIALS_MAX];
    for (size_t i = 0; i < LONG; i++)
        words[i] = i % 7 == 6 ? ' ' : (char)('a' + i % 26);
    for (size_t i = 0; i < FINDINGS; i++)
        findings[i] = (struct finding){ .id = "data_loading_bound",
                                        .title = "INPUT-BOUND",
                                        .bound_by = "input",
                                        .severity = SEVERITY_CRITICAL,
                                        .score = 0.9,
                                        .stake = 0.9,
                                        .description = words,
                                        .recommendation = words,
                                        .place = "train.py:41",
                                        .gain = { 0.1, 0.2, 0.3 },
                                        .past_error = NAN };
    for (size_t i = 0; i < NOTES; i++)
        notes[i] = words;
    for (size_t i = 0; i < TRIALS_MAX; i++) {
        trials[i] = (struct trial_entry){
            .step_ns = 1e7, .low_ns = 9e6, .high_ns = 11e6, .loop_ns = NAN, .steps = 60
        };
        (void)snprintf(trials[i].asked, sizeof trials[i].asked, "%.120s", words);
        (void)snprintf(trials[i].note, sizeof trials[i].note, "%.500s", words);
    }
    r->verdict = r->why = r->next = r->since = words;
    r->diagnosis.made = true;
    r->diagnosis.findings = findings;
    r->diagnosis.finding_count = FINDINGS;
    r->notes = notes;
    r->note_count = NOTES;
    r->trials = trials;
    r->trial_count = TRIALS_MAX;
    r->trial_offered_s = 40;
}

static void the_worst_run_is_one_screen_too(void **state)
{
    (void)state;
    for (int end = ENDS_WELL; end <= IS_KILLED; end++) {
        struct training t;
        training_make(&t, (enum training_end)end);
        const struct report whole = *t.report;
        make_it_worst(t.report);
        for (int width = 60; width <= 200; width += 4) {
            const struct report_style style = { .width = width, .unicode = true };
            struct buf text = BUF_INIT;
            print(&t, &style, &text);
            const size_t lines = check_lines(&text, (size_t)width);
            if (lines > 46)
                fail_msg("%zu lines at %d columns:\n%s", lines, width, text.data);
            assert_non_null(strstr(text.data, "VERDICT"));
            assert_non_null(strstr(text.data, "--full"));
            buf_release(&text);
        }
        *t.report = whole;
        training_free(&t);
        fake_forget();
    }
}

static void make_trial(struct report *r, const char *finding, struct trial_entry *t)
{
    static struct finding first = { .id = "gc_pauses",
                                    .title = "GARBAGE COLLECTION",
                                    .bound_by = "host",
                                    .severity = SEVERITY_HIGH,
                                    .description = "It collects.",
                                    .recommendation = "Collect less.",
                                    .place = "",
                                    .gain = { 0.5, 0.9, 0.95 },
                                    .past_error = NAN };
    *t = (struct trial_entry){ .step_ns = 13.9e6,
                               .low_ns = 13.1e6,
                               .high_ns = 14.8e6,
                               .loop_ns = NAN,
                               .steps = 60,
                               .asked = "gc=40" };
    (void)snprintf(t->finding, sizeof t->finding, "%s", finding);
    r->account.mean_ns = 203e6;
    r->next = first.recommendation;
    r->diagnosis.findings = &first;
    r->diagnosis.finding_count = 1;
    r->trials = t;
    r->trial_count = 1;
    r->trial_offered_s = 39.2;
}

static void a_trial_is_told_with_what_the_model_had_said(void **state)
{
    (void)state;
    struct training t;
    struct trial_entry trial;
    const struct report_style style = { .width = 200, .unicode = true, .ref = "@last" };
    training_make(&t, ENDS_WELL);
    const struct report whole = *t.report;
    struct buf text = BUF_INIT;
    make_trial(t.report, "gc_pauses", &trial);
    print(&t, &style, &text);
    assert_non_null(strstr(text.data,
                           "TRIAL    gc=40: 13.9 ms per step measured "
                           "(13.1 ms – 14.8 ms, 60 steps) instead of 203 ms, "
                           "93 % less; the model had said 20.3 ms"));
    assert_null(strstr(text.data, "--measure")); /* it has been */
    buf_clear(&text);
    make_trial(t.report, "", &trial); /* of a question, not of the advice */
    print(&t, &style, &text);
    assert_non_null(strstr(text.data, "about 40 s"));
    assert_non_null(strstr(text.data, "sonde report @last --measure"));
    buf_release(&text);
    *t.report = whole;
    training_free(&t);
}

static void widths_out_of_range_are_brought_into_it(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    for (int width = -5; width < 60; width += 13) {
        const struct report_style style = { .width = width ? width : 1 };
        struct buf text = BUF_INIT;
        print(&t, &style, &text);
        (void)check_lines(&text, 60);
        buf_release(&text);
    }
    training_free(&t);
}

static const char hostile[] = "\033]0;owned\a\033[2J\xe2\x80\xae"
                              "evil\r\n\xff";

static void make_hostile(struct training *t)
{
    const struct trace_site site = { .name = hostile,
                                     .file = hostile,
                                     .component = hostile,
                                     .category = hostile,
                                     .tags = hostile,
                                     .line = -7 };
    training_traces(t);
    const unsigned node = fake_node(t->main, 0, fake_site_full(t->main, site));
    fake_calls(t->main, node, 3, 3e9);
    fake_open(t->main, &t->main->lanes[0], node, AT(1));
    memcpy(t->main->lanes[0].name, hostile, 15);
    (void)snprintf(t->main->info.role, sizeof(t->main->info.role), "%s", hostile);
    (void)snprintf(t->main->info.exe, sizeof(t->main->info.exe), "%s", hostile);
    t->main->damage = hostile;
    fake_value(t->main, VALUE_METRIC, TRACE_NO_NODE, hostile, (double[]){ 1 }, 1,
               AT(2));
    fake_value(t->main, VALUE_ZONE, node, hostile, (double[]){ 1 }, 1, AT(2));
    training_open(t,
                  "{\"id\":\"\\u001b[31mid\",\"name\":\"\\u001bname\","
                  "\"command\":[\"\\u001b[2J\\u009b\"],\"pid\":4242,"
                  "\"tags\":{\"\\u001bk\":\"\\u001bv\"},\"notes\":[\"\\u001bnote\"],"
                  "\"exit\":{\"code\":1,\"signal\":null,\"cause\":\"\\u001bcause\"}}");
}

static void hostile_names_never_reach_the_terminal(void **state)
{
    (void)state;
    struct training t = { 0 };
    make_hostile(&t);
    for (int full = 0; full < 2; full++)
        for (int width = 60; width <= 200; width += 70) {
            const struct report_style style = { .width = width,
                                                .unicode = true,
                                                .full = full };
            struct buf text = BUF_INIT;
            print(&t, &style, &text);
            for (size_t i = 0; i < text.len; i++)
                assert_true((unsigned char)text.data[i] >= 0x20 ||
                            text.data[i] == '\n');
            assert_null(strstr(text.data, "\xe2\x80\xae"));
            assert_null(strstr(text.data, "\xc2\x9b"));
            buf_release(&text);
        }
    training_free(&t);
}

static void ascii_means_ascii(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, IS_KILLED);
    const struct report_style style = { .full = true };
    struct buf text = BUF_INIT;
    print(&t, &style, &text);
    for (size_t i = 0; i < text.len; i++)
        assert_true((unsigned char)text.data[i] < 0x80);
    buf_release(&text);
    training_free(&t);
}

static void a_run_of_nothing_still_reports(void **state)
{
    (void)state;
    struct training t = { 0 };
    const struct report_style style = { .full = true };
    struct buf text = BUF_INIT;
    training_open(&t, "{}");
    print(&t, &style, &text);
    assert_non_null(strstr(text.data, "Nothing was recorded"));
    buf_release(&text);
    training_free(&t);
}

static void hundreds_of_paths_fit_one_screen_and_the_rest_is_summed(void **state)
{
    (void)state;
    struct training t = { 0 };
    static char names[300][24];
    const struct report_style style = { .unicode = true };
    struct buf text = BUF_INIT;
    training_traces(&t);
    for (int i = 0; i < 300; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "path %d", i);
        fake_calls(t.main,
                   fake_node(t.main, 3, fake_site(t.main, names[i], 0, "x.c", i)), 2,
                   1e3 + i);
    }
    training_open(&t, "{\"pid\":4242}");
    print(&t, &style, &text);
    assert_true(check_lines(&text, 100) <= 46);
    assert_non_null(strstr(text.data, "smaller paths)"));
    buf_release(&text);
    training_free(&t);
}

static void style_is_detected_from_the_environment(void **state)
{
    (void)state;
    static const struct {
        const char *all, *ctype, *lang;
        bool unicode;
    } cases[] = {
        { NULL, NULL, "en_US.UTF-8", true }, { NULL, NULL, "C", false },
        { "C", NULL, "en_US.UTF-8", false }, { NULL, "de_DE.utf8", "C", true },
        { "", "", "C.UTF-8", true },         { NULL, NULL, NULL, false },
    };
    FILE *file = tmpfile();
    assert_int_equal(setenv("COLUMNS", "123", 1), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct report_style style = { .full = true };
        (void)unsetenv("LC_ALL"), (void)unsetenv("LC_CTYPE"), (void)unsetenv("LANG");
        if (cases[i].all)
            (void)setenv("LC_ALL", cases[i].all, 1);
        if (cases[i].ctype)
            (void)setenv("LC_CTYPE", cases[i].ctype, 1);
        if (cases[i].lang)
            (void)setenv("LANG", cases[i].lang, 1);
        report_style_detect(&style, fileno(file));
        assert_int_equal(style.unicode, cases[i].unicode);
        assert_int_equal(style.width, 123);
        assert_false(style.color);
        assert_true(style.full);
    }
    (void)fclose(file);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_report_looks_as_it_should),
        TEST(every_width_holds_and_one_screen_is_enough),
        TEST(the_worst_run_is_one_screen_too),
        TEST(a_trial_is_told_with_what_the_model_had_said),
        TEST(widths_out_of_range_are_brought_into_it),
        TEST(hostile_names_never_reach_the_terminal),
        TEST(ascii_means_ascii),
        TEST(a_run_of_nothing_still_reports),
        TEST(hundreds_of_paths_fit_one_screen_and_the_rest_is_summed),
        TEST(style_is_detected_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
