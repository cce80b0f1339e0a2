/* scan.h: numbers out of text the kernel writes, without allocation or locale.
 *
 * /proc and /sys are read many times a second: sscanf and strtod would cost more than
 * the reading. All take a pointer that moves on and the end of the text; nothing reads
 * beyond it. For what people type see parse.h, which is strict.
 */
#ifndef SONDE_BASE_SCAN_H
#define SONDE_BASE_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct scan {
    const char *at, *end;
};

static inline void scan_blanks(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
        s->at++;
}

/* Digits behind blanks; false (and nothing moved but the blanks) without any. Wraps
 * beyond 64 bits, as counters do. */
static inline bool scan_u64(struct scan *s, uint64_t *ret_value)
{
    scan_blanks(s);
    const char *p = s->at;
    uint64_t v = 0;
    while (p < s->end && (unsigned char)(*p - '0') < 10)
        v = v * 10 + (uint64_t)(*p++ - '0');
    if (p == s->at)
        return false;
    s->at = p;
    *ret_value = v;
    return true;
}

static inline bool scan_i64(struct scan *s, int64_t *ret_value)
{
    uint64_t v;
    scan_blanks(s);
    const char *begin = s->at;
    const bool minus = s->at < s->end && *s->at == '-';
    s->at += minus;
    if (!scan_u64(s, &v)) {
        s->at = begin;
        return false;
    }
    *ret_value = (int64_t)(minus ? 0 - v : v);
    return true;
}

/* "12.34", without exponent. */
static inline bool scan_decimal(struct scan *s, double *ret_value)
{
    uint64_t whole;
    if (!scan_u64(s, &whole))
        return false;
    double v = (double)whole;
    if (s->at < s->end && *s->at == '.')
        for (double unit = 0.1; ++s->at < s->end && (unsigned char)(*s->at - '0') < 10;
             unit /= 10)
            v += unit * (*s->at - '0');
    *ret_value = v;
    return true;
}

/* Over one word and the blanks before it; false at the end of the line. */
static inline bool scan_skip_word(struct scan *s)
{
    scan_blanks(s);
    const char *p = s->at;
    while (p < s->end && *p != ' ' && *p != '\t' && *p != '\n')
        p++;
    const bool any = p > s->at;
    s->at = p;
    return any;
}

/* To the beginning of the next line; false when there is none. */
static inline bool scan_next_line(struct scan *s)
{
    const char *nl = s->at < s->end ? memchr(s->at, '\n', (size_t)(s->end - s->at))
                                    : NULL;
    s->at = nl ? nl + 1 : s->end;
    return s->at < s->end;
}

/* Moves over `word` when it stands here. */
static inline bool scan_word(struct scan *s, const char *word)
{
    const size_t len = strlen(word);
    if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
        return false;
    s->at += len;
    return true;
}

#endif
