/* jread.c: reads JSON text piece by piece.
 *
 * Numbers take Clinger's fast path where it is exact (at most 15 digits and a power of
 * ten that a double holds); the others go to strtod in the C locale, for the program
 * may have set another.
 */
#include "store/jread.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum want { WANT_VALUE, WANT_FIRST, WANT_KEY, WANT_COLON, WANT_COMMA, WANT_NOTHING };

void jread_init(struct jread *r, const char *text, size_t len)
{
    *r = (struct jread){ .begin = text, .at = text, .end = text + len };
}

static enum jread_token fail(struct jread *r, const char *why)
{
    if (!r->error) {
        r->error = why;
        r->error_at = (size_t)(r->at - r->begin);
    }
    return r->token = JREAD_ERROR;
}

static bool inside_object(const struct jread *r)
{
    return r->depth > 0 && (r->in_object >> (r->depth - 1) & 1);
}

/* ---- Numbers ------------------------------------------------------------------------ */

static pthread_once_t c_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static double slow_number(const char *text, size_t len)
{
    char small[64];
    char *copy = len < sizeof small ? small : malloc(len + 1);
    if (!copy)
        return 0;
    memcpy(copy, text, len);
    copy[len] = '\0';
    (void)pthread_once(&c_once, make_c_locale);
    const double value = c_locale ? strtod_l(copy, NULL, c_locale) : strtod(copy, NULL);
    if (copy != small)
        free(copy);
    return value;
}

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

struct digits {
    uint64_t mantissa;
    int count;    /* significant ones; beyond 19 the mantissa is not kept */
    int exponent; /* of ten */
    bool minus, whole;
};

/* The grammar of RFC 8259. Returns the end of the number, NULL when it is none. */
static const char *scan_number(const char *p, const char *end, struct digits *ret)
{
    struct digits d = { .whole = true };
    d.minus = p < end && *p == '-';
    p += d.minus;
    if (p == end || !is_digit(*p) || (*p == '0' && p + 1 < end && is_digit(p[1])))
        return NULL;
    for (; p < end && is_digit(*p); p++)
        if (d.count || *p != '0') {
            if (d.count++ < 19)
                d.mantissa = d.mantissa * 10 + (uint64_t)(*p - '0');
        }
    if (p < end && *p == '.') {
        d.whole = false;
        const char *first = ++p;
        for (; p < end && is_digit(*p); p++) {
            if (d.count || *p != '0')
                if (d.count++ < 19)
                    d.mantissa = d.mantissa * 10 + (uint64_t)(*p - '0');
            d.exponent--;
        }
        if (p == first)
            return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        d.whole = false;
        p++;
        const bool down = p < end && *p == '-';
        p += p < end && (*p == '-' || *p == '+');
        if (p == end || !is_digit(*p))
            return NULL;
        int e = 0;
        for (; p < end && is_digit(*p); p++)
            e = e < 100000 ? e * 10 + (*p - '0') : e;
        d.exponent += down ? -e : e;
    }
    *ret = d;
    return p;
}

static double to_double(const struct digits *d, const char *text, size_t len)
{
    static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    if (d->count > 15 || d->exponent < -22 || d->exponent > 22)
        return slow_number(text, len);
    double value = (double)d->mantissa; /* exact below 2^53, and so is the rest */
    if (d->exponent < 0)
        value /= tens[-d->exponent];
    else
        value *= tens[d->exponent];
    return d->minus ? -value : value;
}

static bool to_integer(const struct digits *d, int64_t *ret_value)
{
    const uint64_t most = (uint64_t)INT64_MAX + d->minus;
    if (!d->whole || d->count > 19 || d->mantissa > most)
        return false;
    *ret_value = d->minus ? (int64_t)(0 - d->mantissa) : (int64_t)d->mantissa;
    return true;
}

bool number_parse(const char *text, size_t len, double *ret_number, bool *ret_integer,
                  int64_t *ret_value)
{
    struct digits d;
    const char *p = text;
    const char *end = text + len;
    if (p < end && *p == '+')
        p++;
    const char *after = scan_number(p, end, &d);
    /* People write .5 as well. */
    char zero[64];
    if (!after && len < sizeof zero - 2) {
        const bool minus = p < end && *p == '-';
        if (p + minus < end && p[minus] == '.') {
            const size_t rest = (size_t)(end - p) - minus;
            zero[0] = '-';
            zero[minus] = '0';
            memcpy(zero + minus + 1, p + minus, rest);
            p = zero;
            end = zero + minus + 1 + rest;
            after = scan_number(p, end, &d);
        }
    }
    if (!after || after != end)
        return false;
    *ret_number = to_double(&d, p, (size_t)(end - p));
    *ret_integer = to_integer(&d, ret_value);
    return true;
}

