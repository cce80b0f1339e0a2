/* pylines.c: see pylines.h. */
#include "analyse/pylines.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/report.h"
#include "base/buf.h"
#include "base/files.h"
#include "trace/pystack_counts.h"
#include "trace/pystack_files.h"

enum { DEPTH_MOST = 512 };

/* What a file says about a stack it is on. */
static const struct {
    const char *part;
    enum py_use use;
} uses[] = {
    { "torch/utils/data/_utils/collate", PY_COLLATE },
    { "torch/utils/data/", PY_LOADING },
    { "/logging/__init__.py", PY_LOGGING },
    { "/logging/handlers.py", PY_LOGGING },
    { "/tensorboard", PY_LOGGING },
    { "/wandb/", PY_LOGGING },
    { "/mlflow/", PY_LOGGING },
    { "/tqdm/", PY_LOGGING },
    { "<frozen importlib", PY_IMPORT },
    { "torch/_dynamo/", PY_COMPILE },
    { "torch/_inductor/", PY_COMPILE },
    { "torch/jit/", PY_COMPILE },
    { "torch/optim/", PY_OPTIMIZER },
    { "torch/serialization.py", PY_CHECKPOINT },
    { "/pickle.py", PY_CHECKPOINT },
    { "torch/nn/modules/", PY_MODEL },
    { "torch/autograd/", PY_MODEL },
};

struct code_kind {
    bool forks; /* what called it belongs to the parent, when this is a forked child */
    unsigned uses; /* bits of enum py_use */
    bool library;
    bool locks; /* the `with` statement of a lock */
};

struct source {
    struct report *r;
    struct tablefile *file;
    struct pystack_counts counts;
    struct code_kind *codes;
    uint32_t code_count, frame_count;
    double *by_line[PY_USES]; /* by frame */
    double *worker, *thread;
    struct py_lines *out;
};

bool pylines_is_library(const char *file)
{
    return pystack_is_library(file);
}

unsigned pylines_uses(const char *file)
{
    unsigned bits = 0;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (strstr(file, uses[i].part))
            bits |= 1u << uses[i].use;
    return bits;
}

/* Of locks between processes and of threading's conditions; semaphores too, which programs
 * that hand things on take by acquire(), and that is no frame of Python. A plain lock of
 * threading leaves none at all. */
static bool is_lock(const char *file, const char *function)
{
    const size_t len = strlen(function), end = strlen("__enter__");
    return (strstr(file, "/multiprocessing/synchronize.py") ||
            strstr(file, "/threading.py")) &&
           len >= end && strcmp(function + len - end, "__enter__") == 0;
}

static struct code_kind judge_code(const char *file, const char *function)
{
    return (struct code_kind){ .forks = strstr(file, "/multiprocessing/popen_fork.py"),
                               .library = pylines_is_library(file),
                               .uses = pylines_uses(file),
                               .locks = is_lock(file, function) };
}

static int open_file(const char *dir, struct tablefile **ret_file)
{
    DIR *d = opendir(dir);
    int rc = -ENOENT;
    for (const struct dirent *e; d && rc != 0 && (e = readdir(d));) {
        if (!tablefile_is_name(e->d_name, PYSTACKS_KIND))
            continue;
        struct buf path = BUF_INIT;
        path_join(&path, dir, e->d_name);
        rc = path.error ? path.error : tablefile_open(path.data, ret_file);
        buf_release(&path);
    }
    if (d)
        (void)closedir(d);
    return rc;
}

/* ---- Stacks ------------------------------------------------------------------------- */

struct stack {
    unsigned uses;
    uint32_t frame; /* the innermost of the program's own; UINT32_MAX none */
    bool locks;     /* and what it is at is a lock: no queue's or pool's, its own */
};

static bool frame_at(const struct source *s, uint32_t node,
                     struct pystack_node_row *ret_node,
                     struct pystack_frame_row *ret_frame)
{
    return node != 0 &&
           tablefile_get(s->file, PYSTACKS_NODES, node, ret_node, sizeof *ret_node) &&
           tablefile_get(s->file, PYSTACKS_FRAMES, ret_node->frame, ret_frame,
                         sizeof *ret_frame) &&
           ret_frame->code < s->code_count && ret_node->frame < s->frame_count;
}

