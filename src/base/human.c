/* human.c: numbers as people read them. */
#include "base/human.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *unknown(char *ret_text)
{
    (void)snprintf(ret_text, HUMAN_LEN, "–");
    return ret_text;
}

/* Three significant digits between 1 and 1000; the bounds stand where rounding
 * would add a fourth. */
static int decimals_for(double value)
{
    if (value < 9.995)
        return 2;
    return value < 99.95 ? 1 : 0;
}

static char *print_long_duration(char *ret_text, const char *sign, double seconds)
{
    if (seconds > 1e12) { /* no clock shows this; the digits would not fit */
        (void)snprintf(ret_text, HUMAN_LEN, "%s%.3g s", sign, seconds);
        return ret_text;
    }
    const uint64_t s = (uint64_t)(seconds + 0.5);
    const uint64_t minutes = s / 60;
    const uint64_t hours = minutes / 60;
    if (hours >= 24)
        (void)snprintf(ret_text, HUMAN_LEN, "%s%" PRIu64 "d %02" PRIu64 "h", sign,
                       hours / 24, hours % 24);
    else if (hours > 0)
        (void)snprintf(ret_text, HUMAN_LEN, "%s%" PRIu64 "h %02" PRIu64 "m", sign,
                       hours, minutes % 60);
    else
        (void)snprintf(ret_text, HUMAN_LEN, "%s%" PRIu64 "m %02" PRIu64 "s", sign,
                       minutes, s % 60);
    return ret_text;
}

char *human_duration(char *ret_text, double ns)
{
    static const struct {
        double below_ns;
        double unit_ns;
        const char *name;
    } units[] = {
        { 999.5, 1, "ns" },
        { 999.5e3, 1e3, "µs" },
        { 999.5e6, 1e6, "ms" },
        { 59.95e9, 1e9, "s" },
    };

    if (isnan(ns))
        return unknown(ret_text);
    const char *sign = ns < 0 ? "-" : "";
    ns = fabs(ns);
    if (ns == 0) {
        (void)snprintf(ret_text, HUMAN_LEN, "0 s");
        return ret_text;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (ns >= units[i].below_ns)
            continue;
        const double value = ns / units[i].unit_ns;
        (void)snprintf(ret_text, HUMAN_LEN, "%s%.*f %s", sign, decimals_for(value),
                       value, units[i].name);
        return ret_text;
    }
    return print_long_duration(ret_text, sign, ns / 1e9);
}

char *human_bytes(char *ret_text, double bytes)
{
    static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
    const size_t last = sizeof(names) / sizeof(names[0]) - 1;

    if (isnan(bytes))
        return unknown(ret_text);
    const char *sign = bytes < 0 ? "-" : "";
    bytes = fabs(bytes);
    size_t unit = 0;
    while (bytes >= 1023.5 && unit < last) {
        bytes /= 1024;
        unit++;
    }
    const int decimals = unit > 0 && bytes < 9.95 ? 1 : 0;
    if (bytes >= 1e6) /* beyond exbibytes */
        (void)snprintf(ret_text, HUMAN_LEN, "%s%.3g %s", sign, bytes, names[unit]);
    else
        (void)snprintf(ret_text, HUMAN_LEN, "%s%.*f %s", sign, decimals, bytes,
                       names[unit]);
    return ret_text;
}

char *human_count(char *ret_text, uint64_t count)
{
    char digits[24];
    const size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count);
    size_t out = 0;
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            ret_text[out++] = ',';
        ret_text[out++] = digits[i];
    }
    ret_text[out] = '\0';
    return ret_text;
}

/* Zeros behind the point say nothing. */
static void drop_zeros(char *text)
{
    size_t len = strlen(text);
    if (!strchr(text, '.'))
        return;
    while (text[len - 1] == '0')
        len--;
    text[text[len - 1] == '.' ? len - 1 : len] = '\0';
}

char *human_number(char *ret_text, double value, int digits)
{
    char rounded[HUMAN_LEN];
    if (isnan(value))
        return unknown(ret_text);
    (void)snprintf(rounded, sizeof rounded, "%.*e", digits - 1, value);
    value = strtod(rounded, NULL);
    const int exponent = value == 0 ? 0 : (int)floor(log10(fabs(value)));
    const int decimals = digits - 1 - exponent;
    if (!isfinite(value) || fabs(value) >= 1e15 || decimals > 20) {
        (void)snprintf(ret_text, HUMAN_LEN, "%.3g", value);
    } else if (fabs(value) >= 1000) {
        ret_text[0] = '-';
        (void)human_count(ret_text + (value < 0), (uint64_t)llround(fabs(value)));
    } else {
        (void)snprintf(ret_text, HUMAN_LEN, "%.*f", decimals > 0 ? decimals : 0, value);
        drop_zeros(ret_text);
    }
    return ret_text;
}

char *human_percent(char *ret_text, double share)
{
    if (isnan(share))
        return unknown(ret_text);
    const double percent = share * 100;
    if (fabs(percent) >= 1e6)
        (void)snprintf(ret_text, HUMAN_LEN, "%.3g %%", percent);
    else
        (void)snprintf(ret_text, HUMAN_LEN, "%.1f %%",
                       fabs(percent) < 0.05 ? 0.0 : percent); /* never "-0.0 %" */
    return ret_text;
}
