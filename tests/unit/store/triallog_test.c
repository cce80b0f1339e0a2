#include "store/triallog.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "unit.h"

static char dir[64];

static int setup(void **state)
{
    (void)state;
    return unit_temp_dir(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return file_remove_tree(dir);
}

static struct trial_entry entry(const char *asked, const char *finding, double step_ns)
{
    struct trial_entry e = { .time_ns = 5,
                             .step_ns = step_ns,
                             .low_ns = 0.9 * step_ns,
                             .high_ns = 1.1 * step_ns,
                             .loop_ns = NAN,
                             .loop_low_ns = NAN,
                             .loop_high_ns = NAN,
                             .steps = 60 };
    (void)snprintf(e.asked, sizeof e.asked, "%s", asked);
    (void)snprintf(e.finding, sizeof e.finding, "%s", finding);
    (void)snprintf(e.note, sizeof e.note, "left out: \"tidy\"\n");
    return e;
}

static void a_run_without_trials_has_none(void **state)
{
    (void)state;
    struct trial_entry all[TRIALS_MAX];
    size_t count = 99;
    assert_int_equal(triallog_read(dir, all, &count), 0);
    assert_int_equal(count, 0);
}

static void the_last_trial_of_a_question_counts(void **state)
{
    (void)state;
    struct trial_entry all[TRIALS_MAX];
    size_t count = 0;
    struct trial_entry loop = entry("evaluation=10", "", 7e6);
    loop.loop_ns = 2e9;
    loop.loop_low_ns = 1.9e9;
    loop.loop_high_ns = 2.1e9;
    loop.median_of = 3;
    const struct trial_entry first = entry("gc=40", "", 20e6);
    const struct trial_entry again = entry("gc=40", "", 14e6);
    const struct trial_entry own = entry("gc=40", "gc_pauses", 13e6);
    assert_int_equal(triallog_append(dir, &first), 0);
    assert_int_equal(triallog_append(dir, &loop), 0);
    assert_int_equal(triallog_append(dir, &again), 0);
    assert_int_equal(triallog_append(dir, &own), 0);
    assert_int_equal(triallog_read(dir, all, &count), 0);
    assert_int_equal(count, 3);
    assert_string_equal(all[0].asked, "gc=40");
    assert_near(all[0].step_ns, 14e6, 1);
    assert_true(isnan(all[0].loop_ns));
    assert_string_equal(all[0].note, "left out: \"tidy\"\n");
    assert_near(all[1].loop_high_ns, 2.1e9, 1);
    assert_int_equal(all[0].median_of, 1);
    assert_int_equal(all[1].median_of, 3);
    assert_string_equal(all[2].finding, "gc_pauses");
}

static void the_file_is_its_owners_alone(void **state)
{
    (void)state;
    char path[128];
    struct stat st;
    const struct trial_entry e = entry("gc=40", "", 1e6);
    (void)snprintf(path, sizeof path, "%s/trials.jsonl", dir);
    assert_int_equal(triallog_append(dir, &e), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void numbers_that_are_no_times_are_not_kept(void **state)
{
    (void)state;
    struct trial_entry e = entry("gc=40", "", 1e6);
    e.low_ns = 2e6; /* above the middle */
    assert_int_equal(triallog_append(dir, &e), SONDE_E_USAGE);
    e = entry("gc=40", "", NAN);
    assert_int_equal(triallog_append(dir, &e), SONDE_E_USAGE);
    e = entry("gc=40", "", -5);
    assert_int_equal(triallog_append(dir, &e), SONDE_E_USAGE);
    e = entry("gc=40", "", 1e6);
    e.loop_ns = INFINITY;
    assert_int_equal(triallog_append(dir, &e), SONDE_E_USAGE);
}

#define GOOD                                                                           \
    "\"asked\":\"a\",\"finding\":\"\",\"note\":\"\",\"steps\":9,\"step_ns\":2,"        \
    "\"low_ns\":1,\"high_ns\":3"

static void hostile_lines_are_skipped(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"asked\":\"a\"}",
        "{" GOOD ",\"asked\":\"b\"}", /* twice */
        "{\"asked\":\"\",\"finding\":\"\",\"note\":\"\",\"steps\":9,\"step_ns\":2,"
        "\"low_ns\":1,\"high_ns\":3}",
        "{\"asked\":\"a\",\"finding\":\"\",\"note\":\"\",\"steps\":-9,\"step_ns\":2,"
        "\"low_ns\":1,\"high_ns\":3}",
        "{\"asked\":\"a\",\"finding\":\"\",\"note\":\"\",\"steps\":9,\"step_ns\":1e300,"
        "\"low_ns\":1,\"high_ns\":1e301}",
        "{\"asked\":\"a\",\"finding\":\"\",\"note\":\"\",\"steps\":9,\"step_ns\":\"2\","
        "\"low_ns\":1,\"high_ns\":3}",
        "{" GOOD ",\"loop_ns\":5,\"loop_low_ns\":6,\"loop_high_ns\":7}",
        "{" GOOD ",\"loop_ns\":5}",
        "{" GOOD ",\"median_of\":0}",
        "{" GOOD ",\"median_of\":-3}",
        "{" GOOD ",\"median_of\":\"3\"}",
        "{" GOOD ",\"median_of\":99999999999}",
    };
    struct trial_entry e;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (triallog_parse(lines[i], strlen(lines[i]), &e))
            fail_msg("taken: %s", lines[i]);
    static const char good[] = "{" GOOD "}";
    assert_true(triallog_parse(good, strlen(good), &e));
    assert_int_equal(e.median_of, 1); /* lines of before did not say */
    char text[4 * TRIAL_NOTE];
    (void)snprintf(text, sizeof text,
                   "{\"asked\":\"%0*d\",\"finding\":\"\",\"note\":\"\",\"steps\":9,"
                   "\"step_ns\":2,\"low_ns\":1,\"high_ns\":3}",
                   TRIAL_TEXT, 7);
    assert_false(triallog_parse(text, strlen(text), &e)); /* too long by one */
}

static void a_damaged_file_gives_what_is_sound(void **state)
{
    (void)state;
    char path[128];
    struct trial_entry all[TRIALS_MAX];
    size_t count = 0;
    const struct trial_entry e = entry("gc=40", "", 1e6);
    (void)snprintf(path, sizeof path, "%s/trials.jsonl", dir);
    assert_int_equal(triallog_append(dir, &e), 0);
    const int fd = open(path, O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    static const char junk[] = "\0\xff{{{\n\n{\"asked\":3}\n";
    assert_int_equal(write(fd, junk, sizeof junk - 1), sizeof junk - 1);
    for (int i = 0; i < TRIALS_MAX + 20; i++)
        assert_true(dprintf(fd,
                            "{\"asked\":\"q%d\",\"finding\":\"\",\"note\":\"\","
                            "\"steps\":9,\"step_ns\":2,\"low_ns\":1,\"high_ns\":3}\n",
                            i) > 0);
    (void)close(fd);
    assert_int_equal(triallog_read(dir, all, &count), 0);
    assert_int_equal(count, TRIALS_MAX);
    assert_string_equal(all[0].asked, "gc=40");
}

static void a_link_in_its_place_is_not_followed(void **state)
{
    (void)state;
    char path[128];
    struct trial_entry all[TRIALS_MAX];
    size_t count = 7;
    (void)snprintf(path, sizeof path, "%s/trials.jsonl", dir);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_true(triallog_read(dir, all, &count) < 0);
    assert_int_equal(count, 7);
    const struct trial_entry e = entry("gc=40", "", 1e6);
    assert_true(triallog_append(dir, &e) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_without_trials_has_none, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_trial_of_a_question_counts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_file_is_its_owners_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_that_are_no_times_are_not_kept, setup,
                                        teardown),
        cmocka_unit_test(hostile_lines_are_skipped),
        cmocka_unit_test_setup_teardown(a_damaged_file_gives_what_is_sound, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_link_in_its_place_is_not_followed, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
