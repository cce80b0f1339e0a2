/* fetches.c: the object that belongs to an iterator of a data loader. See fetches.h. */
#include "fetches.h"

#include <stdlib.h>
#include <string.h>

static PyTypeObject *fetches_type;
struct fetches_names fetches_names;

static struct loader_sum_row *sum_of(struct fetches *f, enum loader_sum what)
{
    if (!f->sums[what])
        f->sums[what] = book_sum(f->loader, what, NULL, 0);
    return f->sums[what];
}

void fetches_add(struct fetches *f, enum loader_sum what, uint64_t value)
{
    sum_add(sum_of(f, what), value);
}

struct fetches *fetches_of(PyObject *iterator)
{
    PyObject *o = PyObject_GetAttr(iterator, fetches_names.sonde);
    if (!o) {
        PyErr_Clear();
        return NULL;
    }
    Py_DECREF(o); /* the iterator holds it */
    return Py_TYPE(o) == fetches_type ? (struct fetches *)o : NULL;
}

int64_t fetches_number(PyObject *iterator, PyObject *name)
{
    PyObject *o = PyObject_GetAttr(iterator, name);
    const int64_t n = o ? PyLong_AsLongLong(o) : -1;
    Py_XDECREF(o);
    PyErr_Clear();
    return n;
}

void fetches_end_epoch(struct fetches *f, uint64_t now, bool exhausted)
{
    if (f->epoch && f->in_epoch) {
        put64(&f->epoch->exhausted, exhausted);
        put64(&f->epoch->ended, now);
    }
    f->in_epoch = false;
    f->given = 0;
}

/* ---- The object ------------------------------------------------------------------------ */

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
    f->site_evaluating = layer_site("DataLoader.next", SONDE_EVALUATION, "loader");
    f->site_now = f->site;
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
        fetches_end_epoch(f, sonde_ticks(), false);
    f->epoch_number = (uint32_t)f->row->epochs;
    put64(&f->row->epochs, f->row->epochs + 1);
    f->epoch_batches = 0;
    f->early_stored = 0;
    f->in_epoch = true;
    f->seen.fetched = false;
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
    return pinning_thread((struct fetches *)self, thread) < 0 ? NULL : new_none();
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

static PyObject *fetches_is_live(PyObject *self, void *unused)
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
        fetches_end_epoch(f, sonde_ticks(), false);
    steps_gone(f);
    next_forget(f);
    pinning_forget(f);
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
    { "live", fetches_is_live, NULL, NULL, NULL },
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

int fetches_init(PyObject *module)
{
    fetches_names.sonde = PyUnicode_InternFromString("_sonde");
    fetches_names.rcvd = PyUnicode_InternFromString("_rcvd_idx");
    fetches_names.send = PyUnicode_InternFromString("_send_idx");
    fetches_names.outstanding = PyUnicode_InternFromString("_tasks_outstanding");
    fetches_names.task_info = PyUnicode_InternFromString("_task_info");
    fetches_type = add_type(module, &fetches_spec);
    return fetches_names.task_info && fetches_type ? 0 : -1;
}
