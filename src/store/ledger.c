/* ledger.c: see ledger.h. */
#include "store/ledger.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/files.h"
#include "num/trend.h"
#include "store/lines.h"

enum { READ_MAX = 1 << 20, TRIES_MAX = 4096 };

static bool is_gain(double x)
{
    return isfinite(x) && x < 1 && x > -100;
}

double ledger_error(const struct ledger_entry *e)
{
    return (1 - e->mid) / (1 - e->measured) - 1;
}

static int ledger_path(const char *sonde_dir, struct buf *ret_path)
{
    path_join(ret_path, sonde_dir, "ledger.jsonl");
    return ret_path->error;
}

/* ---- Writing ----------------------------------------------------------------------- */

static char *to_line(const struct ledger_entry *e)
{
    json_t *root = json_pack("{s:I,s:s%,s:s%,s:s%,s:s%,s:{s:f,s:f,s:f},s:f}", "time_ns",
                             (json_int_t)e->time_ns, "kind", e->kind,
                             strnlen(e->kind, LEDGER_TEXT), "program", e->program,
                             strnlen(e->program, LEDGER_TEXT), "before", e->before,
                             strnlen(e->before, LEDGER_TEXT), "after", e->after,
                             strnlen(e->after, LEDGER_TEXT), "predicted", "low", e->low,
                             "mid", e->mid, "high", e->high, "measured", e->measured);
    char *line = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return line;
}

int ledger_append(const char *sonde_dir, const struct ledger_entry *entry)
{
    struct buf path = BUF_INIT;
    if (!is_gain(entry->low) || !is_gain(entry->mid) || entry->high > 1 ||
        !isfinite(entry->high) || !is_gain(entry->measured))
        return SONDE_E_USAGE;
    char *line = to_line(entry);
    int rc = line ? ledger_path(sonde_dir, &path) : -EINVAL;
    if (rc == 0)
        rc = lines_append(path.data, line);
    free(line);
    buf_release(&path);
    return rc;
}

/* ---- Reading ------------------------------------------------------------------------- */

static bool get_text(const json_t *root, const char *key, char *ret_text)
{
    const char *text = json_string_value(json_object_get(root, key));
    if (!text || strlen(text) >= LEDGER_TEXT)
        return false;
    memcpy(ret_text, text, strlen(text) + 1);
    return true;
}

static bool get_number(const json_t *root, const char *key, double *ret_value)
{
    const json_t *value = json_object_get(root, key);
    *ret_value = json_number_value(value);
    return json_is_number(value) && isfinite(*ret_value);
}

bool ledger_parse(const char *line, size_t len, struct ledger_entry *ret_entry)
{
    json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *predicted = json_object_get(root, "predicted");
    struct ledger_entry e = { 0 };
    const bool good = get_text(root, "kind", e.kind) &&
                      get_text(root, "program", e.program) &&
                      get_text(root, "before", e.before) &&
                      get_text(root, "after", e.after) &&
                      get_number(predicted, "low", &e.low) &&
                      get_number(predicted, "mid", &e.mid) &&
                      get_number(predicted, "high", &e.high) &&
                      get_number(root, "measured", &e.measured) && is_gain(e.mid) &&
                      is_gain(e.measured);
    e.time_ns = json_integer_value(json_object_get(root, "time_ns"));
    json_decref(root);
    if (good)
        *ret_entry = e;
    return good;
}

typedef bool entry_fn(void *arg, const struct ledger_entry *entry);

static int each_entry(const char *sonde_dir, entry_fn *visit, void *arg)
{
    struct buf path = BUF_INIT;
    struct buf text = BUF_INIT;
    int rc = ledger_path(sonde_dir, &path);
    if (rc == 0)
        rc = lines_read_newest(path.data, READ_MAX, &text);
    const char *line;
    size_t at = 0, len = 0;
    while (rc == 0 && (line = lines_next(&text, &at, &len))) {
        struct ledger_entry entry;
        if (ledger_parse(line, len, &entry) && visit(arg, &entry))
            break;
    }
    buf_release(&path);
    buf_release(&text);
    return rc == -ENOENT ? 0 : rc;
}

struct summing {
    const char *kind;
    double errors[TRIES_MAX];
    size_t count, in_range;
};

static bool add_entry(void *arg, const struct ledger_entry *e)
{
    struct summing *s = arg;
    if (s->kind && strcmp(s->kind, e->kind) != 0)
        return false;
    s->errors[s->count++] = fabs(ledger_error(e));
    s->in_range += e->low <= e->measured && e->measured <= e->high;
    return s->count == TRIES_MAX;
}

int ledger_read(const char *sonde_dir, const char *kind,
                struct ledger_record *ret_record)
{
    struct summing *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->kind = kind;
    const int rc = each_entry(sonde_dir, add_entry, s);
    if (rc == 0)
        *ret_record = (struct ledger_record){ s->count, s->in_range,
                                              median_of(s->errors, s->count) };
    free(s);
    return rc;
}

struct looking {
    const char *before, *after;
    bool found;
};

static bool same_runs(void *arg, const struct ledger_entry *e)
{
    struct looking *l = arg;
    l->found = strcmp(e->before, l->before) == 0 && strcmp(e->after, l->after) == 0;
    return l->found;
}

bool ledger_has(const char *sonde_dir, const char *before, const char *after)
{
    struct looking l = { before, after, false };
    return each_entry(sonde_dir, same_runs, &l) == 0 && l.found;
}
