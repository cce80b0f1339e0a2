/* fetches.c: a data loader seen by who iterates it.
 *
 * A Fetches belongs to one iterator of a loader (persistent workers keep theirs over
 * epochs) and sits in its attribute `_sonde`. Hooks on the iterator's methods tell it what
 * happens; all of it on the thread that fetches, with the GIL held:
 *
 *     next       __next__: one fetch, and with the one before it one step of the program
 *     sampling   _next_index: the sampler decides what is in a batch
 *     sending    _try_put_index: its indices go to a worker
 *     taking     _try_get_data: a batch comes from a worker, perhaps not the one wanted
 *     polling    the queue's _poll: of taking, the part in which there was nothing
 *     pinning    pin_memory(): here or on the thread for it
 *
 * What goes to a device after a batch was given (tensors.c) is counted for that batch.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"
#include "hook.h"
#include "maker.h"
#include "torch.h"

enum { IS_READY = 1, IS_EARLY = 2 };
enum { MAX_PINNERS = 64 };

/* What is known of a batch on its way; found by its number. */
struct travel {
    uint64_t number; /* 1 + number in the epoch; 0 none */
    uint64_t sent_index, arrived;
    uint32_t samples;
    int32_t worker;
    bool early;
};

struct fetches {
    PyObject_HEAD
    uint64_t life;
    uint32_t loader;
    struct loader_row *row;
    struct loader_epoch_row *epoch;
    uint32_t epoch_number;
    struct loader_sum_row *sums[LOADER_SUM_END];
    struct sonde_site *site;
    struct travel *travels;
    uint32_t travel_mask;
    bool multi, ordered, in_epoch;
    int fd; /* of the pipe batches come through; −1 none */
    PyObject *depth,
        *stop_type; /* who knows the length of the queue; end of iterables */
    long depth_base;
    /* The fetch going on, and the end of the last. */
    bool fetching, blocked, stepped;
    uint64_t wait, receive, given, epoch_batches;
    uint32_t early_stored, last_samples;
    struct fetches *outer; /* whose fetch this one is part of: nested loaders */
    uint64_t last_bytes;
    uint64_t moved; /* from host to device since the last batch */
};

static PyTypeObject *fetches_type;
static struct {
    PyObject *begins, *ends, *exhausted, *bytes_of;
} calls; /* or NULL */
static struct {
    PyObject *sonde, *rcvd, *send, *outstanding, *task_info;
} names;

/* Whose fetch this thread is in: pinning without workers happens there. */
static __thread struct fetches *current __attribute__((tls_model("initial-exec")));
/* Who gave the last batch, and to which thread; borrowed. */
static struct {
    struct fetches *fetches;
    unsigned long thread;
} consumed;
static struct {
    unsigned long thread;
    PyObject *fetches; /* strong */
} pinners[MAX_PINNERS];

static struct loader_sum_row *sum_of(struct fetches *f, enum loader_sum what)
{
    if (!f->sums[what])
        f->sums[what] = book_sum(f->loader, what, NULL, 0);
    return f->sums[what];
}

static void add(struct fetches *f, enum loader_sum what, uint64_t value)
{
    sum_add(sum_of(f, what), value);
}

static bool is_live(const struct fetches *f)
{
    return sonde_on_() && f->life && f->life == book()->life;
}

/* The iterator's Fetches, borrowed from the iterator; NULL when it has none. */
static struct fetches *fetches_of(PyObject *iterator)
{
    PyObject *o = PyObject_GetAttr(iterator, names.sonde);
    if (!o) {
        PyErr_Clear();
        return NULL;
    }
    Py_DECREF(o); /* the iterator holds it */
    return Py_TYPE(o) == fetches_type ? (struct fetches *)o : NULL;
}

static int64_t number_of(PyObject *iterator, PyObject *name)
{
    PyObject *o = PyObject_GetAttr(iterator, name);
    const int64_t n = o ? PyLong_AsLongLong(o) : -1;
    Py_XDECREF(o);
    PyErr_Clear();
    return n;
}

