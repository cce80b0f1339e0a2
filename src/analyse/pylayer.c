/* pylayer.c: what the Python layer inside the program told of itself. */
#include "analyse/pylayer.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/report.h"
#include "base/buf.h"
#include "base/files.h"

enum { FILE_MAX_BYTES = 4 << 20, LINE_MAX_BYTES = 65536, TEXT_MAX = 400 };
enum {
    MAX_INTERPRETERS = 4096,
    MAX_EPOCHS = 10000,
    MAX_MODELS = 32,
    MAX_LAYERS = 64,
    MAX_PROBLEMS = 64
};

/* ---- Values of a line ---------------------------------------------------------------- */

static const char *text_of(struct report *r, const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    const char *copy = text ? arena_strndup(&r->arena, text, strnlen(text, TEXT_MAX))
                            : NULL;
    return copy ? copy : "";
}

static uint64_t count_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    const json_int_t n = json_is_integer(v) ? json_integer_value(v) : 0;
    return n > 0 ? (uint64_t)n : 0;
}

static int small_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    const json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;
    return n >= 0 && n < 1 << 24 ? (int)n : -1;
}

static uint32_t pid_of(const json_t *o)
{
    const uint64_t pid = count_of(o, "pid");
    return pid <= UINT32_MAX ? (uint32_t)pid : 0;
}

/* Room for one more in an array of the arena, grown by doubling; NULL: no more. */
static void *one_more(struct report *r, void **array, size_t *count, size_t size,
                      size_t max)
{
    const size_t n = *count;
    if (n >= max)
        return NULL;
    if ((n & (n - 1)) == 0) { /* full: 0, 1, 2, 4, 8 … */
        void *more = arena_alloc_array(&r->arena, n ? 2 * n : 1, size);
        if (!more)
            return NULL;
        if (n)
            memcpy(more, *array, n * size);
        *array = more;
    }
    void *place = (char *)*array + n * size;
    memset(place, 0, size);
    ++*count;
    return place;
}
#define ONE_MORE(r, array, count, max)                                                 \
    one_more(r, (void **)&(array), &(count), sizeof *(array), max)

/* ---- Kinds of lines ------------------------------------------------------------------- */

const struct py_interpreter *pylayer_interpreter(const struct report *r, uint32_t pid)
{
    const struct py_layer *l = &r->layer;
    for (size_t i = l->interpreter_count; i-- > 0;)
        if (l->interpreters[i].pid == pid)
            return &l->interpreters[i];
    return NULL;
}

static struct py_interpreter *interpreter_of(struct report *r, uint32_t pid)
{
    struct py_layer *l = &r->layer;
    const struct py_interpreter *known = pylayer_interpreter(r, pid);
    if (known)
        return &l->interpreters[known - l->interpreters];
    struct py_interpreter *p = ONE_MORE(r, l->interpreters, l->interpreter_count,
                                        MAX_INTERPRETERS);
    if (p)
        *p = (struct py_interpreter){ pid, -1, -1, "", { 0 } };
    return p;
}

static void take_interpreter(struct report *r, const json_t *o)
{
    struct py_interpreter *p = interpreter_of(r, pid_of(o));
    if (p)
        p->version = text_of(r, o, "version");
    r->layer.present = true;
}

static void take_rank(struct report *r, const json_t *o)
{
    struct py_interpreter *p = interpreter_of(r, pid_of(o));
    if (p) {
        p->rank = small_of(o, "rank");
        p->world_size = small_of(o, "world_size");
    }
}

static void take_exchange(struct report *r, const json_t *o)
{
    struct py_interpreter *p = interpreter_of(r, pid_of(o));
    if (p)
        p->exchange = (struct py_exchange){
            .comm_ns = count_of(o, "comm_ns"),
            .overlap_ns = count_of(o, "overlap_ns"),
            .bytes = count_of(o, "bytes"),
            .buckets = count_of(o, "buckets"),
            .cap_bytes = count_of(o, "cap_bytes"),
            .looks_for_unused = count_of(o, "unused") > 0,
        };
}

static void take_torch(struct report *r, const json_t *o)
{
    if (!r->layer.torch[0]) {
        r->layer.torch = text_of(r, o, "version");
        r->layer.cuda = text_of(r, o, "cuda");
    }
}

static int by_count(const void *a, const void *b)
{
    const struct py_layers_of_type *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1)
                                : strcmp(x->type, y->type);
}

static void take_model(struct report *r, const json_t *o)
{
    struct py_model *m = ONE_MORE(r, r->layer.models, r->layer.model_count, MAX_MODELS);
    json_t *layers = json_object_get(o, "layers"), *number;
    const char *type;
    if (!m)
        return;
    m->pid = pid_of(o);
    m->name = text_of(r, o, "name");
    m->parameters = count_of(o, "parameters");
    m->trainable = count_of(o, "trainable");
    m->bytes = count_of(o, "bytes");
    m->modules = count_of(o, "modules");
    json_object_foreach(layers, type, number)
    {
        struct py_layers_of_type *t = ONE_MORE(r, m->layers, m->layer_count,
                                               MAX_LAYERS);
        const char *copy = t ? arena_strndup(&r->arena, type, strnlen(type, TEXT_MAX))
                             : NULL;
        if (t)
            *t = (struct py_layers_of_type){ copy ? copy : "", count_of(layers, type) };
    }
    if (m->layer_count)
        qsort(m->layers, m->layer_count, sizeof *m->layers, by_count);
}

