/* jsonpull.h: reads JSON as a stream of tokens, in bounded memory.
 *
 *     struct jsonpull p;
 *     jsonpull_init(&p, read_more, arg);
 *     while ((token = jsonpull_next(&p)) > JSON_END)
 *         …
 *     jsonpull_release(&p);
 *
 * jansson reads whole documents: a trace of 181 MB becomes gigabytes of tree. This keeps
 * one token. It checks what it must to stay in step (nesting, strings, commas and colons),
 * so that a damaged file is an error and not nonsense; numbers are converted on demand.
 */
#ifndef SONDE_BASE_JSONPULL_H
#define SONDE_BASE_JSONPULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_token {
    JSON_ERROR = -1,
    JSON_END = 0, /* after the one value of the document */
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

enum { JSONPULL_DEPTH = 256, JSONPULL_TOKEN_MAX = 1 << 24 };

struct jsonpull {
    /* Fills in at most len bytes; how many, 0 at the end, or a negative error. */
    long (*read)(void *arg, void *into, size_t len);
    void *arg;
    char *data; /* the window; one token always fits */
    size_t at, len, cap;
    bool ended;        /* nothing behind the window */
    uint64_t consumed; /* bytes before the window */
    const char *text;  /* of a key, string or number, NUL-terminated, unescaped; */
    size_t text_len;   /* valid until the next call */
    unsigned depth;
    uint8_t in_object[JSONPULL_DEPTH / 8];
    enum { WANT_VALUE, WANT_FIRST, WANT_KEY, WANT_COMMA, WANT_NOTHING } want;
    int error;     /* SONDE_E_FORMAT, SONDE_E_LIMIT, or the reader's own */
    char replaced; /* the byte behind the text, which a NUL stands for */
    size_t replaced_at;
    bool has_replaced;
};

void jsonpull_init(struct jsonpull *p, long (*read)(void *, void *, size_t), void *arg);
void jsonpull_release(struct jsonpull *p);

enum json_token jsonpull_next(struct jsonpull *p);
/* Passes over the value that begins with `token`, which was returned last. */
bool jsonpull_skip(struct jsonpull *p, enum json_token token);
/* Where the reader is in the document, for messages and progress. */
uint64_t jsonpull_offset(const struct jsonpull *p);
/* The last NUMBER, or a STRING that is one; NaN otherwise. */
double jsonpull_number(const struct jsonpull *p);

#endif