/* In a forked child the stack goes on below its birth, with the line of the parent that had
 * it: nothing that the child does is there. */
static struct stack judge_stack(const struct source *s, uint32_t node, bool in_main)
{
    struct stack k = { .frame = UINT32_MAX };
    struct pystack_node_row n;
    struct pystack_frame_row f;
    for (unsigned depth = 0; depth < DEPTH_MOST && frame_at(s, node, &n, &f); depth++) {
        const struct code_kind *kind = &s->codes[f.code];
        if (kind->forks && !in_main)
            break;
        k.uses |= kind->uses;
        if (k.frame == UINT32_MAX && !kind->library)
            k.frame = n.frame;
        if (depth == 0)
            k.locks = kind->locks;
        else if (depth == 1)
            k.locks &= !kind->library;
        if (n.parent >= node)
            break; /* damage: parents come first */
        node = n.parent;
    }
    return k;
}

/* One use for each stack: the first of the enum that applies. */
static enum py_use use_of(unsigned bits)
{
    if (bits & 1u << PY_IMPORT)
        return PY_IMPORT;
    for (int use = PY_COLLATE; use < PY_PLAIN; use++)
        if (bits & 1u << use)
            return (enum py_use)use;
    return bits & 1u << PY_LOADING ? PY_LOADING : PY_PLAIN;
}

/* Who waits for a lock does not run; what does is the lock's own work. */
static void count_lock(struct source *s, const struct stack *k,
                       const struct pystack_count_row *row)
{
    if (row->wall_ns <= row->cpu_ns || k->frame == UINT32_MAX)
        return;
    const double waited = (double)(row->wall_ns - row->cpu_ns);
    s->out->used_ns[PY_LOCK] += waited;
    s->by_line[PY_LOCK][k->frame] += waited;
}

static void count_row(struct source *s, const struct pystack_count_row *row)
{
    const struct py_profile *p = &s->r->python;
    if (row->task >= p->thread_count)
        return;
    const struct py_thread *t = &p->threads[row->task];
    const bool in_main = t->pid == p->main_pid;
    const struct stack k = judge_stack(s, row->node, in_main);
    const enum py_use use = use_of(k.uses);
    if (in_main && t->tid == t->pid) {
        s->out->main_ns += (double)row->wall_ns;
        s->out->used_ns[use] += (double)row->wall_ns;
        s->out->used_ns[PY_ANY] += (double)row->wall_ns;
        s->out->import_cpu_ns += use == PY_IMPORT ? (double)row->cpu_ns : 0;
        if (k.frame != UINT32_MAX) {
            s->by_line[use][k.frame] += (double)row->wall_ns;
            s->by_line[PY_ANY][k.frame] += (double)row->wall_ns;
        }
        if (k.locks && use == PY_PLAIN)
            count_lock(s, &k, row);
    } else if (in_main) {
        s->out->thread_ns += (double)row->cpu_ns;
        if (k.frame != UINT32_MAX)
            s->thread[k.frame] += (double)row->cpu_ns;
    } else if (k.frame != UINT32_MAX) {
        s->worker[k.frame] += (double)row->cpu_ns;
    }
}

/* ---- The largest ------------------------------------------------------------------------ */

static const char *keep(struct report *r, const char *text)
{
    const char *copy = text[0] ? arena_strdup(&r->arena, text) : "";
    return copy ? copy : "";
}

/* The frame with most time; false when none has any. */
static bool largest(const struct source *s, const double *ns, uint32_t *ret_best,
                    struct pystack_frame_row *ret_frame)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < s->frame_count; i++)
        if (ns[i] > ns[best])
            best = i;
    *ret_best = best;
    return s->frame_count && ns[best] > 0 &&
           tablefile_get(s->file, PYSTACKS_FRAMES, best, ret_frame, sizeof *ret_frame);
}