void pylayer_add_epoch(struct report *r, const struct py_epoch *epoch)
{
    struct py_epoch *e = ONE_MORE(r, r->layer.epochs, r->layer.epoch_count, MAX_EPOCHS);
    if (e)
        *e = *epoch;
}

static void take_epoch(struct report *r, const json_t *o)
{
    const double start = json_number_value(json_object_get(o, "start"));
    const double end = json_number_value(json_object_get(o, "end"));
    if (!isfinite(start) || !isfinite(end) || end < start)
        return;
    pylayer_add_epoch(r, &(struct py_epoch){ pid_of(o), count_of(o, "epoch"),
                                             count_of(o, "steps"),
                                             count_of(o, "samples"), start, end });
}

static void take_problem(struct report *r, const json_t *o)
{
    struct py_problem *p = ONE_MORE(r, r->layer.problems, r->layer.problem_count,
                                    MAX_PROBLEMS);
    if (p)
        *p = (struct py_problem){ pid_of(o), count_of(o, "number"),
                                  text_of(r, o, "where"), text_of(r, o, "text") };
}

static const struct {
    const char *kind;
    void (*take)(struct report *r, const json_t *o);
} kinds[] = {
    { "interpreter", take_interpreter },
    { "rank", take_rank },
    { "exchange", take_exchange },
    { "torch", take_torch },
    { "model", take_model },
    { "epoch", take_epoch },
    { "problem", take_problem },
};

bool pylayer_take_line(struct report *r, const char *line, size_t len)
{
    json_t *o = len <= LINE_MAX_BYTES ? json_loadb(line, len, 0, NULL) : NULL;
    const char *kind = json_string_value(json_object_get(o, "kind"));
    if (!r->layer.torch)
        r->layer.torch = r->layer.cuda = r->layer.why_without = "";
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i].kind) == 0)
            kinds[i].take(r, o);
    const bool understood = kind != NULL;
    json_decref(o);
    return understood;
}

/* ---- The file -------------------------------------------------------------------------- */

static void take_lines(struct report *r, const char *text, size_t len)
{
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        const size_t line = end ? (size_t)(end - text) : len;
        if (line && !pylayer_take_line(r, text, line))
            r->layer.bad_lines++;
        text += line + (end != NULL);
        len -= line + (end != NULL);
    }
}

static int by_size(const void *a, const void *b)
{
    const struct py_model *x = a, *y = b;
    return (x->parameters < y->parameters) - (x->parameters > y->parameters);
}

/* Options of the interpreter that keep the layer out, from the command line itself. */
static const char *why_without(const struct run_meta *m)
{
    for (size_t i = 1; i < m->command_count && m->command[i][0] == '-'; i++) {
        const char *flags = m->command[i] + 1;
        if (strcspn(flags, "cm") < strcspn(flags, "IES") || *flags == '-')
            break;
        if (strpbrk(flags, "IES"))
            return strchr(flags, 'I')   ? "the interpreter was started with -I"
                   : strchr(flags, 'E') ? "the interpreter was started with -E"
                                        : "the interpreter was started with -S";
        if (strcmp(flags, "W") == 0 || strcmp(flags, "X") == 0)
            i++; /* these take the next word */
    }
    return "";
}

/* A forked child has what its parent had. */
static void find_without(struct report *r)
{
    struct py_layer *l = &r->layer;
    for (size_t i = 0; !l->without && i < r->python.thread_count; i++) {
        const struct py_thread *t = &r->python.threads[i];
        if (!t->forked && !pylayer_interpreter(r, t->pid))
            l->without = t->pid;
    }
    if (l->without && l->without == r->run->meta.pid)
        l->why_without = why_without(&r->run->meta);
}

/* Where processes tell their ranks, one that does not (a launcher) has none. */
static void set_ranks(struct report *r)
{
    const struct py_layer *l = &r->layer;
    bool told = false;
    for (size_t i = 0; i < l->interpreter_count; i++)
        told |= l->interpreters[i].rank >= 0;
    for (size_t i = 0; told && i < r->process_count; i++) {
        struct report_process *p = &r->processes[i];
        p->rank = -1;
        for (size_t k = 0; k < l->interpreter_count; k++)
            if (l->interpreters[k].pid == p->pid)
                p->rank = l->interpreters[k].rank;
    }
}

int pylayer_read(struct report *r)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    r->layer.torch = r->layer.cuda = r->layer.why_without = "";
    path_join(&path, r->run->dir, "python.jsonl");
    if (!path.error && file_read_all(path.data, FILE_MAX_BYTES, &text) == 0)
        take_lines(r, text.data, text.len);
    if (r->layer.model_count)
        qsort(r->layer.models, r->layer.model_count, sizeof *r->layer.models, by_size);
    set_ranks(r);
    const int rc = path.error == -ENOMEM || text.error == -ENOMEM ? -ENOMEM : 0;
    buf_release(&path);
    buf_release(&text);
    return rc;
}

void pylayer_choose(struct report *r, uint32_t pid)
{
    struct py_layer *l = &r->layer;
    size_t kept = 0;
    for (size_t i = 0; i < l->epoch_count; i++)
        if (l->epochs[i].pid == pid)
            l->epochs[kept++] = l->epochs[i];
    l->epoch_count = kept;
    kept = 0;
    for (size_t i = 0; i < l->model_count; i++)
        if (l->models[i].pid == pid)
            l->models[kept++] = l->models[i];
    l->model_count = kept;
    find_without(r);
}
