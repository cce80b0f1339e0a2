#include "base/human.h"

#include <math.h>

#include "unit.h"

static void durations_take_the_unit_that_fits(void **state)
{
    (void)state;
    static const struct {
        double ns;
        const char *text;
    } cases[] = {
        { 0, "0 s" },          { 0.41, "0.41 ns" },    { 19.3, "19.3 ns" },
        { 999.4, "999 ns" },   { 999.6, "1.00 µs" },   { 4200, "4.20 µs" },
        { 52.1e6, "52.1 ms" }, { 9.996e6, "10.0 ms" }, { 99.96e6, "100 ms" },
        { 3.21e9, "3.21 s" },  { 59.94e9, "59.9 s" },  { 59.96e9, "1m 00s" },
        { 118e9, "1m 58s" },   { 3599.6e9, "1h 00m" }, { 7380e9, "2h 03m" },
        { 86400e9, "1d 00h" }, { 273600e9, "3d 04h" }, { -52.1e6, "-52.1 ms" },
        { NAN, "–" },          { 1e30, "1e+21 s" },    { INFINITY, "inf s" },
    };
    char text[HUMAN_LEN];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(human_duration(text, cases[i].ns), cases[i].text);
}

static void bytes_are_powers_of_1024(void **state)
{
    (void)state;
    static const struct {
        double bytes;
        const char *text;
    } cases[] = {
        { 0, "0 B" },
        { 512, "512 B" },
        { 1023, "1023 B" },
        { 1024, "1.0 KiB" },
        { 1536, "1.5 KiB" },
        { 1048575, "1.0 MiB" },
        { 3.1 * 1073741824, "3.1 GiB" },
        { 128.0 * 1073741824, "128 GiB" },
        { 64 * 1048576, "64 MiB" },
        { -2048, "-2.0 KiB" },
        { NAN, "–" },
        { 1e30, "8.88e+14 PiB" },
    };
    char text[HUMAN_LEN];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(human_bytes(text, cases[i].bytes), cases[i].text);
}

static void counts_have_thousands_separators(void **state)
{
    (void)state;
    char text[HUMAN_LEN];
    assert_string_equal(human_count(text, 0), "0");
    assert_string_equal(human_count(text, 999), "999");
    assert_string_equal(human_count(text, 1488), "1,488");
    assert_string_equal(human_count(text, 1000000), "1,000,000");
    assert_string_equal(human_count(text, UINT64_MAX), "18,446,744,073,709,551,615");
}

static void shares_become_percentages(void **state)
{
    (void)state;
    char text[HUMAN_LEN];
    assert_string_equal(human_percent(text, 0.74), "74.0 %");
    assert_string_equal(human_percent(text, 1), "100.0 %");
    assert_string_equal(human_percent(text, -0.0001), "0.0 %");
    assert_string_equal(human_percent(text, -0.031), "-3.1 %");
    assert_string_equal(human_percent(text, NAN), "–");
    assert_string_equal(human_percent(text, 1e40), "1e+42 %");
}

static void numbers_have_no_exponent(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = { { 6437.2, "6,440" }, { 3182, "3,180" },
                  { 999.6, "1,000" },  { 12.34, "12.3" },
                  { 0.5, "0.5" },      { 0, "0" },
                  { -4381, "-4,380" }, { 0.00012, "0.00012" },
                  { 24110, "24,100" }, { 1e9, "1,000,000,000" },
                  { NAN, "–" } };
    char text[HUMAN_LEN];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(human_number(text, cases[i].value, 3), cases[i].text);
    assert_string_equal(human_number(text, 24113, 4), "24,110");
    assert_string_equal(human_number(text, 0.46305, 4), "0.4631");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_take_the_unit_that_fits),
        cmocka_unit_test(bytes_are_powers_of_1024),
        cmocka_unit_test(counts_have_thousands_separators),
        cmocka_unit_test(numbers_have_no_exponent),
        cmocka_unit_test(shares_become_percentages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
