/* functions.c: see functions.h. */
#include "analyse/functions.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/stacks.h"
#include "base/files.h"
#include "base/strmap.h"

struct count {
    const struct stacks *stacks;
    uint64_t *self, *total; /* by function */
    uint32_t *seen;         /* stack in which it was last met: once per stack */
    uint32_t stack;
    struct strmap lines; /* samples by struct line_key */
    uint64_t samples, own;
};

struct line_key {
    const char *file; /* texts of one file of symbols: equal ones are one */
    uint32_t line, function;
};

/* ---- Counting -------------------------------------------------------------------------------- */

static int count_line(struct count *c, const struct stack_entry *e, uint64_t samples)
{
    if (e->line == 0 || !e->file[0])
        return 0;
    struct line_key key;
    memset(&key, 0, sizeof key);
    key.file = e->file;
    key.line = e->line;
    key.function = e->function;
    struct strmap_entry *entry = strmap_enter(&c->lines, (const char *)&key, sizeof key,
                                              NULL);
    if (!entry)
        return -ENOMEM;
    entry->value += samples;
    return 0;
}

/* Code of ours inside the program: not the program's, and told apart. */
static bool is_own(const struct count *c, const struct stack_entry *e)
{
    const char *module = path_base(c->stacks->functions[e->function].module);
    return strncmp(module, "libsonde-preload.so", 19) == 0 ||
           strncmp(module, "libsonde.so", 11) == 0;
}

static int count_stack(void *arg, const struct stack_task *task,
                       const struct stack_entry *entries, unsigned n, uint64_t samples)
{
    struct count *c = arg;
    (void)task;
    c->stack++;
    c->samples += samples;
    if (n == 0)
        return 0;
    const bool own = is_own(c, &entries[0]);
    if (own)
        c->own += samples;
    else
        c->self[entries[0].function] += samples;
    for (unsigned i = 0; i < n; i++) {
        const uint32_t f = entries[i].function;
        if (is_own(c, &entries[i]))
            continue;
        if (c->seen[f] != c->stack) /* recursion counts once */
            c->total[f] += samples;
        c->seen[f] = c->stack;
    }
    return own ? 0 : count_line(c, &entries[0], samples);
}

/* ---- Lists ------------------------------------------------------------------------------------ */

static int by_self(const void *a, const void *b)
{
    const struct hot_function *x = a, *y = b;
    if (x->self != y->self)
        return x->self < y->self ? 1 : -1;
    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return strcmp(x->name, y->name);
}

static int by_line(const void *a, const void *b)
{
    const struct hot_line *x = a, *y = b;
    if (x->self != y->self)
        return x->self < y->self ? 1 : -1;
    const int names = strcmp(x->file, y->file);
    return names ? names : (x->line > y->line) - (x->line < y->line);
}

static int list_functions(const struct count *c, struct arena *arena,
                          struct hot_functions *hot)
{
    const struct stacks *s = c->stacks;
    hot->functions = arena_alloc_array(arena, s->function_count + 1,
                                       sizeof *hot->functions);
    if (!hot->functions)
        return -ENOMEM;
    for (size_t i = 0; i < s->function_count; i++) {
        const struct stack_function *f = &s->functions[i];
        if (c->total[i] == 0)
            continue;
        hot->functions[hot->function_count++] = (struct hot_function){
            .name = arena_strdup(arena, f->name),
            .module = arena_strdup(arena, f->module),
            .file = arena_strdup(arena, f->file),
            .line = f->line,
            .self = c->self[i],
            .total = c->total[i],
            .self_ns = (double)c->self[i] * hot->period_ns,
            .total_ns = (double)c->total[i] * hot->period_ns,
            .share = (double)c->self[i] / (double)c->samples,
            .total_share = (double)c->total[i] / (double)c->samples,
        };
        const struct hot_function *h = &hot->functions[hot->function_count - 1];
        if (!h->name || !h->module || !h->file)
            return -ENOMEM;
    }
    qsort(hot->functions, hot->function_count, sizeof *hot->functions, by_self);
    return 0;
}

static int list_lines(const struct count *c, struct arena *arena,
                      struct hot_functions *hot)
{
    hot->lines = arena_alloc_array(arena, c->lines.count + 1, sizeof *hot->lines);
    if (!hot->lines)
        return -ENOMEM;
    for (size_t i = 0; i < c->lines.count; i++) {
        struct line_key key;
        memcpy(&key, c->lines.entries[i].key, sizeof key);
        const uint64_t self = c->lines.entries[i].value;
        struct hot_line *l = &hot->lines[hot->line_count++];
        *l = (struct hot_line){
            .file = arena_strdup(arena, key.file),
            .function = arena_strdup(arena, c->stacks->functions[key.function].name),
            .line = key.line,
            .self = self,
            .self_ns = (double)self * hot->period_ns,
            .share = (double)self / (double)c->samples,
        };
        if (!l->file || !l->function)
            return -ENOMEM;
    }
    qsort(hot->lines, hot->line_count, sizeof *hot->lines, by_line);
    return 0;
}

static int count_all(const struct stacks *s, struct arena *arena,
                     struct hot_functions *hot)
{
    const size_t n = s->function_count + 1;
    struct count c = { .stacks = s,
                       .self = calloc(n, sizeof *c.self),
                       .total = calloc(n, sizeof *c.total),
                       .seen = calloc(n, sizeof *c.seen) };
    strmap_init(&c.lines);
    int rc = c.self && c.total && c.seen ? stacks_walk(s, count_stack, &c) : -ENOMEM;
    /* Where there was no room even for a count, all samples are still known. */
    if (c.samples < s->info.samples)
        c.samples = s->info.samples;
    if (rc == 0 && c.samples) {
        rc = list_functions(&c, arena, hot);
        if (rc == 0)
            rc = list_lines(&c, arena, hot);
    }
    uint64_t tight = 0;
    if (rc == 0)
        rc = stacks_tight_loops(s, &tight);
    if (rc == 0)
        rc = teams_count(s, arena, &hot->teams);
    hot->tight_share = c.samples ? (double)tight / (double)c.samples : 0;
    hot->samples = c.samples;
    hot->taken = s->info.taken ? s->info.taken : c.samples;
    hot->own_share = c.samples ? (double)c.own / (double)c.samples : 0;
    hot->cpu_ns = (double)(c.samples + hot->lost) * hot->period_ns;
    free(c.self);
    free(c.total);
    free(c.seen);
    strmap_release(&c.lines);
    return rc;
}

int functions_read(const char *dir, double used_s, struct arena *arena,
                   struct hot_functions *hot)
{
    struct stacks *s;
    *hot = (struct hot_functions){ .why = "", .coverage = NAN };
    int rc = stacks_open(dir, &s);
    if (rc < 0)
        return rc == -ENOMEM ? rc : 0;
    hot->sampled = true;
    hot->why = arena_strdup(arena, s->why);
    hot->period_ns = (double)s->info.period_ns;
    hot->method = s->info.method;
    hot->lost = s->info.lost;
    hot->other = s->info.other;
    hot->cut = s->info.cut;
    hot->shallow = s->info.shallow;
    hot->has_merged = s->has_merged;
    hot->merge = s->merge;
    hot->addresses = s->symbols.addresses;
    hot->named = s->symbols.named;
    hot->with_line = s->symbols.with_line;
    rc = hot->why ? count_all(s, arena, hot) : -ENOMEM;
    if (rc == 0 && hot->samples && used_s > 0)
        hot->coverage = hot->cpu_ns / 1e9 / used_s;
    stacks_free(s);
    return rc;
}
