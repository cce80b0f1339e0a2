/* worker.c: hooks on what a worker does besides samples: collating, waiting for an index,
 * sending the batch back. See maker.h. Collating is the same without workers. */
#include "hook.h"
#include "maker.h"

static bool owned_before(struct hook *h, struct hook_call *call)
{
    if (!h->owner || !maker_live((struct maker *)h->owner))
        return false;
    call->start = sonde_ticks();
    return true;
}

static bool collating_before(struct hook *h, struct hook_call *call)
{
    struct maker *m = (struct maker *)h->owner;
    if (!m->making || !owned_before(h, call))
        return false;
    sonde_begin_on_(m->site_collate);
    return true;
}

static void collating_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    struct maker *m = (struct maker *)h->owner;
    const uint64_t took = sonde_ticks() - call->start;
    end_zone(m->site_collate);
    m->collate_ticks += took;
    if (result)
        sum_add(m->collate, took);
}

const struct hook_kind collating_kind = { "collating", collating_before,
                                          collating_after };

/* index_queue.get(): None at the end, (number, indices), or word of a new epoch. */
static bool waiting_before(struct hook *h, struct hook_call *call)
{
    struct maker *m = (struct maker *)h->owner;
    if (!owned_before(h, call))
        return false;
    if (m->self)
        looks_take(&m->looks, m->self, call->start, false);
    sonde_begin_on_(m->site_idle);
    if (m->self && !m->self->first)
        put64(&m->self->first, call->start);
    return true;
}

static void waiting_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    struct maker *m = (struct maker *)h->owner;
    const uint64_t now = sonde_ticks();
    end_zone(m->site_idle);
    m->idle_ticks += now - call->start;
    if (m->self) {
        put64(&m->self->last, now);
        put64(&m->self->idle_ticks, m->self->idle_ticks + (now - call->start));
    }
    if (m->self && result == Py_None) /* it is told to end */
        looks_take(&m->looks, m->self, now, true);
    if (!result || !PyTuple_Check(result) || PyTuple_Size(result) != 2)
        return;
    const long long number = PyLong_AsLongLong(PyTuple_GetItem(result, 0));
    if (PyErr_Occurred())
        return;
    m->number = (uint32_t)number;
    sum_add(m->idle, m->idle_ticks);
}

const struct hook_kind waiting_kind = { "waiting", waiting_before, waiting_after };

/* The number in (number, data); −1: it is something else. */
static long long number_in(const struct hook_call *call)
{
    PyObject *pair = call->count > 0 ? call->args[0] : NULL;
    PyObject *number = pair && PyTuple_Check(pair) && PyTuple_Size(pair) == 2
                           ? PyTuple_GetItem(pair, 0)
                           : NULL;
    const long long n = number && PyLong_Check(number) ? PyLong_AsLongLong(number) : -1;
    PyErr_Clear();
    return n;
}

static struct loader_made_row *row_of(const struct maker *m, long long number)
{
    if (number < 0)
        return NULL;
    const unsigned i = (unsigned)(number % MAKER_ROWS);
    return m->rows[i].number == (uint64_t)number + 1 ? m->rows[i].row : NULL;
}

static void putting_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)result;
    struct loader_made_row *row = row_of((struct maker *)h->owner, number_in(call));
    if (row)
        put64(&row->put, call->start);
}

const struct hook_kind putting_kind = { "putting", owned_before, putting_after };

/* On the thread that feeds the queue: to bytes, then into the pipe. */
static void pickling_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    struct maker *m = (struct maker *)h->owner;
    const long long number = number_in(call);
    if (!result || number < 0)
        return;
    m->pickled_at = sonde_ticks();
    m->pickled_number = (uint32_t)number;
    sum_add(m->pickle, m->pickled_at - call->start);
    struct loader_made_row *row = row_of(m, number);
    if (row)
        put64(&row->pickled, m->pickled_at);
}

const struct hook_kind pickling_kind = { "pickling", owned_before, pickling_after };

static void posting_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)call, (void)result;
    struct maker *m = (struct maker *)h->owner;
    if (!m->pickled_at)
        return;
    /* From the bytes being there: workers wait for each other to write. */
    const uint64_t now = sonde_ticks();
    sum_add(m->send, now - m->pickled_at);
    m->pickled_at = 0;
    struct loader_made_row *row = row_of(m, m->pickled_number);
    if (row)
        put64(&row->sent, now);
    if (m->self)
        put64(&m->self->last, now);
}

const struct hook_kind posting_kind = { "posting", owned_before, posting_after };
