/* json.c: the streaming JSON writer.
 *
 * State is one bit per open container for its kind and one for "not empty";
 * nothing else needs to be remembered to place commas.
 *
 * Invariants: (1) depth <= JSON_MAX_DEPTH  (2) after_key only inside an object
 *             (3) with a FILE sink `own` holds at most FLUSH_AT bytes plus the
 *                 longest single piece, itself at most a few hundred bytes
 */
#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSH_AT = 32 * 1024, PIECE = 256, NUMBER_LEN = 400 };

static void writer_init(struct json_writer *w, FILE *file, enum json_style style)
{
    *w = (struct json_writer){ .own = BUF_INIT, .file = file, .style = style };
}

void json_init_buf(struct json_writer *w, struct buf *out, enum json_style style)
{
    writer_init(w, NULL, style);
    w->out = out;
}

void json_init_file(struct json_writer *w, FILE *file, enum json_style style)
{
    writer_init(w, file, style);
    w->out = &w->own;
}

static void flush(struct json_writer *w)
{
    if (!w->file || w->own.len == 0)
        return;
    errno = 0;
    if (w->error == 0 && fwrite(w->own.data, 1, w->own.len, w->file) != w->own.len)
        w->error = errno > 0 ? -errno : -EIO;
    buf_truncate(&w->own, 0);
}

static void emit(struct json_writer *w, const char *text, size_t len)
{
    buf_append(w->out, text, len);
    if (w->file && w->own.len >= FLUSH_AT)
        flush(w);
}

static void emit_text(struct json_writer *w, const char *text)
{
    emit(w, text, strlen(text));
}

int json_finish(struct json_writer *w)
{
    assert(w->depth == 0 && !w->after_key);
    flush(w);
    const int rc = w->error < 0 ? w->error : w->out->error;
    buf_release(&w->own);
    return rc;
}

int json_abandon(struct json_writer *w)
{
    const int rc = w->error < 0 ? w->error : w->out->error;
    w->depth = 0;
    w->after_key = false;
    buf_release(&w->own);
    return rc < 0 ? rc : -ECANCELED;
}

void json_newline(struct json_writer *w)
{
    assert(w->depth == 0);
    emit_text(w, "\n");
}

static void indent(struct json_writer *w)
{
    if (w->style != JSON_STYLE_PRETTY)
        return;
    emit_text(w, "\n");
    for (int i = 0; i < w->depth; i++)
        emit_text(w, "  ");
}

static uint64_t depth_bit(const struct json_writer *w)
{
    return UINT64_C(1) << (w->depth - 1);
}

/* The comma and indentation in front of an item of the open container. */
static void item_begin(struct json_writer *w)
{
    if (w->has_items & depth_bit(w))
        emit_text(w, ",");
    w->has_items |= depth_bit(w);
    indent(w);
}

static void value_begin(struct json_writer *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->depth == 0)
        return;
    assert(!(w->in_object & depth_bit(w)) && "a value inside an object needs a key");
    item_begin(w);
}

static void container_begin(struct json_writer *w, bool object)
{
    value_begin(w);
    assert(w->depth < JSON_MAX_DEPTH);
    w->depth++;
    w->has_items &= ~depth_bit(w);
    w->in_object &= ~depth_bit(w);
    if (object)
        w->in_object |= depth_bit(w);
    emit_text(w, object ? "{" : "[");
}

static void container_end(struct json_writer *w, bool object)
{
    assert(w->depth > 0 && !w->after_key);
    assert(object == ((w->in_object & depth_bit(w)) != 0));
    const bool had_items = w->has_items & depth_bit(w);
    w->depth--;
    if (had_items)
        indent(w);
    emit_text(w, object ? "}" : "]");
}

void json_object_begin(struct json_writer *w)
{
    container_begin(w, true);
}

void json_object_end(struct json_writer *w)
{
    container_end(w, true);
}

void json_array_begin(struct json_writer *w)
{
    container_begin(w, false);
}

void json_array_end(struct json_writer *w)
{
    container_end(w, false);
}

static bool is_continuation(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* The length of the UTF-8 sequence at p, 0 when it is malformed: truncated,
 * overlong, a surrogate, or past U+10FFFF (RFC 3629). */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        return left >= 2 && is_continuation(p[1]) ? 2 : 0;
    if (p[0] >= 0xe0 && p[0] <= 0xef) {
        if (left < 3 || !is_continuation(p[1]) || !is_continuation(p[2]))
            return 0;
        const bool overlong = p[0] == 0xe0 && p[1] < 0xa0;
        const bool surrogate = p[0] == 0xed && p[1] > 0x9f;
        return overlong || surrogate ? 0 : 3;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        if (left < 4 || !is_continuation(p[1]) || !is_continuation(p[2]) ||
            !is_continuation(p[3]))
            return 0;
        const bool overlong = p[0] == 0xf0 && p[1] < 0x90;
        const bool too_large = p[0] == 0xf4 && p[1] > 0x8f;
        return overlong || too_large ? 0 : 4;
    }
    return 0;
}

