/* comparesetup.c: in what the runs of a comparison were set up differently.
 *
 * run.json is flattened to "group.name = value" and compared as text: what a later version
 * writes there is compared without anybody thinking of it here.
 */
#include "analyse/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/strmap.h"

enum { TEXT_MAX = 400, DEPTH_MAX = 6, DIFFERENCES_MAX = 4096 };

struct setup {
    struct comparison *c;
    struct strmap index; /* "group\nname" → number of the entry + 1 */
    size_t run;
    int error;
};

static struct compare_difference *entry_of(struct setup *s, const char *group,
                                           const char *name)
{
    struct comparison *c = s->c;
    struct buf key = BUF_INIT;
    buf_printf(&key, "%s\n%s", group, name);
    bool added = false;
    struct strmap_entry *e = strmap_enter(&s->index, key.data, key.len, &added);
    buf_release(&key);
    if (!e || c->difference_count == DIFFERENCES_MAX)
        return NULL;
    if (!added)
        return &c->differences[e->value];
    if (c->difference_count == c->difference_cap) {
        const size_t cap = c->difference_cap ? c->difference_cap * 2 : 64;
        struct compare_difference *grown = arena_alloc_array(&c->arena, cap,
                                                             sizeof *grown);
        if (!grown)
            return NULL;
        if (c->difference_count)
            memcpy(grown, c->differences, c->difference_count * sizeof *grown);
        c->differences = grown;
        c->difference_cap = cap;
    }
    e->value = c->difference_count;
    struct compare_difference *d = &c->differences[c->difference_count++];
    *d = (struct compare_difference){ .group = group,
                                      .name = arena_strdup(&c->arena, name) };
    for (size_t i = 0; i < COMPARE_RUNS; i++)
        d->values[i] = "";
    return d->name ? d : NULL;
}

static void note_text(struct setup *s, const char *group, const char *name,
                      const char *text)
{
    struct compare_difference *d = entry_of(s, group, name);
    char *copy = d ? arena_strndup(&s->c->arena, text, strnlen(text, TEXT_MAX)) : NULL;
    if (copy)
        d->values[s->run] = copy;
    else
        s->error = -ENOMEM;
}

static void note_number(struct setup *s, const char *group, const char *name,
                        double value)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%.6g", value);
    note_text(s, group, name, text);
}

static void flatten(struct setup *s, const char *group, const char *prefix,
                    const json_t *value, unsigned depth);

static void flatten_object(struct setup *s, const char *group, const char *prefix,
                           const json_t *value, unsigned depth)
{
    const char *key;
    json_t *member;
    struct buf name = BUF_INIT;
    json_object_foreach((json_t *)value, key, member)
    {
        buf_clear(&name);
        buf_printf(&name, "%s%s%s", prefix, prefix[0] ? "." : "", key);
        flatten(s, group, name.data, member, depth + 1);
    }
    buf_release(&name);
}

static void flatten(struct setup *s, const char *group, const char *prefix,
                    const json_t *value, unsigned depth)
{
    if (depth > DEPTH_MAX || !value || json_is_null(value))
        return;
    if (json_is_object(value)) {
        flatten_object(s, group, prefix, value, depth);
    } else if (json_is_string(value)) {
        note_text(s, group, prefix, json_string_value(value));
    } else if (json_is_number(value)) {
        note_number(s, group, prefix, json_number_value(value));
    } else if (json_is_boolean(value)) {
        note_text(s, group, prefix, json_is_true(value) ? "yes" : "no");
    } else {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        note_text(s, group, prefix, text ? text : "");
        free(text);
    }
}

static void note_command(struct setup *s, const struct run_meta *m)
{
    struct buf line = BUF_INIT;
    for (size_t i = 0; i < m->command_count; i++)
        buf_printf(&line, "%s%s", i ? " " : "", m->command[i]);
    if (line.len)
        note_text(s, "program", "command", line.data);
    buf_release(&line);
}

/* How much of what was read lay in memory already: two runs of one program differ by
 * that more than by most changes. */
