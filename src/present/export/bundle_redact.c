/* bundle_redact.c: see bundle_redact.h.
 *
 *     run.json    rewritten: secrets by the names of their keys and by their looks, the
 *                 machine's name, then names of users and homes
 *     *.tables    texts, in place
 *     traces      texts of sites, in place
 *     *.txt       stacks of hangs: lines, in place
 */
#include "present/export/bundle_redact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/files.h"
#include "base/redact.h"
#include "trace/packtexts.h"
#include "trace/tables.h"

enum { JSON_MOST = 64 << 20, TEXT_MOST = 64 << 20, DEEPEST = 64 };

void bundle_redaction_init(struct bundle_redaction *r, const struct run *run)
{
    conceal_init(&r->conceal);
    conceal_add(&r->conceal, run->meta.host);
}

/* ---- Texts in place ----------------------------------------------------------------------- */

static bool edit(void *arg, char *text, size_t len)
{
    const struct bundle_redaction *r = arg;
    bool changed = text_redact(NULL, text, len);
    changed |= conceal_bytes(&r->conceal, text, strnlen(text, len));
    return changed;
}

static int redact_lines(const struct bundle_redaction *r, const char *path)
{
    struct buf old = BUF_INIT, clean = BUF_INIT;
    int rc = file_read_all(path, TEXT_MOST, &old);
    if (rc == 0) {
        redact_text(&clean, old.data);
        rc = clean.error;
    }
    if (rc == 0 && clean.len) {
        (void)conceal_bytes(&r->conceal, clean.data, clean.len);
        rc = file_replace(path, clean.data, clean.len, 0600);
    }
    buf_release(&old);
    buf_release(&clean);
    return rc;
}

/* ---- run.json ----------------------------------------------------------------------------- */

static int redact_value(const struct bundle_redaction *r, json_t *value,
                        unsigned depth);

/* A new text for the one at hand; NULL for want of memory. */
static json_t *redacted(const struct bundle_redaction *r, const char *key,
                        const char *text)
{
    struct buf clean = BUF_INIT;
    if (key)
        redact_env(&clean, key, text);
    else
        redact_text(&clean, text);
    if (!clean.error && clean.len)
        (void)conceal_bytes(&r->conceal, clean.data, clean.len);
    json_t *s = clean.error ? NULL : json_stringn(clean.data, clean.len);
    buf_release(&clean);
    return s;
}

/* Words of a command line know each other: "--token", "secret". */
static int redact_words(const struct bundle_redaction *r, json_t *words)
{
    const size_t count = json_array_size(words);
    struct arena arena;
    char **shown = NULL, **argv = calloc(count + 1, sizeof *argv);
    if (!argv)
        return -ENOMEM;
    arena_init(&arena);
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(words, i));
        argv[i] = (char *)(text ? text : ""); /* not written to */
    }
    rc = redact_args((int)count, argv, &arena, &shown);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = json_array_set_new(words, i, redacted(r, NULL, shown[i])) ? -ENOMEM : 0;
    arena_release(&arena);
    free(argv);
    return rc;
}

static bool all_strings(const json_t *array)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)array, i,
                       item) if (!json_is_string(item)) return false;
    return true;
}

static int redact_array(const struct bundle_redaction *r, json_t *array, unsigned depth)
{
    size_t i;
    json_t *item;
    int rc = 0;
    if (all_strings(array))
        return redact_words(r, array);
    json_array_foreach(array, i, item)
    {
        if (rc == 0 && json_is_string(item))
            rc = json_array_set_new(array, i,
                                    redacted(r, NULL, json_string_value(item)))
                     ? -ENOMEM
                     : 0;
        else if (rc == 0)
            rc = redact_value(r, item, depth + 1);
    }
    return rc;
}

static int redact_object(const struct bundle_redaction *r, json_t *object,
                         unsigned depth)
{
    const char *key;
    json_t *item;
    void *next;
    int rc = 0;
    json_object_foreach_safe(object, next, key, item)
    {
        if (rc == 0 && json_is_string(item))
            rc = json_object_set_new(object, key,
                                     redacted(r, key, json_string_value(item)))
                     ? -ENOMEM
                     : 0;
        else if (rc == 0)
            rc = redact_value(r, item, depth + 1);
    }
    return rc;
}

static int redact_value(const struct bundle_redaction *r, json_t *value, unsigned depth)
{
    if (depth > DEEPEST)
        return SONDE_E_FORMAT;
    return json_is_array(value)    ? redact_array(r, value, depth)
           : json_is_object(value) ? redact_object(r, value, depth)
                                   : 0;
}

static int redact_json(const struct bundle_redaction *r, const char *path)
{
    struct buf text = BUF_INIT;
    char *out = NULL;
    int rc = file_read_all(path, JSON_MOST, &text);
    json_t *root = rc == 0 ? json_loadb(text.data, text.len, 0, NULL) : NULL;
    if (rc == 0 && !json_is_object(root))
        rc = SONDE_E_FORMAT;
    if (rc == 0)
        rc = redact_object(r, root, 0);
    if (rc == 0 && json_is_string(json_object_get(root, "host")))
        rc = json_object_set_new(root, "host", json_string("hidden")) ? -ENOMEM : 0;
    if (rc == 0) {
        out = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        rc = out ? 0 : -ENOMEM;
    }
    if (rc == 0)
        rc = file_replace(path, out, strlen(out), 0600);
    free(out);
    json_decref(root);
    buf_release(&text);
    return rc;
}

/* ---- One file ------------------------------------------------------------------------------ */

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

int bundle_redact(const struct bundle_redaction *r, const char *name, const char *path)
{
    int rc = 0;
    if (strcmp(name, "run.json") == 0)
        rc = redact_json(r, path);
    else if (strcmp(name, "control.sonde") == 0)
        rc = 0; /* numbers and the run's id */
    else if (ends_with(name, ".tables"))
        rc = tables_edit_texts(path, edit, (void *)r);
    else if (ends_with(name, ".sonde"))
        rc = pack_edit_texts(path, edit, (void *)r);
    else
        rc = redact_lines(r, path);
    return rc < 0 ? rc : 0;
}
