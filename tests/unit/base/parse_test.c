#include "base/parse.h"

#include <errno.h>

#include "unit.h"

struct good {
    const char *text;
    uint64_t value;
};

struct bad {
    const char *text;
    int rc;
};

typedef int parser(const char *text, uint64_t *ret_value);

static void expect_good(parser *parse, const struct good *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value = 0;
        if (parse(cases[i].text, &value) != 0 || value != cases[i].value)
            fail_msg("'%s' gave %llu", cases[i].text, (unsigned long long)value);
    }
}

static void expect_bad(parser *parse, const struct bad *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value = 77;
        const int rc = parse(cases[i].text, &value);
        if (rc != cases[i].rc || value != 77)
            fail_msg("'%s' gave %d", cases[i].text ? cases[i].text : "NULL", rc);
    }
}

#define GOOD(parse, ...)                                                               \
    expect_good(parse, (const struct good[]){ __VA_ARGS__ },                           \
                sizeof((const struct good[]){ __VA_ARGS__ }) / sizeof(struct good))
#define BAD(parse, ...)                                                                \
    expect_bad(parse, (const struct bad[]){ __VA_ARGS__ },                             \
               sizeof((const struct bad[]){ __VA_ARGS__ }) / sizeof(struct bad))

static void whole_numbers(void **state)
{
    (void)state;
    GOOD(parse_uint, { "0", 0 }, { "007", 7 }, { "18446744073709551615", UINT64_MAX });
    BAD(parse_uint, { "", -EINVAL }, { NULL, -EINVAL }, { "-1", -EINVAL },
        { "+1", -EINVAL }, { " 1", -EINVAL }, { "1 ", -EINVAL }, { "0x10", -EINVAL },
        { "1.0", -EINVAL }, { "18446744073709551616", -ERANGE });
}

static void durations_need_a_unit(void **state)
{
    (void)state;
    GOOD(parse_duration, { "5m", 300000000000 }, { "1.5s", 1500000000 },
         { "200ms", 200000000 }, { "1h", 3600000000000 }, { "10us", 10000 },
         { "10µs", 10000 }, { "3ns", 3 }, { "2d", 172800000000000 }, { "0", 0 },
         { ".5s", 500000000 }, { "0.1s", 100000000 }, { "1.999999999s", 1999999999 });
    BAD(parse_duration, { "5", -EINVAL }, { "5 s", -EINVAL }, { "s", -EINVAL },
        { "5sec", -EINVAL }, { "-5s", -EINVAL }, { "1.s", -EINVAL },
        { "1e3s", -EINVAL }, { "infs", -EINVAL }, { "1,5s", -EINVAL },
        { "5S", -EINVAL }, { "99999999999999h", -ERANGE });
}

static void bare_seconds_where_they_are_the_custom(void **state)
{
    (void)state;
    GOOD(parse_duration_s, { "5", 5000000000 }, { "0.5", 500000000 },
         { "10ms", 10000000 });
    BAD(parse_duration_s, { "5x", -EINVAL }, { "", -EINVAL });
}

static void sizes_are_powers_of_1024(void **state)
{
    (void)state;
    GOOD(parse_size, { "1GiB", 1073741824 }, { "512M", 536870912 }, { "64k", 65536 },
         { "64K", 65536 }, { "100", 100 }, { "100B", 100 }, { "1.5G", 1610612736 },
         { "2TiB", 2199023255552 }, { "1MB", 1048576 });
    BAD(parse_size, { "1Gb", -EINVAL }, { "-1M", -EINVAL }, { "M", -EINVAL },
        { "1 GiB", -EINVAL }, { "99999999T", -ERANGE }, { NULL, -EINVAL });
}

static void ranges_may_be_open_on_one_side(void **state)
{
    (void)state;
    uint64_t first = 1;
    uint64_t end = 1;
    assert_int_equal(parse_range("100:200", &first, &end), 0);
    assert_int_equal(first, 100);
    assert_int_equal(end, 200);
    assert_int_equal(parse_range("5:", &first, &end), 0);
    assert_int_equal(first, 5);
    assert_true(end == UINT64_MAX);
    assert_int_equal(parse_range(":7", &first, &end), 0);
    assert_int_equal(first, 0);
    assert_int_equal(end, 7);

    static const char *const bad[] = { ":",   "",      "5",    "7:7",  "8:7",
                                       "a:b", "1:2:3", "-1:2", "1: 2", "0:0" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(parse_range(bad[i], &first, &end), -EINVAL);
    assert_int_equal(first, 0);
    assert_int_equal(end, 7);
}

static void switches_have_many_spellings(void **state)
{
    (void)state;
    bool value = false;
    assert_int_equal(parse_bool("Yes", &value), 0);
    assert_true(value);
    assert_int_equal(parse_bool("off", &value), 0);
    assert_false(value);
    assert_int_equal(parse_bool("1", &value), 0);
    assert_true(value);
    assert_int_equal(parse_bool("maybe", &value), -EINVAL);
    assert_int_equal(parse_bool("", &value), -EINVAL);
    assert_true(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(durations_need_a_unit),
        cmocka_unit_test(bare_seconds_where_they_are_the_custom),
        cmocka_unit_test(sizes_are_powers_of_1024),
        cmocka_unit_test(ranges_may_be_open_on_one_side),
        cmocka_unit_test(switches_have_many_spellings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