static double warm_share(const struct report *r)
{
    double pages = 0, warm = 0;
    for (size_t i = 0; i < r->io.path_count; i++) {
        pages += (double)r->io.paths[i].cache_pages;
        warm += (double)r->io.paths[i].cache_warm;
    }
    return pages > 0 ? warm / pages : NAN;
}

static void note_cache(struct setup *s, const struct report *r)
{
    const double share = warm_share(r);
    if (isnan(share))
        return;
    note_text(s, "data", "page cache",
              share > 0.9   ? "warm"
              : share < 0.1 ? "cold"
                            : "partly warm");
}

/* What anybody used of the cores that the run may use. */
static const struct report_series *use_of_cores(const struct report *r)
{
    const struct report_series *s = monitors_find(&r->monitors, "cpu_allowed", "");
    return s ? s : monitors_find(&r->monitors, "cpu_system", "");
}

/* Cores that programs outside the run kept busy, on average; NaN unknown. */
static double cores_of_others(const struct report *r)
{
    const struct report_series *all = use_of_cores(r);
    const struct report_series *ours = monitors_find(&r->monitors, "cpu", "");
    return all && ours ? fmax(all->avg - ours->avg, 0) / 100 : NAN;
}

/* Noted in quarters of a core, so that the ticking of an idle machine is no difference.
 * It matters where the processors ran out. */
static void note_others(struct setup *s, const struct report *r)
{
    const double others = cores_of_others(r);
    const struct report_series *all = use_of_cores(r);
    char text[64];
    if (isnan(others))
        return;
    (void)snprintf(text, sizeof text, "%.4g cores", round(others * 4) / 4);
    note_text(s, "machine", "used by others", text);
    if (others > 0.2 && r->run->meta.cores > 0 &&
        all->avg / 100 > 0.85 * r->run->meta.cores)
        s->c->disturbed = true;
}

static void note_run(struct setup *s, const struct report *r)
{
    const struct run_meta *m = &r->run->meta;
    note_command(s, m);
    if (m->cwd[0])
        note_text(s, "program", "folder", m->cwd);
    if (m->host[0])
        note_text(s, "hardware", "host", m->host);
    flatten(s, "hardware", "", m->root ? json_object_get(m->root, "hardware") : NULL,
            0);
    flatten(s, "environment", "",
            m->root ? json_object_get(m->root, "environment") : NULL, 0);
    for (size_t i = 0; i < r->param_count; i++)
        note_text(s, "parameter", r->params[i].key, r->params[i].value);
    for (size_t i = 0; i < r->tag_count; i++)
        note_text(s, "tag", r->tags[i].key, r->tags[i].value);
    note_cache(s, r);
    note_others(s, r);
    if (m->level[0])
        note_text(s, "sonde", "level", m->level);
    if (m->sonde[0])
        note_text(s, "sonde", "version", m->sonde);
}

static bool all_alike(const struct comparison *c, const struct compare_difference *d)
{
    for (size_t i = 1; i < c->run_count; i++)
        if (strcmp(d->values[0], d->values[i]) != 0)
            return false;
    return true;
}

/* Sizes of memory are rounded by firmware and kernels. A host's name is no hardware: a
 * container gets a new one each time. */
static bool is_other_machine(const struct comparison *c,
                             const struct compare_difference *d)
{
    if (strcmp(d->group, "hardware") != 0 || strcmp(d->name, "host") == 0)
        return false;
    if (strcmp(d->name, "memory_mb") != 0)
        return true;
    const double first = strtod(d->values[0], NULL);
    for (size_t i = 1; i < c->run_count; i++)
        if (fabs(strtod(d->values[i], NULL) / first - 1) > 0.05)
            return true;
    return false;
}

int compare_setups(struct comparison *c)
{
    struct setup s = { .c = c, .index = STRMAP_INIT };
    for (s.run = 0; s.run < c->run_count; s.run++)
        note_run(&s, c->runs[s.run]);
    strmap_release(&s.index);
    size_t kept = 0;
    c->same_hardware = true;
    for (size_t i = 0; i < c->difference_count; i++) {
        if (all_alike(c, &c->differences[i]))
            continue;
        if (is_other_machine(c, &c->differences[i]))
            c->same_hardware = false;
        c->differences[kept++] = c->differences[i];
    }
    c->difference_count = kept;
    return s.error;
}