static void choose(struct source *s, const double *ns, struct py_place *ret_place)
{
    struct pystack_frame_row f;
    struct pystack_code_row c;
    uint32_t best;
    *ret_place = (struct py_place){ .file = "", .function = "" };
    if (!largest(s, ns, &best, &f) ||
        !tablefile_get(s->file, PYSTACKS_CODES, f.code, &c, sizeof c))
        return;
    ret_place->file = keep(s->r, tablefile_text(s->file, c.file));
    ret_place->function = keep(s->r, tablefile_text(s->file, c.name));
    ret_place->line = f.line;
    ret_place->ns = ns[best];
}

/* ---- The function that does it -------------------------------------------------------------- */

static bool is_on_stack(const struct source *s, uint32_t node, uint32_t code)
{
    struct pystack_node_row n;
    struct pystack_frame_row f;
    for (unsigned depth = 0; depth < DEPTH_MOST && frame_at(s, node, &n, &f); depth++) {
        if (f.code == code)
            return true;
        if (n.parent >= node)
            return false;
        node = n.parent;
    }
    return false;
}

/* All of the function that has most of a use. What is computed only to be logged is in the
 * same function, mostly, and so is what makes a checkpoint's file the current one. */
static double sum_function(const struct source *s, enum py_use use)
{
    const struct py_profile *p = &s->r->python;
    struct pystack_count_row row;
    struct pystack_frame_row f;
    uint32_t best;
    double ns = 0;
    if (!largest(s, s->by_line[use], &best, &f))
        return 0;
    for (uint32_t i = 0; i < s->counts.count; i++)
        if (pystack_counts_get(&s->counts, i, &row) && row.task < p->thread_count &&
            p->threads[row.task].pid == p->main_pid &&
            p->threads[row.task].tid == p->main_pid && is_on_stack(s, row.node, f.code))
            ns += (double)row.wall_ns;
    return ns;
}

static int prepare(struct source *s)
{
    s->code_count = tablefile_count(s->file, PYSTACKS_CODES);
    s->frame_count = tablefile_count(s->file, PYSTACKS_FRAMES);
    s->codes = calloc(s->code_count + 1u, sizeof *s->codes);
    /* One block: PY_USES tables, then workers and threads. */
    double *all = calloc((size_t)(s->frame_count + 1u) * (PY_USES + 2), sizeof *all);
    if (!s->codes || !all) {
        free(all);
        return -ENOMEM;
    }
    for (unsigned u = 0; u < PY_USES; u++)
        s->by_line[u] = all + (size_t)u * s->frame_count;
    s->worker = all + (size_t)PY_USES * s->frame_count;
    s->thread = s->worker + s->frame_count;
    for (uint32_t i = 0; i < s->code_count; i++) {
        struct pystack_code_row row;
        if (tablefile_get(s->file, PYSTACKS_CODES, i, &row, sizeof row))
            s->codes[i] = judge_code(tablefile_text(s->file, row.file),
                                     tablefile_text(s->file, row.name));
    }
    return 0;
}

static void sum_up(struct source *s)
{
    struct pystack_count_row row;
    for (uint32_t i = 0; i < s->counts.count; i++)
        if (pystack_counts_get(&s->counts, i, &row))
            count_row(s, &row);
    for (unsigned u = 0; u < PY_USES; u++)
        choose(s, s->by_line[u], &s->out->top[u]);
    s->out->log_function_ns = sum_function(s, PY_LOGGING);
    s->out->save_function_ns = sum_function(s, PY_CHECKPOINT);
    choose(s, s->worker, &s->out->worker);
    choose(s, s->thread, &s->out->thread);
    s->out->present = s->out->main_ns > 0;
}

int pylines_read(struct report *r, struct py_lines *ret_lines)
{
    struct py_lines lines = { .present = false };
    struct source s = { .r = r, .out = &lines };
    *ret_lines = lines;
    if (!r->python.present)
        return 0;
    int rc = open_file(r->run->dir, &s.file);
    if (rc < 0)
        return rc == -ENOMEM ? rc : 0;
    rc = pystack_counts_init(&s.counts, s.file);
    if (rc == 0)
        rc = prepare(&s);
    if (rc == 0) {
        sum_up(&s);
        *ret_lines = lines;
    }
    free(s.by_line[0]);
    free(s.codes);
    pystack_counts_release(&s.counts);
    tablefile_free(s.file);
    return rc;
}
