/* triallog.c: see triallog.h. */
#include "store/triallog.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/files.h"
#include "store/lines.h"

enum { READ_MAX = 1 << 18, MEDIAN_MOST = 1000 };

/* A year: what is longer was not measured in a trial. */
static const double NS_MOST = 3.2e16;

static bool is_time(double ns)
{
    return isfinite(ns) && ns > 0 && ns < NS_MOST;
}

static bool is_span(double low, double mid, double high)
{
    return is_time(low) && is_time(mid) && is_time(high) && low <= mid && mid <= high;
}

static bool is_sound(const struct trial_entry *e)
{
    return is_span(e->low_ns, e->step_ns, e->high_ns) &&
           (isnan(e->loop_ns) || is_span(e->loop_low_ns, e->loop_ns, e->loop_high_ns));
}

/* ---- Writing ----------------------------------------------------------------------- */

static void put_time(json_t *root, const char *key, double ns)
{
    (void)json_object_set_new(root, key, isnan(ns) ? json_null() : json_real(ns));
}

static char *to_line(const struct trial_entry *e)
{
    json_t *root = json_pack(
        "{s:I,s:s%,s:s%,s:I,s:I,s:s%}", "time_ns", (json_int_t)e->time_ns, "asked",
        e->asked, strnlen(e->asked, TRIAL_TEXT), "finding", e->finding,
        strnlen(e->finding, TRIAL_TEXT), "steps", (json_int_t)e->steps, "median_of",
        (json_int_t)(e->median_of ? e->median_of : 1), "note", e->note,
        strnlen(e->note, TRIAL_NOTE));
    if (!root)
        return NULL;
    put_time(root, "step_ns", e->step_ns);
    put_time(root, "low_ns", e->low_ns);
    put_time(root, "high_ns", e->high_ns);
    put_time(root, "loop_ns", e->loop_ns);
    put_time(root, "loop_low_ns", e->loop_low_ns);
    put_time(root, "loop_high_ns", e->loop_high_ns);
    char *line = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return line;
}

int triallog_append(const char *run_dir, const struct trial_entry *entry)
{
    struct buf path = BUF_INIT;
    if (!is_sound(entry))
        return SONDE_E_USAGE;
    char *line = to_line(entry);
    path_join(&path, run_dir, "trials.jsonl");
    int rc = line ? path.error : -EINVAL;
    if (rc == 0)
        rc = lines_append(path.data, line);
    free(line);
    buf_release(&path);
    return rc;
}

/* ---- Reading ------------------------------------------------------------------------- */

static bool get_text(const json_t *root, const char *key, size_t room, char *ret_text)
{
    const char *text = json_string_value(json_object_get(root, key));
    if (!text || strlen(text) >= room)
        return false;
    memcpy(ret_text, text, strlen(text) + 1);
    return true;
}

/* One where it does not say; 0 where it is none. */
static uint64_t get_median_of(const json_t *root)
{
    const json_t *value = json_object_get(root, "median_of");
    const json_int_t count = value ? json_integer_value(value) : 1;
    return count > 0 && count <= MEDIAN_MOST ? (uint64_t)count : 0;
}

/* null and a missing one are NaN. */
static double get_time(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

bool triallog_parse(const char *line, size_t len, struct trial_entry *ret_entry)
{
    json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
    struct trial_entry e = { .time_ns = 0 };
    const json_int_t steps = json_integer_value(json_object_get(root, "steps"));
    const bool texts = get_text(root, "asked", sizeof e.asked, e.asked) &&
                       get_text(root, "finding", sizeof e.finding, e.finding) &&
                       get_text(root, "note", sizeof e.note, e.note);
    e.time_ns = json_integer_value(json_object_get(root, "time_ns"));
    e.steps = steps > 0 ? (uint64_t)steps : 0;
    e.median_of = get_median_of(root);
    e.step_ns = get_time(root, "step_ns");
    e.low_ns = get_time(root, "low_ns");
    e.high_ns = get_time(root, "high_ns");
    e.loop_ns = get_time(root, "loop_ns");
    e.loop_low_ns = get_time(root, "loop_low_ns");
    e.loop_high_ns = get_time(root, "loop_high_ns");
    json_decref(root);
    if (!texts || !e.asked[0] || e.steps == 0 || e.median_of == 0 || !is_sound(&e))
        return false;
    *ret_entry = e;
    return true;
}

static void put_entry(struct trial_entry *entries, size_t *count,
                      const struct trial_entry *e)
{
    size_t i = 0;
    while (i < *count && (strcmp(entries[i].asked, e->asked) != 0 ||
                          strcmp(entries[i].finding, e->finding) != 0))
        i++;
    if (i == TRIALS_MAX)
        return;
    entries[i] = *e;
    if (i == *count)
        (*count)++;
}

int triallog_read(const char *run_dir, struct trial_entry *ret_entries,
                  size_t *ret_count)
{
    struct buf path = BUF_INIT;
    struct buf text = BUF_INIT;
    size_t count = 0;
    path_join(&path, run_dir, "trials.jsonl");
    int rc = path.error ? path.error : lines_read_newest(path.data, READ_MAX, &text);
    const char *line;
    size_t at = 0, len = 0;
    while (rc == 0 && (line = lines_next(&text, &at, &len))) {
        struct trial_entry e;
        if (triallog_parse(line, len, &e))
            put_entry(ret_entries, &count, &e);
    }
    buf_release(&path);
    buf_release(&text);
    if (rc < 0 && rc != -ENOENT)
        return rc;
    *ret_count = count;
    return 0;
}