static enum jread_token read_number(struct jread *r)
{
    struct digits d;
    const char *after = scan_number(r->at, r->end, &d);
    if (!after)
        return fail(r, "not a number");
    r->text = r->at;
    r->len = (size_t)(after - r->at);
    r->number = to_double(&d, r->text, r->len);
    r->at = after;
    return r->token = to_integer(&d, &r->integer) ? JREAD_INT : JREAD_FLOAT;
}

/* ---- Strings ------------------------------------------------------------------------ */

static unsigned hex4(const char *p)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int digit = is_digit(c)            ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return UINT32_MAX;
        value = value << 4 | (unsigned)digit;
    }
    return value;
}

/* The code point of "\uXXXX" or a pair of them at p; the length in *ret_len, 0 when
 * it is malformed. */
static unsigned escape_point(const char *p, const char *end, size_t *ret_len)
{
    *ret_len = 0;
    if (end - p < 6)
        return 0;
    const unsigned high = hex4(p + 2);
    if (high == UINT32_MAX || (high >= 0xdc00 && high < 0xe000))
        return 0;
    if (high < 0xd800 || high >= 0xe000) {
        *ret_len = 6;
        return high;
    }
    if (end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return 0;
    const unsigned low = hex4(p + 8);
    if (low < 0xdc00 || low >= 0xe000)
        return 0;
    *ret_len = 12;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* The length of the UTF-8 sequence at p, 0 when malformed (RFC 3629). */
static size_t utf8_len(const unsigned char *p, size_t left)
{
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        return left >= 2 && is_tail(p[1]) ? 2 : 0;
    if (p[0] >= 0xe0 && p[0] <= 0xef) {
        if (left < 3 || !is_tail(p[1]) || !is_tail(p[2]) ||
            (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
            return 0;
        return 3;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        if (left < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3]) ||
            (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
            return 0;
        return 4;
    }
    return 0;
}

static size_t escape_len(const char *p, const char *end)
{
    size_t len = 0;
    if (end - p < 2)
        return 0;
    if (p[1] == 'u') {
        (void)escape_point(p, end, &len);
        return len;
    }
    return strchr("\"\\/bfnrt", p[1]) && p[1] ? 2 : 0;
}

static enum jread_token read_string(struct jread *r, enum jread_token token)
{
    const char *p = r->at + 1;
    r->text = p;
    r->escaped = false;
    while (p < r->end && *p != '"') {
        const unsigned char c = (unsigned char)*p;
        size_t len = 1;
        if (c == '\\') {
            r->escaped = true;
            len = escape_len(p, r->end);
        } else if (c < 0x20) {
            len = 0;
        } else if (c >= 0x80) {
            len = utf8_len((const unsigned char *)p, (size_t)(r->end - p));
        }
        if (len == 0) {
            r->at = p;
            return fail(r, "a character that a string may not hold");
        }
        p += len;
    }
    if (p == r->end)
        return fail(r, "a string without end");
    r->len = (size_t)(p - r->text);
    r->at = p + 1;
    return r->token = token;
}

static char *put_utf8(char *out, unsigned point)
{
    if (point < 0x80) {
        *out++ = (char)point;
    } else if (point < 0x800) {
        *out++ = (char)(0xc0 | point >> 6);
        *out++ = (char)(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
        *out++ = (char)(0xe0 | point >> 12);
        *out++ = (char)(0x80 | (point >> 6 & 0x3f));
        *out++ = (char)(0x80 | (point & 0x3f));
    } else {
        *out++ = (char)(0xf0 | point >> 18);
        *out++ = (char)(0x80 | (point >> 12 & 0x3f));
        *out++ = (char)(0x80 | (point >> 6 & 0x3f));
        *out++ = (char)(0x80 | (point & 0x3f));
    }
    return out;
}

static char plain_escape(char c)
{
    static const char from[] = "bfnrt";
    static const char to[] = "\b\f\n\r\t";
    const char *found = strchr(from, c);
    return found ? to[found - from] : c;
}

const char *jread_text(const struct jread *r, struct arena *arena, size_t *ret_len)
{
    char *copy = arena_alloc(arena, r->len + 1);
    if (!copy)
        return NULL;
    if (!r->escaped) {
        memcpy(copy, r->text, r->len);
        *ret_len = r->len;
        return copy;
    }
    char *out = copy;
    const char *end = r->text + r->len;
    for (const char *p = r->text; p < end;) {
        size_t len = 2;
        if (*p != '\\') {
            *out++ = *p++;
            continue;
        }
        if (p[1] == 'u')
            out = put_utf8(out, escape_point(p, end, &len));
        else
            *out++ = plain_escape(p[1]);
        p += len;
    }
    *out = '\0';
    *ret_len = (size_t)(out - copy);
    return copy;
}

bool jread_is(const struct jread *r, const char *word)
{
    return !r->escaped && strlen(word) == r->len && memcmp(r->text, word, r->len) == 0;
}

/* ---- Structure ---------------------------------------------------------------------- */

static void skip_blanks(struct jread *r)
{
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
}

static enum jread_token open_container(struct jread *r, bool object)
{
    if (r->depth == JREAD_DEPTH)
        return fail(r, "nested too deeply");
    if (object)
        r->in_object |= UINT64_C(1) << r->depth;
    else
        r->in_object &= ~(UINT64_C(1) << r->depth);
    r->depth++;
    r->at++;
    r->want = WANT_FIRST;
    return r->token = object ? JREAD_OBJECT_BEGIN : JREAD_ARRAY_BEGIN;
}

static void after_value(struct jread *r)
{
    r->want = r->depth ? WANT_COMMA : WANT_NOTHING;
}

static enum jread_token close_container(struct jread *r, bool object)
{
    if (r->depth == 0 || inside_object(r) != object)
        return fail(r, "a bracket that closes nothing");
    r->depth--;
    r->at++;
    after_value(r);
    return r->token = object ? JREAD_OBJECT_END : JREAD_ARRAY_END;
}

static enum jread_token read_word(struct jread *r, const char *word,
                                  enum jread_token token)
{
    const size_t len = strlen(word);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return fail(r, "not a value");
    r->text = r->at;
    r->len = len;
    r->at += len;
    return r->token = token;
}

static enum jread_token read_value(struct jread *r)
{
    enum jread_token token;
    switch (*r->at) {
    case '{':
        return open_container(r, true);
    case '[':
        return open_container(r, false);
    case '"':
        token = read_string(r, JREAD_STRING);
        break;
    case 't':
        token = read_word(r, "true", JREAD_TRUE);
        break;
    case 'f':
        token = read_word(r, "false", JREAD_FALSE);
        break;
    case 'n':
        token = read_word(r, "null", JREAD_NULL);
        break;
    default:
        token = read_number(r);
    }
    if (token != JREAD_ERROR)
        after_value(r);
    return token;
}

static enum jread_token read_key(struct jread *r)
{
    if (*r->at != '"')
        return fail(r, "a key in quotes should stand here");
    if (read_string(r, JREAD_KEY) == JREAD_ERROR)
        return JREAD_ERROR;
    skip_blanks(r);
    if (r->at == r->end || *r->at != ':')
        return fail(r, "a colon should stand here");
    r->at++;
    r->want = WANT_VALUE;
    return r->token = JREAD_KEY;
}

enum jread_token jread_next(struct jread *r)
{
    if (r->token == JREAD_ERROR)
        return JREAD_ERROR;
    skip_blanks(r);
    if (r->want == WANT_NOTHING)
        return r->at == r->end ? (r->token = JREAD_END)
                               : fail(r, "something behind the end");
    if (r->at == r->end)
        return fail(r, "the text ends too early");
    if (*r->at == '}' || *r->at == ']') {
        if (r->want != WANT_FIRST && r->want != WANT_COMMA)
            return fail(r, "a value should stand here");
        return close_container(r, *r->at == '}');
    }
    if (r->want == WANT_COMMA) {
        if (*r->at != ',')
            return fail(r, "a comma should stand here");
        r->at++;
        skip_blanks(r);
        if (r->at == r->end)
            return fail(r, "the text ends too early");
        r->want = inside_object(r) ? WANT_KEY : WANT_VALUE;
    } else if (r->want == WANT_FIRST) {
        r->want = inside_object(r) ? WANT_KEY : WANT_VALUE;
    }
    return r->want == WANT_KEY ? read_key(r) : read_value(r);
}

bool jread_skip(struct jread *r)
{
    if (r->token != JREAD_OBJECT_BEGIN && r->token != JREAD_ARRAY_BEGIN)
        return r->token != JREAD_ERROR;
    const unsigned depth = r->depth;
    while (r->depth >= depth)
        if (jread_next(r) == JREAD_ERROR)
            return false;
    return true;
}