static struct travel *travel_of(const struct fetches *f, int64_t number)
{
    struct travel *t = &f->travels[(uint64_t)number & f->travel_mask];
    return number >= 0 && t->number == (uint64_t)number + 1 ? t : NULL;
}

/* ---- next ----------------------------------------------------------------------------- */

static void inform(PyObject *fn, PyObject *a, PyObject *b)
{
    if (!fn)
        return;
    PyObject *answer = PyObject_CallFunctionObjArgs(fn, a, b, NULL);
    Py_XDECREF(answer);
    swallow("steps");
}

/* Batches that are made and not fetched: some may still be on their way. */
static uint64_t queue_length(const struct fetches *f)
{
    long n = 0;
    if (f->depth && f->depth_base >= 0) {
        PyObject *free_places = PyObject_CallObject(f->depth, NULL);
        n = free_places ? f->depth_base - PyLong_AsLong(free_places) : 0;
        Py_XDECREF(free_places);
    } else if (f->depth) {
        n = (long)PyObject_Size(f->depth);
    }
    PyErr_Clear();
    return (n > 0 ? (uint64_t)n : 0) + f->early_stored;
}

/* What was moved since the last batch is of that batch. */
static void count_moved(struct fetches *f)
{
    if (f->moved)
        add(f, LOADER_TRANSFER, f->moved);
    f->moved = 0;
}

static bool next_before(struct hook *h, struct hook_call *call)
{
    (void)h;
    PyObject *iterator = call->count > 0 ? call->args[0] : NULL;
    struct fetches *f = iterator ? fetches_of(iterator) : NULL;
    if (!f || !is_live(f) || f->fetching)
        return false;
    call->owner = new_ref((PyObject *)f);
    const uint64_t steps = sonde_steps();
    inform(calls.begins, iterator, NULL);
    f->stepped = sonde_steps() != steps;
    f->fetching = true;
    f->blocked = false;
    f->wait = f->receive = 0;
    count_moved(f);
    f->outer = current;
    current = f;
    if (f->multi) {
        call->number[0] = (uint64_t)number_of(iterator, names.outstanding);
        call->number[1] = queue_length(f);
    }
    sonde_begin_on_(f->site);
    call->start = sonde_ticks();
    return true;
}

/* Walking a batch takes microseconds: a loop of microseconds is walked now and then. */
static uint64_t bytes_in(struct fetches *f, PyObject *batch, uint64_t fetch_ticks)
{
    if (!calls.bytes_of ||
        (f->row->batches >= 8 && fetch_ticks < 1 << 20 && f->row->batches % 32 != 0))
        return f->last_bytes;
    PyObject *answer = PyObject_CallFunctionObjArgs(calls.bytes_of, batch, NULL);
    const long long bytes = answer ? PyLong_AsLongLong(answer) : -1;
    Py_XDECREF(answer);
    PyErr_Clear();
    if (bytes < 0)
        return 0;
    f->last_bytes = (uint64_t)bytes;
    add(f, LOADER_BATCH_BYTES, (uint64_t)bytes);
    return (uint64_t)bytes;
}

static void keep_batch(struct fetches *f, const struct hook_call *call, uint64_t now,
                       uint64_t bytes, int64_t number)
{
    uint64_t key;
    const struct travel *t = f->travels ? travel_of(f, number) : NULL;
    struct loader_batch_row *row = book_batch(&key);
    if (!row)
        return;
    row->loader = f->loader;
    row->epoch = f->epoch_number;
    row->number = (uint32_t)number;
    row->worker = t ? t->worker : -1;
    row->step = sonde_steps();
    row->asked = call->start;
    row->given = now;
    row->sent_index = t ? t->sent_index : 0;
    row->arrived = t ? t->arrived : 0;
    row->bytes = bytes;
    row->samples = t ? t->samples : f->last_samples;
    row->in_flight = (uint32_t)call->number[0];
    row->queued = (uint32_t)call->number[1];
    row->flags = (f->multi && !f->blocked ? IS_READY : 0) |
                 (t && t->early ? IS_EARLY : 0);
    publish(&row->key, key);
}

