/* launches.c: see launches.h.
 *
 * On a card an operator of the host computes nothing: it checks shapes, allocates, and
 * launches. So all of its time is the price of the launch, not only the few microseconds
 * of cudaLaunchKernel, and while the card is idle meanwhile, the step pays it. Waits and
 * copies inside an operator are something else and are taken out.
 *
 * Threads may launch side by side (the main thread and autograd's): time counts once.
 */
#include "import/launches.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

struct piece {
    int64_t from, to;
};

struct walk {
    const struct events *e;
    uint32_t *launched; /* numbers of kernels and fills, ascending */
    size_t launched_count;
    struct piece *pieces;
    size_t count, cap;
    /* The outermost operator at hand. */
    uint16_t lane;
    int64_t end_ns, piece_ns; /* piece_ns: from where its time is not yet counted */
    size_t first;             /* its first piece */
    bool open, launches;
};

/* ---- What is what -------------------------------------------------------------------- */

static bool is_operator(const struct event_name *n)
{
    return strcmp(n->category, "cpu_op") == 0 || strcmp(n->category, "Operator") == 0;
}

static bool is_call(const struct event_name *n)
{
    return strncmp(n->category, "cuda_", 5) == 0 || strcmp(n->category, "Runtime") == 0;
}

static bool is_wait(const struct event_name *n)
{
    return is_call(n) && (strstr(n->text, "Synchronize") || strstr(n->text, "Memcpy"));
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int read_launched(struct walk *w)
{
    const struct events *e = w->e;
    w->launched = malloc((e->count ? e->count : 1) * sizeof *w->launched);
    if (!w->launched)
        return -ENOMEM;
    for (size_t i = 0; i < e->count; i++) {
        const struct event *x = &e->list[i];
        if (x->kind == EVENT_ZONE && x->correlation && e->names[x->name].is_device)
            w->launched[w->launched_count++] = x->correlation;
    }
    qsort(w->launched, w->launched_count, sizeof *w->launched, by_number);
    return 0;
}

static bool is_launch(const struct walk *w, const struct event *x)
{
    return x->correlation && is_call(&w->e->names[x->name]) &&
           bsearch(&x->correlation, w->launched, w->launched_count, sizeof *w->launched,
                   by_number);
}

/* ---- Operators ----------------------------------------------------------------------- */

static int put_piece(struct walk *w, int64_t from, int64_t to)
{
    if (to <= from)
        return 0;
    if (w->count == w->cap) {
        const size_t cap = w->cap ? w->cap * 2 : 1024;
        struct piece *grown = realloc(w->pieces, cap * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        w->pieces = grown;
        w->cap = cap;
    }
    w->pieces[w->count++] = (struct piece){ from, to };
    return 0;
}

static int leave_operator(struct walk *w)
{
    if (!w->open)
        return 0;
    w->open = false;
    if (w->launches)
        return put_piece(w, w->piece_ns, w->end_ns);
    w->count = w->first; /* arithmetic of the host */
    return 0;
}

static int64_t end_of(const struct event *x)
{
    return x->ts_ns + x->dur_ns;
}

static int see(struct walk *w, const struct event *x)
{
    const struct event_name *n = &w->e->names[x->name];
    int rc = 0;
    if (w->open && (x->lane != w->lane || x->ts_ns >= w->end_ns))
        rc = leave_operator(w);
    if (rc < 0)
        return rc;
    if (!w->open && is_operator(n)) {
        w->open = true;
        w->launches = false;
        w->lane = x->lane;
        w->first = w->count;
        w->piece_ns = x->ts_ns;
        w->end_ns = end_of(x);
    } else if (w->open && is_wait(n)) {
        rc = put_piece(w, w->piece_ns, x->ts_ns);
        if (end_of(x) > w->piece_ns)
            w->piece_ns = end_of(x);
    } else if (w->open && is_launch(w, x)) {
        w->launches = true;
    }
    return rc;
}

/* ---- All of them --------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* The length of all pieces inside [from, to), side by side counted once. */
static double length_ns(struct walk *w, int64_t from, int64_t to)
{
    double sum = 0;
    int64_t until = from;
    if (w->count)
        qsort(w->pieces, w->count, sizeof *w->pieces, by_begin);
    for (size_t i = 0; i < w->count; i++) {
        const struct piece *p = &w->pieces[i];
        const int64_t begin = p->from > until ? p->from : until;
        const int64_t end = p->to < to ? p->to : to;
        if (end > begin) {
            sum += (double)(end - begin);
            until = end;
        }
    }
    return sum;
}

/* From the first step to the end of the last; all zones where there are no steps. */
static struct piece window_of(const struct events *e, size_t process)
{
    struct piece steps = { INT64_MAX, INT64_MIN }, all = steps;
    for (size_t i = 0; i < e->count; i++) {
        const struct event *x = &e->list[i];
        const bool step = x->kind == EVENT_STEP;
        if ((!step && x->kind != EVENT_ZONE) || e->lanes[x->lane].process != process)
            continue;
        struct piece *in[] = { &all, step ? &steps : &all };
        for (size_t k = 0; k < 2; k++) {
            in[k]->from = x->ts_ns < in[k]->from ? x->ts_ns : in[k]->from;
            in[k]->to = end_of(x) > in[k]->to ? end_of(x) : in[k]->to;
        }
    }
    return steps.from < steps.to ? steps : all;
}

int launch_share_read(const struct events *e, size_t process, double *ret_share)
{
    struct walk w = { .e = e };
    int rc = read_launched(&w);
    for (size_t i = 0; rc == 0 && w.launched_count && i < e->count; i++) {
        const struct event *x = &e->list[i];
        if (x->kind == EVENT_ZONE && e->lanes[x->lane].process == process)
            rc = see(&w, x);
    }
    if (rc == 0)
        rc = leave_operator(&w);
    const struct piece window = window_of(e, process);
    if (rc == 0)
        *ret_share = w.count && window.to > window.from
                         ? length_ns(&w, window.from, window.to) /
                               ((double)window.to - (double)window.from)
                         : NAN;
    free(w.pieces);
    free(w.launched);
    return rc;
}
