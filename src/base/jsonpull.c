/* jsonpull.c: the tokens. See jsonpull.h. */
#include "base/jsonpull.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { FIRST_WINDOW = 1 << 20 };

void jsonpull_init(struct jsonpull *p, long (*read)(void *, void *, size_t), void *arg)
{
    *p = (struct jsonpull){ .read = read, .arg = arg, .want = WANT_VALUE };
}

void jsonpull_release(struct jsonpull *p)
{
    free(p->data);
    p->data = NULL;
}

uint64_t jsonpull_offset(const struct jsonpull *p)
{
    return p->consumed + p->at;
}

static enum json_token fail(struct jsonpull *p, int error)
{
    if (!p->error)
        p->error = error;
    return JSON_ERROR;
}

/* ---- The window --------------------------------------------------------------------- */

static bool make_room(struct jsonpull *p, size_t keep_from)
{
    if (keep_from > 0) {
        memmove(p->data, p->data + keep_from, p->len - keep_from);
        p->consumed += keep_from;
        p->len -= keep_from;
        p->at -= keep_from;
    }
    if (p->len < p->cap)
        return true;
    const size_t cap = p->cap ? p->cap * 2 : FIRST_WINDOW;
    if (cap > 2 * (size_t)JSONPULL_TOKEN_MAX) {
        (void)fail(p, SONDE_E_LIMIT);
        return false;
    }
    char *data = realloc(p->data, cap + 1); /* one more for a NUL */
    if (!data) {
        (void)fail(p, -ENOMEM);
        return false;
    }
    p->data = data;
    p->cap = cap;
    return true;
}

/* More bytes behind those we have; what lies before keep_from may go. False at the end
 * and on errors. */
static bool more(struct jsonpull *p, size_t keep_from)
{
    if (p->ended || p->error || !make_room(p, keep_from))
        return false;
    const long got = p->read(p->arg, p->data + p->len, p->cap - p->len);
    if (got < 0)
        (void)fail(p, (int)got);
    if (got <= 0) {
        p->ended = true;
        return false;
    }
    p->len += (size_t)got;
    return true;
}

static int skip_blanks(struct jsonpull *p)
{
    for (;;) {
        while (p->at < p->len) {
            const char c = p->data[p->at];
            if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
                return (unsigned char)c;
            p->at++;
        }
        if (!more(p, p->at))
            return -1;
    }
}

/* ---- Strings ------------------------------------------------------------------------ */

static int hex4(const char *s)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        const char c = s[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static size_t put_utf8(char *to, uint32_t ch)
{
    if (ch < 0x80) {
        to[0] = (char)ch;
        return 1;
    }
    if (ch < 0x800) {
        to[0] = (char)(0xc0 | ch >> 6);
        to[1] = (char)(0x80 | (ch & 63));
        return 2;
    }
    if (ch < 0x10000) {
        to[0] = (char)(0xe0 | ch >> 12);
        to[1] = (char)(0x80 | (ch >> 6 & 63));
        to[2] = (char)(0x80 | (ch & 63));
        return 3;
    }
    to[0] = (char)(0xf0 | ch >> 18);
    to[1] = (char)(0x80 | (ch >> 12 & 63));
    to[2] = (char)(0x80 | (ch >> 6 & 63));
    to[3] = (char)(0x80 | (ch & 63));
    return 4;
}

/* \uXXXX at s (behind the u), len bytes there; bytes taken, 0 when it is none. A half of
 * a pair alone becomes U+FFFD, as does NUL, which would end the text. */
static size_t unescape_unicode(const char *s, size_t len, uint32_t *ret_ch)
{
    const int high = len >= 4 ? hex4(s) : -1;
    if (high < 0)
        return 0;
    *ret_ch = (uint32_t)high;
    if (high >= 0xd800 && high < 0xdc00 && len >= 10 && s[4] == '\\' && s[5] == 'u') {
        const int low = hex4(s + 6);
        if (low >= 0xdc00 && low < 0xe000) {
            *ret_ch = 0x10000 + ((uint32_t)(high - 0xd800) << 10) +
                      (uint32_t)(low - 0xdc00);
            return 10;
        }
    }
    if (high == 0 || (high >= 0xd800 && high < 0xe000))
        *ret_ch = 0xfffd;
    return 4;
}

/* In place: an escape is never shorter than what it stands for. SIZE_MAX: a wrong one. */
static size_t unescape(char *s, size_t len)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    size_t out = 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] != '\\') {
            s[out++] = s[i];
            continue;
        }
        const char *known = ++i < len && s[i] ? strchr(from, s[i]) : NULL;
        uint32_t ch;
        if (known) {
            s[out++] = to[known - from];
            continue;
        }
        const size_t taken = i < len && s[i] == 'u'
                                 ? unescape_unicode(s + i + 1, len - i - 1, &ch)
                                 : 0;
        if (taken == 0)
            return SIZE_MAX;
        out += put_utf8(s + out, ch);
        i += taken;
    }
    return out;
}

