#include "cli/options.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "unit.h"

struct values {
    bool flag, other;
    const char *text;
    uint64_t count, size, duration, seconds;
    struct option_range range;
    int choice;
    struct option_list pairs;
};

#define FIELD(name) offsetof(struct values, name)

static const char *const choices[] = { "low", "mid", "high", NULL };

static const struct option table[] = {
    { "flag", 'f', OPTION_FLAG, FIELD(flag), .help = "f", .env = "SONDE_T_FLAG" },
    { "other", 'q', OPTION_FLAG, FIELD(other), .help = "q" },
    { "text", 't', OPTION_TEXT, FIELD(text), .help = "t", .env = "SONDE_T_TEXT" },
    { "count", 'n', OPTION_COUNT, FIELD(count), .help = "n", .env = "SONDE_T_COUNT" },
    { "size", 0, OPTION_SIZE, FIELD(size), .help = "s" },
    { "duration", 0, OPTION_DURATION, FIELD(duration), .help = "d" },
    { "seconds", 0, OPTION_SECONDS, FIELD(seconds), .help = "d" },
    { "range", 0, OPTION_RANGE, FIELD(range), .help = "r" },
    { "choice", 0, OPTION_CHOICE, FIELD(choice), .help = "c", .env = "SONDE_T_CHOICE",
      .choices = choices },
    { "pair", 0, OPTION_PAIRS, FIELD(pairs), .help = "p" },
};

static struct command command = {
    .verb = "test",
    .usage = "[options]",
    .summary = "for tests",
    .options = table,
    .option_count = sizeof table / sizeof *table,
};

/* Errors are part of the interface: what was written to stderr. */
static char said[4096];

struct outcome {
    struct values values;
    bool good;
    int status, argc;
    char *argv[32];
};

static int divert(int fd, const char *path)
{
    (void)fflush(NULL);
    const int saved = dup(fd);
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(saved >= 0 && file >= 0);
    (void)dup2(file, fd);
    (void)close(file);
    return saved;
}

static void restore(int fd, int saved, const char *path)
{
    (void)fflush(NULL);
    (void)dup2(saved, fd);
    (void)close(saved);
    const int file = open(path, O_RDONLY);
    const ssize_t n = read(file, said, sizeof said - 1);
    said[n > 0 ? n : 0] = '\0';
    (void)close(file);
    (void)unlink(path);
}

/* Parses the words of `line`, separated by single blanks. */
static struct outcome parse(const char *line)
{
    static char words[512];
    struct outcome o = { .values = { .choice = 1, .count = 5 } };
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/sonde-options-%d", (int)getpid());
    (void)snprintf(words, sizeof words, "test %s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        o.argv[o.argc++] = word;
    const int saved = divert(STDERR_FILENO, path);
    o.good = options_parse(&command, &o.argc, o.argv, &o.values, &o.status);
    restore(STDERR_FILENO, saved, path);
    return o;
}

static void every_kind_of_value_is_read(void **state)
{
    (void)state;
    const struct outcome o = parse(
        "--flag --text=a=b --count 7 --size 2k --duration 3ms --seconds 4 "
        "--range 5:6 --choice high --pair a=1 --pair b=");
    assert_true(o.good);
    assert_true(o.values.flag);
    assert_false(o.values.other);
    assert_string_equal(o.values.text, "a=b");
    assert_int_equal(o.values.count, 7);
    assert_int_equal(o.values.size, 2048);
    assert_int_equal(o.values.duration, 3000000);
    assert_int_equal(o.values.seconds, 4000000000);
    assert_int_equal(o.values.range.first, 5);
    assert_int_equal(o.values.range.end, 6);
    assert_string_equal(o.values.range.text, "5:6");
    assert_int_equal(o.values.choice, 2);
    assert_int_equal(o.values.pairs.count, 2);
    assert_string_equal(o.values.pairs.items[1], "b=");
    assert_int_equal(o.argc, 1);
}

static void what_is_not_given_keeps_its_default(void **state)
{
    (void)state;
    const struct outcome o = parse("");
    assert_true(o.good);
    assert_int_equal(o.values.choice, 1);
    assert_int_equal(o.values.count, 5);
    assert_null(o.values.range.text);
}

static void letters_may_be_joined(void **state)
{
    (void)state;
    struct outcome o = parse("-fqn12 word");
    assert_true(o.good && o.values.flag && o.values.other);
    assert_int_equal(o.values.count, 12);
    assert_int_equal(o.argc, 2);
    o = parse("-t value -n 3");
    assert_string_equal(o.values.text, "value");
    assert_int_equal(o.values.count, 3);
}

static void a_flag_can_be_switched_off(void **state)
{
    (void)state;
    assert_false(parse("--flag --flag=no").values.flag);
}

static void words_and_options_may_be_mixed(void **state)
{
    (void)state;
    const struct outcome o = parse("one --flag two - -- --three -f");
    assert_true(o.good && o.values.flag);
    assert_int_equal(o.argc, 6);
    assert_string_equal(o.argv[1], "one");
    assert_string_equal(o.argv[2], "two");
    assert_string_equal(o.argv[3], "-");
    assert_string_equal(o.argv[4], "--three");
    assert_string_equal(o.argv[5], "-f");
    assert_null(o.argv[6]);
}

static void a_command_takes_everything_behind_its_first_word(void **state)
{
    (void)state;
    command.stop_at_word = true;
    const struct outcome o = parse("--flag python --count x -- -f");
    command.stop_at_word = false;
    assert_true(o.good);
    assert_int_equal(o.argc, 6);
    assert_string_equal(o.argv[1], "python");
    assert_string_equal(o.argv[4], "--");
    assert_int_equal(o.values.count, 5);
}

static void errors_name_the_option_the_wish_and_what_came(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "--count ten", "--count wants a whole number such as 10, got 'ten'" },
        { "-n ten", "-n wants a whole number such as 10, got 'ten'" },
        { "--size big", "--size wants a size such as 512MiB, got 'big'" },
        { "--duration 5", "--duration wants a duration such as 100ns or 5ms, got '5'" },
        { "--range 9:3", "--range wants a range such as 100:200, got '9:3'" },
        { "--choice top", "--choice wants one of low, mid, high, got 'top'" },
        { "--pair novalue", "--pair wants key=value, got 'novalue'" },
        { "--pair =x", "--pair wants key=value, got '=x'" },
        { "--flag=maybe", "--flag wants yes or no, got 'maybe'" },
        { "--count 99999999999999999999", "--count wants a smaller value" },
        { "--count", "--count wants a value" },
        { "--text -- x", "--text wants a value" },
        { "--txet x", "there is no option --txet; did you mean --text?" },
        { "--zzzz", "there is no option --zzzz" },
        { "-z", "there is no option -z" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct outcome o = parse(cases[i][0]);
        assert_false(o.good);
        assert_int_equal(o.status, CLI_FAILED);
        if (!strstr(said, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], said);
        assert_non_null(strstr(said, "sonde test --help"));
    }
}

