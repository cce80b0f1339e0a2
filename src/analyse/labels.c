/* labels.c: tags and parameters: those of run.json, then those the program set. */
#include "analyse/parts.h"

#include <errno.h>
#include <string.h>

enum { MAX_LABELS = 4096 };

/* The latest value of a key holds. */
static int put(struct report *r, struct run_pair **pairs, size_t *count,
               const char *key, const char *value)
{
    char *copy = arena_strdup(&r->arena, value);
    if (!copy)
        return -ENOMEM;
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*pairs)[i].key, key) == 0) {
            (*pairs)[i].value = copy;
            return 0;
        }
    if (*count == MAX_LABELS)
        return 0;
    /* Powers of two: a fresh array when the count reaches one. */
    if ((*count & (*count - 1)) == 0) {
        const size_t room = *count ? *count * 2 : 1;
        struct run_pair *more = arena_alloc_array(&r->arena, room, sizeof(*more));
        if (!more)
            return -ENOMEM;
        if (*count)
            memcpy(more, *pairs, *count * sizeof(*more));
        *pairs = more;
    }
    char *name = arena_strdup(&r->arena, key);
    if (!name)
        return -ENOMEM;
    (*pairs)[(*count)++] = (struct run_pair){ name, copy };
    return 0;
}

int labels_start(struct report *report)
{
    const struct run_meta *m = &report->run->meta;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < m->tag_count; i++)
        rc = put(report, &report->tags, &report->tag_count, m->tags[i].key,
                 m->tags[i].value);
    for (size_t i = 0; rc == 0 && i < m->param_count; i++)
        rc = put(report, &report->params, &report->param_count, m->params[i].key,
                 m->params[i].value);
    return rc;
}

int labels_add(struct report *report, const struct trace *trace)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < trace_site_count(trace); i++) {
        const struct trace_site *s = trace_site(trace, i);
        if (s->flags & SITE_TAG)
            rc = put(report, &report->tags, &report->tag_count, s->name, s->tags);
        else if (s->flags & SITE_PARAM)
            rc = put(report, &report->params, &report->param_count, s->name, s->tags);
    }
    return rc;
}