static void count_first(struct fetches *f, uint64_t now, uint64_t took)
{
    add(f, LOADER_FIRST_FETCH, took);
    if (f->epoch)
        put64(&f->epoch->first_batch, now);
}

static void count_later(struct fetches *f, const struct hook_call *call, uint64_t took)
{
    add(f, LOADER_FETCH, took);
    put64(&f->row->fetches, f->row->fetches + 1);
    if (!f->multi)
        return;
    if (!f->blocked)
        put64(&f->row->ready, f->row->ready + 1);
    add(f, LOADER_WAIT, f->wait);
    add(f, LOADER_RECEIVE, f->receive);
    add(f, LOADER_IN_FLIGHT, call->number[0]);
    add(f, LOADER_QUEUED, call->number[1]);
}

static void count_fetch(struct fetches *f, const struct hook_call *call, uint64_t now)
{
    const uint64_t took = now - call->start;
    if (f->epoch_batches++ == 0)
        count_first(f, now, took);
    else
        count_later(f, call, took);
    put64(&f->row->batches, f->row->batches + 1);
    if (f->epoch)
        put64(&f->epoch->batches, f->epoch_batches);
}

static void end_epoch(struct fetches *f, uint64_t now, bool exhausted)
{
    if (f->epoch && f->in_epoch) {
        put64(&f->epoch->exhausted, exhausted);
        put64(&f->epoch->ended, now);
    }
    f->in_epoch = false;
    f->given = 0;
}

static void got_batch(struct fetches *f, const struct hook_call *call, PyObject *batch,
                      uint64_t now)
{
    const int64_t number = f->multi ? number_of(call->args[0], names.rcvd) - 1
                                    : (int64_t)f->epoch_batches;
    if (f->given && f->given <= call->start)
        add(f, LOADER_CONSUME, call->start - f->given);
    count_fetch(f, call, now);
    struct travel *t = f->travels ? travel_of(f, number) : NULL;
    if (!f->multi) /* the batch was made here, and counted */
        f->last_samples = maker_last_samples;
    const uint32_t samples = t ? t->samples : f->last_samples;
    if (f->multi)
        put64(&f->row->samples, f->row->samples + samples);
    add(f, LOADER_BATCH_SAMPLES, samples);
    if (t && t->early && f->early_stored)
        f->early_stored--;
    const uint64_t bytes = bytes_in(f, batch, now - call->start);
    inform(calls.ends, call->args[0], batch);
    put64(&f->row->stepped, f->row->stepped + f->stepped);
    keep_batch(f, call, now, bytes, number);
    if (t)
        t->number = 0;
    consumed.fetches = f;
    consumed.thread = PyThread_get_thread_ident();
    f->given = sonde_ticks(); /* what we did meanwhile is not the program's */
}

static void count_waiting(struct fetches *f, uint64_t ticks)
{
    put64(&f->row->fetch_ticks, f->row->fetch_ticks + ticks);
    if (f->epoch)
        put64(&f->epoch->fetch_ticks, f->epoch->fetch_ticks + ticks);
}

static void exhausted(struct fetches *f, const struct hook_call *call, uint64_t ticks)
{
    if (f->epoch && f->in_epoch)
        put64(&f->epoch->end_ticks, ticks);
    if (f->given && f->given <= call->start)
        add(f, LOADER_CONSUME, call->start - f->given);
    end_epoch(f, sonde_ticks(), true);
    inform(calls.exhausted, call->args[0], NULL);
}

