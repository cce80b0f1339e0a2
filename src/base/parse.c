/* parse.c: strict parsers for options and environment variables.
 *
 * Decimals are read by hand: strtod() would accept signs, hex, "inf" and the
 * host program's locale.
 */
#include "base/parse.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits at *text and moves it behind them. */
static int take_digits(const char **text, uint64_t *ret_value)
{
    const char *p = *text;
    uint64_t value = 0;

    if (!is_digit(*p))
        return -EINVAL;
    for (; is_digit(*p); p++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return -ERANGE;
    *text = p;
    *ret_value = value;
    return 0;
}

int parse_uint(const char *text, uint64_t *ret_value)
{
    uint64_t value;

    if (!text)
        return -EINVAL;
    const int rc = take_digits(&text, &value);
    if (rc < 0)
        return rc;
    if (*text)
        return -EINVAL;
    *ret_value = value;
    return 0;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* Reads "12", "1.5" or ".5" as an exact whole part and a fraction, so that large
 * whole numbers keep every digit. */
static int take_decimal(const char **text, uint64_t *ret_whole, double *ret_fraction)
{
    uint64_t whole = 0;
    double fraction = 0;
    const char *p = *text;

    if (*p != '.') {
        const int rc = take_digits(&p, &whole);
        if (rc < 0)
            return rc;
    }
    if (*p == '.') {
        if (!is_digit(*++p))
            return -EINVAL;
        for (double place = 0.1; is_digit(*p); p++, place /= 10)
            fraction += (*p - '0') * place;
    }
    *text = p;
    *ret_whole = whole;
    *ret_fraction = fraction;
    return 0;
}

/* A number without a unit is multiplied by bare_factor; 0 allows that for 0 alone. */
static int parse_with_unit(const char *text, const struct unit *units,
                           uint64_t bare_factor, uint64_t *ret_value)
{
    uint64_t whole;
    double fraction;

    if (!text)
        return -EINVAL;
    const int rc = take_decimal(&text, &whole, &fraction);
    if (rc < 0)
        return rc;
    while (units->name && strcmp(text, units->name) != 0)
        units++;
    if (!units->name && *text)
        return -EINVAL;
    const uint64_t factor = units->name ? units->factor : bare_factor;
    if (factor == 0 && (whole > 0 || fraction > 0))
        return -EINVAL;

    uint64_t value;
    const uint64_t part = (uint64_t)(fraction * (double)factor + 0.5);
    if (__builtin_mul_overflow(whole, factor, &value) ||
        __builtin_add_overflow(value, part, &value))
        return -ERANGE;
    *ret_value = value;
    return 0;
}

static const uint64_t second_ns = UINT64_C(1000000000);

static const struct unit time_units[] = {
    { "ns", 1 },
    { "us", 1000 },
    { "µs", 1000 },
    { "ms", 1000000 },
    { "s", UINT64_C(1000000000) },
    { "m", 60 * UINT64_C(1000000000) },
    { "min", 60 * UINT64_C(1000000000) },
    { "h", 3600 * UINT64_C(1000000000) },
    { "d", 86400 * UINT64_C(1000000000) },
    { NULL, 0 },
};

static const struct unit size_units[] = {
    { "B", 1 },
    { "k", UINT64_C(1) << 10 },
    { "K", UINT64_C(1) << 10 },
    { "kB", UINT64_C(1) << 10 },
    { "KB", UINT64_C(1) << 10 },
    { "KiB", UINT64_C(1) << 10 },
    { "M", UINT64_C(1) << 20 },
    { "MB", UINT64_C(1) << 20 },
    { "MiB", UINT64_C(1) << 20 },
    { "G", UINT64_C(1) << 30 },
    { "GB", UINT64_C(1) << 30 },
    { "GiB", UINT64_C(1) << 30 },
    { "T", UINT64_C(1) << 40 },
    { "TB", UINT64_C(1) << 40 },
    { "TiB", UINT64_C(1) << 40 },
    { NULL, 0 },
};

int parse_duration(const char *text, uint64_t *ret_ns)
{
    return parse_with_unit(text, time_units, 0, ret_ns);
}

int parse_duration_s(const char *text, uint64_t *ret_ns)
{
    return parse_with_unit(text, time_units, second_ns, ret_ns);
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
    return parse_with_unit(text, size_units, 1, ret_bytes);
}

int parse_range(const char *text, uint64_t *ret_first, uint64_t *ret_end)
{
    uint64_t first = 0;
    uint64_t end = UINT64_MAX;

    if (!text || strcmp(text, ":") == 0)
        return -EINVAL;
    int rc = *text == ':' ? 0 : take_digits(&text, &first);
    if (rc < 0)
        return rc;
    if (*text++ != ':')
        return -EINVAL;
    if (*text)
        rc = parse_uint(text, &end);
    if (rc < 0)
        return rc;
    if (first >= end)
        return -EINVAL;
    *ret_first = first;
    *ret_end = end;
    return 0;
}

int parse_bool(const char *text, bool *ret_value)
{
    static const char *const words[][2] = {
        { "0", "1" }, { "false", "true" }, { "no", "yes" }, { "off", "on" }
    };

    if (!text)
        return -EINVAL;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        for (int value = 0; value < 2; value++)
            if (strcasecmp(text, words[i][value]) == 0) {
                *ret_value = value;
                return 0;
            }
    return -EINVAL;
}
