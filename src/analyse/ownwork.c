/* ownwork.c: see ownwork.h. Two walks over the stacks: who trains, and at which lines; then
 * whose time the rest is. */
#include "analyse/ownwork.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/pylines.h"
#include "analyse/pystacks.h"
#include "analyse/report.h"
#include "base/buf.h"
#include "base/strmap.h"
#include "trace/pystack_rows.h"

enum { FUNCTIONS_MOST = 65536 };

/* A function of the program's own. */
struct own_function {
    bool trains; /* backward or an optimizer's step is below it, … */
    uint32_t first_line, last_line; /* … at these lines of it */
    bool models;                    /* a model's call is below it */
    double beside_ns, written_ns;   /* as the outermost one beside training */
};

struct walk {
    struct report *r;
    struct strmap names; /* "file:first line" → number in `functions` */
    struct own_function *functions;
    size_t count, cap;
    bool trains;         /* somebody does */
    struct strmap lines; /* "file:line" of functions that write → ns */
    struct ownwork *out;
};

/* ---- What a stack says ------------------------------------------------------------------ */

static bool is_training(const struct pystack_place *p)
{
    return (strstr(p->file, "torch/optim/") && strstr(p->function, "step")) ||
           ((strstr(p->file, "torch/autograd/") || strstr(p->file, "torch/_tensor")) &&
            strstr(p->function, "backward"));
}

/* A module that is called. Who goes through its parameters runs no model. */
static bool is_model_call(const struct pystack_place *p)
{
    return strstr(p->file, "torch/nn/modules/") &&
           (strstr(p->function, "call_impl") || strstr(p->function, "forward"));
}

struct kind {
    bool trains, models;
    unsigned uses; /* bits of enum py_use */
};

static struct kind kind_of(const struct pystack *s)
{
    struct kind k = { 0 };
    for (unsigned i = 0; i < s->depth; i++) {
        k.trains |= is_training(&s->places[i]);
        k.models |= is_model_call(&s->places[i]);
        k.uses |= pylines_uses(s->places[i].file);
    }
    return k;
}

static bool is_main(const struct walk *w, const struct pystack *s)
{
    return s->pid == w->r->python.main_pid && s->tid == s->pid;
}

/* ---- Functions -------------------------------------------------------------------------- */

static struct own_function *add_function(struct walk *w)
{
    if (w->count == w->cap) {
        const size_t cap = w->cap ? 2 * w->cap : 64;
        struct own_function *list = realloc(w->functions, cap * sizeof *list);
        if (!list)
            return NULL;
        w->functions = list;
        w->cap = cap;
    }
    w->functions[w->count] = (struct own_function){ 0 };
    return &w->functions[w->count++];
}

/* Valid until the next call; NULL: a library's, or want of memory or room. */
static struct own_function *function_at(struct walk *w, const struct pystack_place *p)
{
    struct buf name = BUF_INIT;
    bool added = false;
    if (pylines_is_library(p->file) || w->count >= FUNCTIONS_MOST)
        return NULL;
    buf_printf(&name, "%s:%u", p->file, p->first_line);
    struct strmap_entry *e = name.error
                                 ? NULL
                                 : strmap_enter(&w->names, name.data, name.len, &added);
    buf_release(&name);
    if (!e)
        return NULL;
    if (!added)
        return e->value ? &w->functions[e->value - 1] : NULL;
    struct own_function *f = add_function(w);
    e->value = f ? w->count : 0;
    return f;
}

/* ---- The walks -------------------------------------------------------------------------- */

static void mark_line(struct own_function *f, uint32_t line)
{
    if (!f->trains || line < f->first_line)
        f->first_line = line;
    if (!f->trains || line > f->last_line)
        f->last_line = line;
    f->trains = true;
}

static int find_training(void *arg, const struct pystack *s)
{
    struct walk *w = arg;
    const struct kind k = is_main(w, s) ? kind_of(s) : (struct kind){ 0 };
    for (unsigned i = 0; i < s->depth && (k.trains || k.models); i++) {
        struct own_function *f = function_at(w, &s->places[i]);
        if (f && k.trains)
            mark_line(f, s->places[i].line);
        if (f)
            f->models |= k.models;
    }
    w->trains |= k.trains;
    return 0;
}

/* The outermost function of the program that does not train, and how it was called. */
struct beside {
    unsigned at; /* its place */
    bool found, before, behind;
};

