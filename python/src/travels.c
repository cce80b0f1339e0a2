/* travels.c: a batch on its way: drawn, sent for, made elsewhere, taken. See fetches.h. */
#include <poll.h>

#include "fetches.h"

/* ---- sampling, sending ------------------------------------------------------------------ */

/* Those that only count inside a live iterator's life. */
static bool timed_before(struct hook *h, struct hook_call *call)
{
    (void)h;
    struct fetches *f = call->count > 0 ? fetches_of(call->args[0]) : NULL;
    if (!f || !fetches_live(f))
        return false;
    call->owner = new_ref((PyObject *)f);
    call->start = sonde_ticks();
    return true;
}

/* A list of indices is a batch; anything else is one sample. */
static void sampling_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)h;
    struct fetches *f = (struct fetches *)call->owner;
    if (!result)
        return;
    fetches_add(f, LOADER_SAMPLING, sonde_ticks() - call->start);
    f->last_samples = PyList_Check(result) || PyTuple_Check(result)
                          ? (uint32_t)PyObject_Size(result)
                          : 1;
}

const struct hook_kind sampling_kind = { "sampling", timed_before, sampling_after };

static bool sending_before(struct hook *h, struct hook_call *call)
{
    if (!timed_before(h, call))
        return false;
    call->number[0] = (uint64_t)fetches_number(call->args[0], fetches_names.send);
    return true;
}

static void sending_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)h;
    struct fetches *f = (struct fetches *)call->owner;
    const int64_t next = result ? fetches_number(call->args[0], fetches_names.send)
                                : -1;
    if (!f->travels || next != (int64_t)call->number[0] + 1)
        return; /* the sampler is at its end */
    struct travel *t = &f->travels[call->number[0] & f->travel_mask];
    *t = (struct travel){ .number = call->number[0] + 1,
                          .sent_index = sonde_ticks(),
                          .samples = f->last_samples,
                          .worker = -1 };
}

const struct hook_kind sending_kind = { "sending", sending_before, sending_after };

/* ---- taking ------------------------------------------------------------------------------ */

/* Whether a batch is in the queue right now. */
static bool something_there(const struct fetches *f)
{
    if (f->fd >= 0) {
        struct pollfd p = { .fd = f->fd, .events = POLLIN };
        return poll(&p, 1, 0) > 0;
    }
    return f->depth && f->depth_base < 0 && PyObject_Size(f->depth) > 0;
}

static bool taking_before(struct hook *h, struct hook_call *call)
{
    (void)h;
    struct fetches *f = call->count > 0 ? fetches_of(call->args[0]) : NULL;
    if (!f || !f->fetching || !fetches_live(f))
        return false;
    call->owner = new_ref((PyObject *)f);
    call->number[0] = f->wait;
    if (!something_there(f))
        f->blocked = true;
    call->start = sonde_ticks();
    return true;
}

/* The worker that made the batch: _task_info[number] is (worker, …). */
static int32_t worker_of(PyObject *iterator, PyObject *number)
{
    PyObject *info = PyObject_GetAttr(iterator, fetches_names.task_info);
    PyObject *entry = info ? PyObject_GetItem(info, number) : NULL;
    PyObject *worker = entry ? PySequence_GetItem(entry, 0) : NULL;
    const long n = worker ? PyLong_AsLong(worker) : -1;
    Py_XDECREF(worker);
    Py_XDECREF(entry);
    Py_XDECREF(info);
    PyErr_Clear();
    return (int32_t)n;
}

static void arrived(struct fetches *f, PyObject *iterator, PyObject *pair, uint64_t now)
{
    PyObject *number = PyTuple_Check(pair) ? PyTuple_GetItem(pair, 0) : NULL;
    PyObject *data = number ? PyTuple_GetItem(pair, 1) : NULL;
    if (!data || !PyLong_Check(number) ||
        (f->stop_type && (PyObject *)Py_TYPE(data) == f->stop_type))
        return;
    const int64_t n = PyLong_AsLongLong(number);
    struct travel *t = f->travels && n >= 0 ? &f->travels[(uint64_t)n & f->travel_mask]
                                            : NULL;
    if (!t)
        return;
    if (t->number != (uint64_t)n + 1)
        *t = (struct travel){ .number = (uint64_t)n + 1 };
    t->arrived = now;
    t->worker = worker_of(iterator, number);
    t->early = f->ordered && n != fetches_number(iterator, fetches_names.rcvd);
    if (t->early) {
        f->early_stored++;
        put64(&f->row->early, f->row->early + 1);
    }
}

static void taking_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)h;
    struct fetches *f = (struct fetches *)call->owner;
    const uint64_t now = sonde_ticks();
    const uint64_t took = now - call->start;
    if (f->fd < 0) /* a plain queue: all of it is waiting */
        f->wait += took;
    const uint64_t waited = f->wait - call->number[0];
    f->receive += took > waited ? took - waited : 0;
    if (f->early_stored && f->blocked)
        put64(&f->row->early_ticks, f->row->early_ticks + waited);
    if (result && PyTuple_Check(result) && PyTuple_Size(result) == 2) {
        PyObject *good = PyTuple_GetItem(result, 0);
        PyObject *pair = PyTuple_GetItem(result, 1);
        if (good == Py_True && pair)
            arrived(f, call->args[0], pair, now);
    }
}

const struct hook_kind taking_kind = { "taking", taking_before, taking_after };

static bool polling_before(struct hook *h, struct hook_call *call)
{
    struct fetches *f = (struct fetches *)h->owner;
    if (!f->fetching || fetches_current != f)
        return false;
    call->start = sonde_ticks();
    return true;
}

static void polling_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)result;
    struct fetches *f = (struct fetches *)h->owner;
    /* Asking the kernel takes a while even when the answer is there. */
    if (f->blocked)
        f->wait += sonde_ticks() - call->start;
}

const struct hook_kind polling_kind = { "polling", polling_before, polling_after };
