/* folded.c: "main;train;forward 42": one line per stack, as flame graphs are made of.
 *
 * The numbers are samples; a sample stands for 1/rate seconds. Traces have room for 4,000
 * paths: the largest are kept, what is below them counts as their parents' own time.
 */
#include "import/sums.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/strmap.h"
#include "trace/packwriter.h"

enum {
    FILE_MAX = 1 << 30,
    NODES_MAX = 4 << 20,
    NODES_KEPT = 4000,
    NAME_MAX_LEN = 500,
    DEPTH_MAX = 200, /* a trace keeps zones to a depth of 240 */
};

struct path {
    uint32_t parent;
    const char *name;
    uint64_t total, self;
    uint32_t node; /* in the trace */
};

struct paths {
    struct arena arena;
    struct strmap index;
    struct path *list; /* [0] is the root */
    size_t count, cap;
};

static long child_of(struct paths *p, uint32_t parent, const char *name, size_t len)
{
    char key[NAME_MAX_LEN + 8];
    if (len > NAME_MAX_LEN)
        len = NAME_MAX_LEN;
    memcpy(key, &parent, sizeof parent);
    memcpy(key + sizeof parent, name, len);
    bool added = false;
    struct strmap_entry *e = strmap_enter(&p->index, key, sizeof parent + len, &added);
    if (!e)
        return -ENOMEM;
    if (!added)
        return (long)e->value;
    if (p->count == p->cap) {
        const size_t cap = p->cap ? p->cap * 2 : 1024;
        struct path *grown = cap <= NODES_MAX ? realloc(p->list, cap * sizeof *grown)
                                              : NULL;
        if (!grown)
            return SONDE_E_LIMIT;
        p->list = grown;
        p->cap = cap;
    }
    e->value = p->count;
    p->list[p->count] = (struct path){ .parent = parent,
                                       .name = arena_strndup(&p->arena, name, len) };
    return p->list[p->count].name ? (long)p->count++ : -ENOMEM;
}

/* 0, an error, or 1 for a line that is none of ours. */
static int take_line(struct paths *p, char *line, size_t len)
{
    while (len && (line[len - 1] == '\r' || line[len - 1] == ' '))
        len--;
    if (len == 0 || line[0] == '#')
        return 0;
    line[len] = '\0';
    char *blank = strrchr(line, ' ');
    char *end;
    const unsigned long long samples = blank ? strtoull(blank + 1, &end, 10) : 0;
    if (!blank || end == blank + 1 || *end || blank[1] == '-' || samples > UINT32_MAX)
        return 1;
    *blank = '\0';
    uint32_t at = 0;
    unsigned depth = 0;
    for (char *frame = line; frame && depth < DEPTH_MAX; depth++) {
        char *next = strchr(frame, ';');
        const long child = child_of(p, at, frame,
                                    next ? (size_t)(next - frame) : strlen(frame));
        if (child < 0)
            return (int)child;
        at = (uint32_t)child;
        p->list[at].total += samples;
        frame = next ? next + 1 : NULL;
    }
    p->list[at].self += samples;
    p->list[0].total += samples;
    return 0;
}

static int by_total(const void *a, const void *b)
{
    const struct path *const *x = a, *const *y = b;
    if ((*x)->total != (*y)->total)
        return (*x)->total < (*y)->total ? 1 : -1;
    return (*x > *y) - (*x < *y); /* parents were made before their children */
}

static int write_paths(struct paths *p, struct packwriter *w, double sample_ns,
                       struct import_result *result)
{
    struct path **order = malloc(p->count * sizeof(struct path *));
    if (!order)
        return -ENOMEM;
    for (size_t i = 1; i < p->count; i++)
        order[i - 1] = &p->list[i];
    qsort(order, p->count - 1, sizeof(struct path *), by_total);
    struct strmap sites = STRMAP_INIT;
    for (size_t i = 0; i + 1 < p->count; i++) {
        struct path *path = order[i];
        uint64_t site;
        if (i >= NODES_KEPT || (path->parent && !p->list[path->parent].node)) {
            result->left_out++;
            continue;
        }
        if (!strmap_get(&sites, path->name, strlen(path->name), &site)) {
            site = packwriter_site(w, &(struct packwriter_site){ .name = path->name });
            (void)strmap_put(&sites, path->name, strlen(path->name), site);
        }
        path->node = packwriter_sum(w, p->list[path->parent].node, (unsigned)site,
                                    path->total,
                                    (uint64_t)((double)path->total * sample_ns));
    }
    strmap_release(&sites);
    free(order);
    return 0;
}

static int read_lines(struct paths *p, char *data, size_t len,
                      struct import_result *result)
{
    uint64_t number = 0, odd = 0;
    for (char *line = data, *end = data + len; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        number++;
        const int rc = take_line(p, line, (size_t)(stop - line));
        if (rc < 0)
            return rc;
        if (rc > 0 && ++odd == 1)
            (void)snprintf(result->problem, sizeof result->problem,
                           "line %llu is not 'frame;frame COUNT'",
                           (unsigned long long)number);
        line = stop + 1;
    }
    result->left_out += odd;
    result->events = p->list[0].total;
    /* A file of something else has nothing but odd lines. */
    return p->count > 1 && odd < number / 2 + 1 ? 0 : SONDE_E_FORMAT;
}

int folded_import(struct import_source *source, double rate_hz, const char *dir,
                  struct built *ret_built, struct import_result *result)
{
    char *data = NULL;
    size_t len = 0;
    struct packwriter *w = NULL;
    struct paths p = { .index = STRMAP_INIT, .count = 1, .cap = 1024 };
    arena_init(&p.arena);
    p.list = calloc(p.cap, sizeof *p.list);
    int rc = p.list ? source_slurp(source, FILE_MAX, &data, &len) : -ENOMEM;
    if (rc == 0) {
        char *grown = realloc(data, len + 1); /* for the NUL of the last line */
        rc = grown ? 0 : -ENOMEM;
        data = grown ? grown : data;
    }
    if (rc == 0)
        rc = read_lines(&p, data, len, result);
    if (rc == 0)
        rc = sums_open(dir, "", &w, ret_built);
    if (rc == 0) {
        const double sample_ns = 1e9 / rate_hz;
        ret_built->end_ns += (int64_t)((double)p.list[0].total * sample_ns);
        rc = write_paths(&p, w, sample_ns, result);
        if (rc == 0)
            rc = packwriter_finish(w);
        else
            packwriter_discard(w);
    }
    strmap_release(&p.index);
    arena_release(&p.arena);
    free(p.list);
    free(data);
    return rc;
}