static struct beside beside_of(struct walk *w, const struct pystack *s)
{
    struct own_function caller = { 0 };
    uint32_t line = 0;
    for (unsigned i = s->depth; i-- > 0;) {
        const struct own_function *f = function_at(w, &s->places[i]);
        if (!f)
            continue;
        if (!f->trains)
            return (struct beside){ i, caller.trains && !f->models,
                                    line<caller.first_line, line> caller.last_line };
        caller = *f;
        line = s->places[i].line;
    }
    return (struct beside){ 0 };
}

static const char *kept(struct walk *w, const char *text)
{
    const char *copy = arena_strdup(&w->r->arena, text);
    return copy ? copy : "";
}

static void count_line(struct walk *w, const struct pystack_place *p, uint64_t ns)
{
    struct buf name = BUF_INIT;
    bool added = false;
    buf_printf(&name, "%s:%u", p->file, p->line);
    struct strmap_entry *e = name.error || w->lines.count > FUNCTIONS_MOST
                                 ? NULL
                                 : strmap_enter(&w->lines, name.data, name.len, &added);
    buf_release(&name);
    if (!e)
        return;
    e->value = (added ? 0 : e->value) + ns;
    struct py_place *most = &w->out->writer;
    if ((double)e->value <= most->ns)
        return;
    most->ns = (double)e->value;
    if (most->line == p->line && strcmp(most->file, p->file) == 0)
        return;
    most->file = kept(w, p->file);
    most->function = kept(w, p->function);
    most->line = p->line;
}

/* The innermost function that writes, of those from `at` inwards; NULL: none. */
static const struct pystack_place *writer_of(const struct pystack *s, unsigned at)
{
    for (unsigned i = 0; i <= at; i++)
        if (s->places[i].flags & PYSTACK_CODE_WRITES)
            return &s->places[i];
    return NULL;
}

static void count_written(struct walk *w, const struct pystack *s,
                          const struct beside *b, bool logs)
{
    const struct pystack_place *writer = logs ? NULL : writer_of(s, b->at);
    const double ns = (double)s->wall_ns;
    struct own_function *outermost = function_at(w, &s->places[b->at]);
    if (outermost) {
        outermost->beside_ns += ns;
        outermost->written_ns += writer ? ns : 0;
    }
    if (!writer)
        return;
    w->out->written_ns += ns;
    w->out->written_after_ns += b->behind ? ns : 0;
    count_line(w, writer, s->wall_ns);
}

static int count_time(void *arg, const struct pystack *s)
{
    static const unsigned else_uses = 1u << PY_IMPORT | 1u << PY_COMPILE |
                                      1u << PY_LOADING | 1u << PY_COLLATE |
                                      1u << PY_CHECKPOINT;
    struct walk *w = arg;
    const struct kind k = is_main(w, s) ? kind_of(s) : (struct kind){ .trains = true };
    if (k.trains || k.models || (k.uses & else_uses))
        return 0;
    const struct beside b = beside_of(w, s);
    if (!b.found || b.before)
        return 0;
    w->out->wall_ns += (double)s->wall_ns;
    w->out->cpu_ns += (double)s->cpu_ns;
    w->out->after_ns += b.behind ? (double)s->wall_ns : 0;
    count_written(w, s, &b, k.uses & 1u << PY_LOGGING);
    return 0;
}

/* What a function computes beside what it writes is computed to be written, mostly. */
static double whole_functions(const struct walk *w)
{
    double ns = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct own_function *f = &w->functions[i];
        if (f->written_ns > 0 && f->written_ns >= 0.5 * f->beside_ns)
            ns += f->beside_ns;
    }
    return ns;
}

int ownwork_read(struct report *r, struct ownwork *ret_work)
{
    struct ownwork work = { .writer = { .file = "", .function = "" } };
    struct walk w = { .r = r, .out = &work };
    *ret_work = work;
    if (!r->python.present)
        return 0;
    int rc = pystacks_walk(r->run->dir, find_training, &w);
    if (rc == 0 && w.trains)
        rc = pystacks_walk(r->run->dir, count_time, &w);
    if (rc == 0 && w.trains) {
        work.known = true;
        work.whole_ns = whole_functions(&w);
        *ret_work = work;
    }
    strmap_release(&w.names);
    strmap_release(&w.lines);
    free(w.functions);
    return rc == -ENOMEM ? rc : 0;
}