static void a_verb_may_have_its_own_usage_status(void **state)
{
    (void)state;
    command.usage_status = 125;
    assert_int_equal(parse("--nope").status, 125);
    command.usage_status = 0;
}

static void more_pairs_than_fit_are_refused(void **state)
{
    (void)state;
    struct values values = { 0 };
    char *argv[2 * OPTION_LIST_MAX + 4] = { "test" };
    int argc = 1, status = 0;
    for (int i = 0; i <= OPTION_LIST_MAX; i++) {
        argv[argc++] = "--pair";
        argv[argc++] = "a=1";
    }
    const int saved = divert(STDERR_FILENO, "/tmp/sonde-options-many");
    assert_false(options_parse(&command, &argc, argv, &values, &status));
    restore(STDERR_FILENO, saved, "/tmp/sonde-options-many");
    assert_int_equal(status, CLI_FAILED);
}

static void the_environment_fills_in_what_flags_leave_open(void **state)
{
    (void)state;
    (void)setenv("SONDE_T_COUNT", "30", 1);
    (void)setenv("SONDE_T_CHOICE", "low", 1);
    (void)setenv("SONDE_T_FLAG", "yes", 1);
    (void)setenv("SONDE_T_TEXT", "", 1);
    const struct outcome o = parse("--choice high");
    assert_true(o.good && o.values.flag);
    assert_int_equal(o.values.count, 30);
    assert_int_equal(o.values.choice, 2);
    assert_null(o.values.text); /* empty is as good as unset */

    (void)setenv("SONDE_T_COUNT", "many", 1);
    assert_false(parse("").good);
    assert_non_null(strstr(said, "SONDE_T_COUNT wants a whole number"));
    assert_true(parse("--count 4").good);
    (void)unsetenv("SONDE_T_COUNT");
    (void)unsetenv("SONDE_T_CHOICE");
    (void)unsetenv("SONDE_T_FLAG");
    (void)unsetenv("SONDE_T_TEXT");
}

static void disabled_means_anything_but_a_no(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool disabled;
    } cases[] = {
        { "1", true }, { "yes", true }, { "whatever", true }, { "0", false },
        { "", false }, { "no", false }, { "false", false },   { "off", false }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)setenv("SONDE_DISABLE", cases[i].text, 1);
        assert_int_equal(options_disabled(), cases[i].disabled);
    }
    (void)unsetenv("SONDE_DISABLE");
    assert_false(options_disabled());
}

static void help_shows_every_option_and_its_variable(void **state)
{
    (void)state;
    const int saved = divert(STDOUT_FILENO, "/tmp/sonde-options-help");
    options_help(&command);
    restore(STDOUT_FILENO, saved, "/tmp/sonde-options-help");
    for (size_t i = 0; i < command.option_count; i++) {
        assert_non_null(strstr(said, table[i].name));
        if (table[i].env)
            assert_non_null(strstr(said, table[i].env));
    }
    assert_non_null(strstr(said, "one of low, mid, high"));
    for (const char *line = said; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 82);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_read),
        cmocka_unit_test(what_is_not_given_keeps_its_default),
        cmocka_unit_test(letters_may_be_joined),
        cmocka_unit_test(a_flag_can_be_switched_off),
        cmocka_unit_test(words_and_options_may_be_mixed),
        cmocka_unit_test(a_command_takes_everything_behind_its_first_word),
        cmocka_unit_test(errors_name_the_option_the_wish_and_what_came),
        cmocka_unit_test(a_verb_may_have_its_own_usage_status),
        cmocka_unit_test(more_pairs_than_fit_are_refused),
        cmocka_unit_test(the_environment_fills_in_what_flags_leave_open),
        cmocka_unit_test(disabled_means_anything_but_a_no),
        cmocka_unit_test(help_shows_every_option_and_its_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
