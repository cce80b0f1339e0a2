/* words.c: see words.h. */
#include "present/model/words.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

static const double EXACT = 9007199254740992; /* 2^53 */

char *words_si(char ret_text[HUMAN_LEN], double value)
{
    static const char units[] = " kMGTPEZY";
    int unit = 0;
    if (isnan(value)) {
        (void)snprintf(ret_text, HUMAN_LEN, "–");
        return ret_text;
    }
    while (fabs(value) >= 999.5 && units[unit + 1]) {
        value /= 1000;
        unit++;
    }
    const int decimals = unit == 0 && value == floor(value) ? 0
                         : value < 9.995                    ? 2
                         : value < 99.95                    ? 1
                                                            : 0;
    (void)snprintf(ret_text, HUMAN_LEN, "%.*f%s%c", decimals, value, unit ? " " : "",
                   unit ? units[unit] : '\0');
    return ret_text;
}

char *words_whole(char ret_text[HUMAN_LEN], double value)
{
    if (value >= 0 && value < EXACT)
        return human_count(ret_text, (uint64_t)value);
    (void)snprintf(ret_text, HUMAN_LEN, "%.3g", value);
    return ret_text;
}

static int missing(const char *text, int columns)
{
    int used = 0;
    for (const char *c = text; *c; c++)
        used += (*c & 0xc0) != 0x80;
    return columns > used ? columns - used : 0;
}

void words_left(FILE *out, const char *text, int columns)
{
    (void)fprintf(out, "%s%*s", text, missing(text, columns), "");
}

void words_right(FILE *out, const char *text, int columns)
{
    (void)fprintf(out, "%*s%s", missing(text, columns), "", text);
}

void put_number(struct json_writer *w, const char *key, double value)
{
    json_key(w, key);
    if (value >= 0 && value < EXACT && value == floor(value))
        json_put_uint(w, (uint64_t)value);
    else
        json_put_double(w, value);
}

void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text);
}

void put_mb(struct json_writer *w, const char *key, double bytes)
{
    json_key(w, key);
    json_put_fixed(w, bytes / 1048576, 6);
}