static void next_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)h;
    struct fetches *f = (struct fetches *)call->owner;
    const uint64_t now = sonde_ticks();
    end_zone(f->site);
    f->fetching = false;
    current = f->outer;
    if (!is_live(f)) {
        f->given = 0;
        return;
    }
    put64(&f->row->last_ticks, now);
    if (f->epoch)
        put64(&f->epoch->last, now);
    if (!result && call->raised &&
        PyErr_GivenExceptionMatches(call->raised, PyExc_StopIteration)) {
        exhausted(f, call, now - call->start);
        return;
    }
    count_waiting(f, now - call->start);
    if (result)
        got_batch(f, call, result, now);
    else
        put64(&f->row->failed, f->row->failed + 1);
}

static const struct hook_kind next_kind = { "next", next_before, next_after };

/* ---- sampling, sending ------------------------------------------------------------------ */

/* Those that only count inside a live iterator's life. */
static bool timed_before(struct hook *h, struct hook_call *call)
{
    (void)h;
    struct fetches *f = call->count > 0 ? fetches_of(call->args[0]) : NULL;
    if (!f || !is_live(f))
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
    add(f, LOADER_SAMPLING, sonde_ticks() - call->start);
    f->last_samples = PyList_Check(result) || PyTuple_Check(result)
                          ? (uint32_t)PyObject_Size(result)
                          : 1;
}

static const struct hook_kind sampling_kind = { "sampling", timed_before,
                                                sampling_after };

static bool sending_before(struct hook *h, struct hook_call *call)
{
    if (!timed_before(h, call))
        return false;
    call->number[0] = (uint64_t)number_of(call->args[0], names.send);
    return true;
}

static void sending_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)h;
    struct fetches *f = (struct fetches *)call->owner;
    const int64_t next = result ? number_of(call->args[0], names.send) : -1;
    if (!f->travels || next != (int64_t)call->number[0] + 1)
        return; /* the sampler is at its end */
    struct travel *t = &f->travels[call->number[0] & f->travel_mask];
    *t = (struct travel){ .number = call->number[0] + 1,
                          .sent_index = sonde_ticks(),
                          .samples = f->last_samples,
                          .worker = -1 };
}

static const struct hook_kind sending_kind = { "sending", sending_before,
                                               sending_after };

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
    if (!f || !f->fetching || !is_live(f))
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
    PyObject *info = PyObject_GetAttr(iterator, names.task_info);
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
    t->early = f->ordered && n != number_of(iterator, names.rcvd);
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

static const struct hook_kind taking_kind = { "taking", taking_before, taking_after };

static bool polling_before(struct hook *h, struct hook_call *call)
{
    struct fetches *f = (struct fetches *)h->owner;
    if (!f->fetching || current != f)
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

static const struct hook_kind polling_kind = { "polling", polling_before,
                                               polling_after };

/* ---- pinning ------------------------------------------------------------------------------ */

static __thread unsigned pin_depth __attribute__((tls_model("initial-exec")));

static struct fetches *pinned_for(void)
{
    if (current)
        return current;
    const unsigned long me = PyThread_get_thread_ident();
    for (unsigned i = 0; i < MAX_PINNERS; i++)
        if (pinners[i].fetches && pinners[i].thread == me)
            return (struct fetches *)pinners[i].fetches;
    return NULL;
}

static struct sonde_site *pin_site(void)
{
    static struct sonde_site *site;
    if (!site)
        site = layer_site("pin_memory", SONDE_TRANSFER, "loader");
    return site;
}

static bool pinning_before(struct hook *h, struct hook_call *call)
{
    (void)h;
    struct fetches *f = pin_depth || !sonde_on_() ? NULL : pinned_for();
    if (!f || !is_live(f))
        return false; /* it calls itself for what is in a batch */
    pin_depth = 1;
    call->owner = new_ref((PyObject *)f);
    sonde_begin_on_(pin_site());
    call->start = sonde_ticks();
    return true;
}

static void pinning_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)h, (void)result;
    struct fetches *f = (struct fetches *)call->owner;
    const uint64_t took = sonde_ticks() - call->start;
    end_zone(pin_site());
    pin_depth = 0;
    if (is_live(f))
        add(f, LOADER_PINNING, took);
}