/* The text ends with a NUL in place of what follows it, until the next call. */
static void set_text(struct jsonpull *p, size_t from, size_t len, size_t end)
{
    p->text = p->data + from;
    p->text_len = len;
    if (from + len == end && end < p->len) {
        p->replaced = p->data[end];
        p->replaced_at = end;
        p->has_replaced = true;
    }
    p->data[from + len] = '\0';
}

static void restore(struct jsonpull *p)
{
    if (p->has_replaced)
        p->data[p->replaced_at] = p->replaced;
    p->has_replaced = false;
}

/* p->at is behind the opening quote. */
static bool take_string(struct jsonpull *p)
{
    size_t scanned = 0;
    bool escaped = false;
    for (;;) {
        const char *start = p->data + p->at, *end = p->data + p->len;
        for (const char *s = start + scanned; s < end; s++) {
            if (*s == '"') {
                const size_t len = (size_t)(s - start), from = p->at;
                size_t kept = len;
                if (escaped)
                    kept = unescape(p->data + from, len);
                if (kept == SIZE_MAX) {
                    (void)fail(p, SONDE_E_FORMAT);
                    return false;
                }
                p->at = from + len + 1;
                /* The quote itself gives way to the NUL: nothing to restore. */
                p->text = p->data + from;
                p->text_len = kept;
                p->data[from + kept] = '\0';
                return true;
            }
            if (*s == '\\') {
                escaped = true;
                if (s + 1 == end) {
                    end = s; /* look at both together, when they are there */
                    break;
                }
                s++;
            }
        }
        scanned = (size_t)(end - start);
        if (scanned > JSONPULL_TOKEN_MAX) {
            (void)fail(p, SONDE_E_LIMIT);
            return false;
        }
        if (!more(p, p->at)) {
            (void)fail(p, SONDE_E_FORMAT);
            return false;
        }
    }
}

/* ---- Numbers and words -------------------------------------------------------------- */

static bool in_number(char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' ||
           c == 'E';
}

static enum json_token take_number(struct jsonpull *p)
{
    size_t n = 0;
    for (;;) {
        while (p->at + n < p->len && in_number(p->data[p->at + n]))
            n++;
        if (n > 400)
            return fail(p, SONDE_E_FORMAT);
        if (p->at + n < p->len || !more(p, p->at))
            break;
    }
    if (p->error)
        return JSON_ERROR;
    set_text(p, p->at, n, p->at + n);
    p->at += n;
    return JSON_NUMBER;
}

static enum json_token take_word(struct jsonpull *p, const char *word, size_t len,
                                 enum json_token token)
{
    while (p->len - p->at < len)
        if (!more(p, p->at))
            return fail(p, SONDE_E_FORMAT);
    if (memcmp(p->data + p->at, word, len) != 0)
        return fail(p, SONDE_E_FORMAT);
    p->at += len;
    return token;
}

double jsonpull_number(const struct jsonpull *p)
{
    char *end;
    if (!p->text || p->text_len == 0)
        return NAN;
    const double value = strtod(p->text, &end);
    return end == p->text + p->text_len ? value : NAN;
}

/* ---- Structure ---------------------------------------------------------------------- */

static bool inside_object(const struct jsonpull *p)
{
    const unsigned d = p->depth - 1;
    return p->in_object[d / 8] >> d % 8 & 1;
}

