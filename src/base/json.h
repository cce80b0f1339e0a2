/* json.h: writes JSON as a stream.
 *
 * The writer puts commas, colons and indentation; the caller says what comes.
 * Memory stays bounded with a FILE sink however long the document is. Errors
 * stick and json_finish() reports the first one.
 *
 *     struct json_writer w;
 *     json_init_file(&w, stdout, JSON_STYLE_PRETTY);
 *     json_object_begin(&w);
 *     json_key(&w, "steps");
 *     json_put_uint(&w, 1488);
 *     json_object_end(&w);
 *     rc = json_finish(&w);
 *
 * Values are json_put_…, for jansson, which the reading half links, owns
 * json_string, json_null and their like.
 *
 * Wrong nesting (a value without a key, an end without a begin) is a bug of the
 * caller and asserts.
 */
#ifndef SONDE_BASE_JSON_H
#define SONDE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"

enum { JSON_MAX_DEPTH = 64 };

enum json_style { JSON_STYLE_COMPACT, JSON_STYLE_PRETTY };

/* Sees every string before it is written, keys included, and appends what may be shown
 * (present/html). */
struct json_veil {
    void (*text)(void *arg, const char *text, struct buf *out);
    void *arg;
};

struct json_writer {
    struct buf *out; /* the caller's buffer, or `own` in front of `file` */
    struct buf own;
    FILE *file;
    enum json_style style;
    int depth;
    bool after_key;
    int error;
    uint64_t in_object; /* bit d: the container at depth d + 1 is an object */
    uint64_t has_items; /* bit d: that container is not empty */
    /* Set by the caller after json_init_…(): */
    bool html;                    /* may stand inside <script>: no <, > or & */
    const struct json_veil *veil; /* borrowed; NULL: strings as they are */
    bool brief; /* for those who write lists: the first rows will do */
};

/* The sink is borrowed until json_finish(). With a buffer, text is appended. */
void json_init_buf(struct json_writer *w, struct buf *out, enum json_style style);
void json_init_file(struct json_writer *w, FILE *file, enum json_style style);

/* Ends the document, writes what is still held back and frees the writer's
 * memory. The FILE stays open. Returns 0 or the first error. */
int json_finish(struct json_writer *w);

/* Gives up in the middle of a document: frees the writer's memory. Returns the first
 * error, −ECANCELED without one. */
int json_abandon(struct json_writer *w);

void json_object_begin(struct json_writer *w);
void json_object_end(struct json_writer *w);
void json_array_begin(struct json_writer *w);
void json_array_end(struct json_writer *w);
void json_key(struct json_writer *w, const char *key);
void json_keyn(struct json_writer *w, const char *key, size_t len);

/* Bytes that are not UTF-8 become U+FFFD. NULL is written as null. */
void json_put_string(struct json_writer *w, const char *text);
void json_put_stringn(struct json_writer *w, const char *text, size_t len);
void json_put_int(struct json_writer *w, int64_t value);
void json_put_uint(struct json_writer *w, uint64_t value);

/* The shortest text that reads back as the same number; NaN and infinities are
 * null, for JSON has no word for them. */
void json_put_double(struct json_writer *w, double value);

/* At most `decimals` digits after the point, without trailing zeros. */
void json_put_fixed(struct json_writer *w, double value, int decimals);
void json_put_bool(struct json_writer *w, bool value);
void json_put_null(struct json_writer *w);

/* One newline between documents (JSON lines) or after the last. */
void json_newline(struct json_writer *w);

#endif