static const struct hook_kind pinning_kind = { "pinning", pinning_before,
                                               pinning_after };

/* ---- moved ------------------------------------------------------------------------------- */

void fetches_moved(uint64_t ticks)
{
    if (consumed.fetches && consumed.thread == PyThread_get_thread_ident())
        consumed.fetches->moved += ticks;
}

extern const struct hook_kind making_kind, collating_kind, waiting_kind, putting_kind,
    pickling_kind, posting_kind;
const struct hook_kind *const hook_kinds[] = {
    &next_kind,    &sampling_kind, &sending_kind,  &taking_kind,
    &polling_kind, &pinning_kind,  &making_kind,   &collating_kind,
    &waiting_kind, &putting_kind,  &pickling_kind, &posting_kind,
    NULL,
};

/* ---- The object ------------------------------------------------------------------------------ */

/* Fetches(loader, *, multi, ordered=True, capacity=0) */
static PyObject *fetches_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = { "loader", "multi", "ordered", "capacity", NULL };
    unsigned loader, capacity = 0;
    int multi = 0, ordered = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "I|$ppI:Fetches", words, &loader,
                                     &multi, &ordered, &capacity))
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct fetches *f = (struct fetches *)alloc(type, 0);
    if (!f)
        return NULL;
    struct book *b = book();
    f->life = loader < b->loaders ? b->life : 0;
    f->row = sonde_tables_row(b->tables, LOADER_LOADERS, loader);
    f->loader = loader;
    f->multi = multi;
    f->ordered = ordered;
    f->fd = -1;
    f->depth_base = -1;
    if (!f->row)
        f->life = 0;
    f->site = layer_site("DataLoader.next", SONDE_DATA_LOADING, "loader");
    uint32_t size = 64;
    while (size < 2 * capacity && size < 1 << 16)
        size *= 2;
    f->travels = multi ? calloc(size, sizeof *f->travels) : NULL;
    f->travel_mask = size - 1;
    return (PyObject *)f;
}

/* begin(start, iter_done): a new epoch; ticks. The iterator may have had others. */
static PyObject *fetches_begin(PyObject *self, PyObject *args)
{
    struct fetches *f = (struct fetches *)self;
    unsigned long long start;
    if (!PyArg_ParseTuple(args, "K", &start))
        return NULL;
    if (!f->life || f->life != book()->life)
        return new_none();
    if (f->in_epoch)
        end_epoch(f, sonde_ticks(), false);
    f->epoch_number = (uint32_t)f->row->epochs;
    put64(&f->row->epochs, f->row->epochs + 1);
    f->epoch_batches = 0;
    f->early_stored = 0;
    f->in_epoch = true;
    if (f->travels)
        memset(f->travels, 0, ((size_t)f->travel_mask + 1) * sizeof *f->travels);
    struct loader_epoch_row *row = f->epoch = book_epoch();
    if (row) {
        row->loader = f->loader;
        row->number = f->epoch_number;
        row->start = start;
        publish(&row->key, 1);
    }
    return new_none();
}

/* begun(): iter(loader) is about to return. */
static PyObject *fetches_begun(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct fetches *f = (struct fetches *)self;
    if (f->epoch && f->life == book()->life && !f->epoch->iter_done)
        put64(&f->epoch->iter_done, sonde_ticks());
    return new_none();
}

/* watch(fd, depth, depth_base, stop_type): where batches come from. */
static PyObject *fetches_watch(PyObject *self, PyObject *args)
{
    struct fetches *f = (struct fetches *)self;
    PyObject *depth, *stop_type;
    int fd;
    long base;
    if (!PyArg_ParseTuple(args, "iOlO", &fd, &depth, &base, &stop_type))
        return NULL;
    Py_CLEAR(f->depth);
    Py_CLEAR(f->stop_type);
    f->fd = fd;
    f->depth = depth == Py_None ? NULL : new_ref(depth);
    f->depth_base = base;
    f->stop_type = stop_type == Py_None ? NULL : new_ref(stop_type);
    return new_none();
}