static enum json_token open_container(struct jsonpull *p, bool object)
{
    if (p->depth == JSONPULL_DEPTH)
        return fail(p, SONDE_E_LIMIT);
    const unsigned d = p->depth++;
    const uint8_t bit = (uint8_t)(1u << d % 8);
    if (object)
        p->in_object[d / 8] |= bit;
    else
        p->in_object[d / 8] &= (uint8_t)~bit;
    p->at++;
    p->want = WANT_FIRST;
    return object ? JSON_OBJECT : JSON_ARRAY;
}

static void value_done(struct jsonpull *p)
{
    p->want = p->depth ? WANT_COMMA : WANT_NOTHING;
}

static enum json_token close_container(struct jsonpull *p, char c)
{
    const bool object = c == '}';
    if (p->depth == 0 || inside_object(p) != object)
        return fail(p, SONDE_E_FORMAT);
    p->depth--;
    p->at++;
    value_done(p);
    return object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

static enum json_token take_value(struct jsonpull *p, int c)
{
    enum json_token token;
    switch (c) {
    case '{':
        return open_container(p, true);
    case '[':
        return open_container(p, false);
    case '"':
        p->at++;
        token = take_string(p) ? JSON_STRING : JSON_ERROR;
        break;
    case 't':
        token = take_word(p, "true", 4, JSON_TRUE);
        break;
    case 'f':
        token = take_word(p, "false", 5, JSON_FALSE);
        break;
    case 'n':
        token = take_word(p, "null", 4, JSON_NULL);
        break;
    /* Written by Python where numbers are not finite. */
    case 'N':
        token = take_word(p, "NaN", 3, JSON_NULL);
        break;
    case 'I':
        token = take_word(p, "Infinity", 8, JSON_NULL);
        break;
    default:
        token = in_number((char)c) ? take_number(p) : fail(p, SONDE_E_FORMAT);
        break;
    }
    value_done(p);
    return token;
}

static enum json_token take_key(struct jsonpull *p)
{
    p->at++;
    if (!take_string(p))
        return JSON_ERROR;
    /* The colon is looked for now; more() may move the window, and the text with it. */
    const size_t offset = (size_t)(p->text - p->data);
    size_t colon = p->at;
    for (;; colon++) {
        if (colon == p->len) {
            const uint64_t before = p->consumed;
            const size_t at = p->at;
            p->at = colon;
            if (!more(p, offset))
                return fail(p, SONDE_E_FORMAT);
            const size_t moved = (size_t)(p->consumed - before);
            p->at = at - moved;
            colon -= moved;
            p->text = p->data + (offset - moved);
        }
        if (!strchr(" \t\r\n", p->data[colon]) || p->data[colon] == '\0')
            break;
    }
    if (p->data[colon] != ':')
        return fail(p, SONDE_E_FORMAT);
    p->at = colon + 1;
    p->want = WANT_VALUE;
    return JSON_KEY;
}

enum json_token jsonpull_next(struct jsonpull *p)
{
    if (p->error)
        return JSON_ERROR;
    restore(p);
    p->text = NULL;
    p->text_len = 0;
    int c = skip_blanks(p);
    if (p->error)
        return JSON_ERROR;
    if (p->want == WANT_NOTHING)
        return c < 0 ? JSON_END : fail(p, SONDE_E_FORMAT);
    if (c < 0)
        return fail(p, SONDE_E_FORMAT);
    if (p->want == WANT_COMMA) {
        if (c == '}' || c == ']')
            return close_container(p, (char)c);
        if (c != ',')
            return fail(p, SONDE_E_FORMAT);
        p->at++;
        c = skip_blanks(p);
        p->want = inside_object(p) ? WANT_KEY : WANT_VALUE;
    } else if (p->want == WANT_FIRST) {
        if (c == '}' || c == ']')
            return close_container(p, (char)c);
        p->want = inside_object(p) ? WANT_KEY : WANT_VALUE;
    }
    if (c < 0)
        return fail(p, SONDE_E_FORMAT);
    if (p->want == WANT_KEY)
        return c == '"' ? take_key(p) : fail(p, SONDE_E_FORMAT);
    return take_value(p, c);
}

bool jsonpull_skip(struct jsonpull *p, enum json_token token)
{
    if (token != JSON_OBJECT && token != JSON_ARRAY)
        return token > JSON_END;
    const unsigned outside = p->depth - 1;
    while (p->depth > outside)
        if (jsonpull_next(p) <= JSON_END)
            return false;
    return true;
}