static const char *short_escape(unsigned char c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        return NULL;
    }
}

static void emit_escaped(struct json_writer *w, unsigned char c)
{
    const char *escape = short_escape(c);
    char hex[8];
    if (!escape) {
        (void)snprintf(hex, sizeof(hex), "\\u%04x", c);
        escape = hex;
    }
    emit_text(w, escape);
}

static bool needs_escape(const struct json_writer *w, unsigned char c)
{
    if (c < 0x20 || c == '"' || c == '\\')
        return true;
    return w->html && (c == '<' || c == '>' || c == '&');
}

/* Plain characters go out in runs; the loop only stops for what needs care. */
static void emit_quoted(struct json_writer *w, const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t start = 0;
    size_t i = 0;

    emit_text(w, "\"");
    while (i < len) {
        const size_t n = utf8_length(p + i, len - i);
        const bool plain = n > 0 && !needs_escape(w, p[i]);
        if (plain && i - start < PIECE) {
            i += n;
            continue;
        }
        emit(w, text + start, i - start);
        if (plain) {
            start = i;
            continue;
        }
        if (n == 0)
            emit_text(w, "\xef\xbf\xbd");
        else
            emit_escaped(w, p[i]);
        start = ++i;
    }
    emit(w, text + start, i - start);
    emit_text(w, "\"");
}

/* A veil wants whole texts: the copy ends at the first NUL, as all ours do. */
static void emit_string(struct json_writer *w, const char *text, size_t len)
{
    struct buf plain = BUF_INIT;
    struct buf shown = BUF_INIT;
    if (!w->veil) {
        emit_quoted(w, text, len);
        return;
    }
    buf_append(&plain, text, len);
    w->veil->text(w->veil->arg, plain.data, &shown);
    if (plain.error < 0 || shown.error < 0)
        w->error = w->error < 0 ? w->error : -ENOMEM;
    emit_quoted(w, shown.data, shown.len);
    buf_release(&plain);
    buf_release(&shown);
}

void json_key(struct json_writer *w, const char *key)
{
    json_keyn(w, key, strlen(key));
}

void json_keyn(struct json_writer *w, const char *key, size_t len)
{
    assert(w->depth > 0 && (w->in_object & depth_bit(w)) && !w->after_key);
    item_begin(w);
    emit_string(w, key, len);
    emit_text(w, w->style == JSON_STYLE_PRETTY ? ": " : ":");
    w->after_key = true;
}

void json_put_string(struct json_writer *w, const char *text)
{
    json_put_stringn(w, text, text ? strlen(text) : 0);
}

void json_put_stringn(struct json_writer *w, const char *text, size_t len)
{
    if (!text) {
        json_put_null(w);
        return;
    }
    value_begin(w);
    emit_string(w, text, len);
}

static void emit_value(struct json_writer *w, const char *text)
{
    value_begin(w);
    emit_text(w, text);
}

void json_put_int(struct json_writer *w, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)value);
    emit_value(w, text);
}

void json_put_uint(struct json_writer *w, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    emit_value(w, text);
}

/* The program we live in may have set a locale with another decimal point,
 * possibly of several bytes: whatever is not part of a number becomes one '.'. */
static void undo_locale(char *number)
{
    const size_t before = strspn(number, "+-0123456789eE");
    const size_t point = strcspn(number + before, "+-0123456789eE");
    if (point == 0)
        return;
    number[before] = '.';
    memmove(number + before + 1, number + before + point,
            strlen(number + before + point) + 1);
}

void json_put_double(struct json_writer *w, double value)
{
    char text[NUMBER_LEN];

    if (!isfinite(value)) {
        json_put_null(w);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    undo_locale(text);
    emit_value(w, text);
}

void json_put_fixed(struct json_writer *w, double value, int decimals)
{
    char text[NUMBER_LEN]; /* the largest double has 309 digits */

    assert(decimals >= 0 && decimals <= 17);
    if (!isfinite(value)) {
        json_put_null(w);
        return;
    }
    (void)snprintf(text, sizeof(text), "%.*f", decimals, value);
    undo_locale(text);
    if (strchr(text, '.')) {
        size_t len = strlen(text);
        while (text[len - 1] == '0')
            len--;
        text[text[len - 1] == '.' ? len - 1 : len] = '\0';
    }
    emit_value(w, strcmp(text, "-0") == 0 ? "0" : text);
}

void json_put_bool(struct json_writer *w, bool value)
{
    emit_value(w, value ? "true" : "false");
}

void json_put_null(struct json_writer *w)
{
    emit_value(w, "null");
}