static PyObject *fetches_pinner(PyObject *self, PyObject *thread)
{
    const unsigned long ident = PyLong_AsUnsignedLong(thread);
    if (PyErr_Occurred())
        return NULL;
    unsigned place = 0;
    while (place < MAX_PINNERS - 1 && pinners[place].fetches &&
           pinners[place].thread != ident)
        place++;
    Py_XDECREF(pinners[place].fetches);
    pinners[place].fetches = new_ref(self);
    pinners[place].thread = ident;
    return new_none();
}

/* worker(number, pid, started): a process was started for this loader. */
static PyObject *fetches_worker(PyObject *self, PyObject *args)
{
    struct fetches *f = (struct fetches *)self;
    unsigned number, pid;
    unsigned long long started;
    if (!PyArg_ParseTuple(args, "IIK", &number, &pid, &started))
        return NULL;
    struct loader_worker_row *row = f->life && f->life == book()->life ? book_worker()
                                                                       : NULL;
    if (row) {
        row->loader = f->loader;
        row->number = number;
        row->epoch = f->epoch_number;
        row->pid = pid;
        row->started = started;
        publish(&row->key, 1);
    }
    return new_none();
}

static PyObject *fetches_live(PyObject *self, void *unused)
{
    (void)unused;
    struct fetches *f = (struct fetches *)self;
    return PyBool_FromLong(f->life && f->life == book()->life);
}

static void fetches_dealloc(PyObject *self)
{
    struct fetches *f = (struct fetches *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (f->life && f->life == book()->life && f->in_epoch)
        end_epoch(f, sonde_ticks(), false);
    if (current == f)
        current = NULL;
    if (consumed.fetches == f)
        consumed.fetches = NULL;
    Py_CLEAR(f->depth);
    Py_CLEAR(f->stop_type);
    free(f->travels);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef fetches_methods[] = {
    { "begin", fetches_begin, METH_VARARGS, NULL },
    { "begun", fetches_begun, METH_NOARGS, NULL },
    { "watch", fetches_watch, METH_VARARGS, NULL },
    { "pinner", fetches_pinner, METH_O, NULL },
    { "worker", fetches_worker, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};
static PyGetSetDef fetches_getset[] = {
    { "live", fetches_live, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot fetches_slots[] = {
    { Py_tp_new, fetches_new },
    { Py_tp_dealloc, fetches_dealloc },
    { Py_tp_methods, fetches_methods },
    { Py_tp_getset, fetches_getset },
    { 0, NULL },
};
static PyType_Spec fetches_spec = {
    .name = "sonde._sonde.Fetches",
    .basicsize = sizeof(struct fetches),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = fetches_slots,
};

static void replace(PyObject **place, PyObject *o)
{
    PyObject *old = *place;
    *place = o == Py_None ? NULL : new_ref(o);
    Py_XDECREF(old);
}

/* loader_calls(begins, ends, exhausted, bytes_of): Python functions, or None. */
PyObject *py_loader_calls(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *begins, *ends, *done, *bytes_of;
    if (!PyArg_ParseTuple(args, "OOOO", &begins, &ends, &done, &bytes_of))
        return NULL;
    replace(&calls.begins, begins);
    replace(&calls.ends, ends);
    replace(&calls.exhausted, done);
    replace(&calls.bytes_of, bytes_of);
    return new_none();
}

int fetches_init(PyObject *module)
{
    names.sonde = PyUnicode_InternFromString("_sonde");
    names.rcvd = PyUnicode_InternFromString("_rcvd_idx");
    names.send = PyUnicode_InternFromString("_send_idx");
    names.outstanding = PyUnicode_InternFromString("_tasks_outstanding");
    names.task_info = PyUnicode_InternFromString("_task_info");
    fetches_type = add_type(module, &fetches_spec);
    return names.task_info && fetches_type ? 0 : -1;
}
