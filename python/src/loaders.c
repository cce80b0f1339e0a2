/* loaders.c: what sonde._torch tells about data loaders. */
#include "book.h"
#include "fetches.h"
#include "hook.h"
#include "maker.h"
#include "rows.h"

extern const struct hook_kind next_kind, sampling_kind, sending_kind, taking_kind,
    polling_kind, pinning_kind, making_kind, collating_kind, waiting_kind, putting_kind,
    pickling_kind, posting_kind;
const struct hook_kind *const hook_kinds[] = {
    &next_kind,    &sampling_kind, &sending_kind,  &taking_kind,
    &polling_kind, &pinning_kind,  &making_kind,   &collating_kind,
    &waiting_kind, &putting_kind,  &pickling_kind, &posting_kind,
    NULL,
};

/* loader_open() -> life: 0 when nothing is recorded, another number in every process and
 * session. */
static PyObject *py_loader_open(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(book_open());
}

/* loader_new(file, line, kind, dataset, sampler, collate, start_method, length, workers,
 * prefetch, batch, flags, timeout) -> number, or −1 */
static PyObject *py_loader_new(PyObject *module, PyObject *args)
{
    (void)module;
    const char *file, *kind, *dataset, *sampler, *collate, *method;
    int line, workers, prefetch, batch;
    unsigned flags;
    long long length;
    double timeout;
    if (!PyArg_ParseTuple(args, "sisssssLiiiId:loader_new", &file, &line, &kind,
                          &dataset, &sampler, &collate, &method, &length, &workers,
                          &prefetch, &batch, &flags, &timeout))
        return NULL;
    uint32_t number = 0;
    struct loader_row *row = book_open() ? book_loader(&number) : NULL;
    if (!row)
        return PyLong_FromLong(-1);
    row->file = book_text(file);
    row->line = line;
    row->kind = book_text(kind);
    row->dataset = book_text(dataset);
    row->sampler = book_text(sampler);
    row->collate = book_text(collate);
    row->start_method = book_text(method);
    row->flags = flags;
    row->dataset_length = length;
    row->num_workers = workers;
    row->prefetch_factor = prefetch;
    row->batch_size = batch;
    row->timeout_s = timeout;
    publish(&row->key, (uint64_t)number + 1);
    return PyLong_FromLong((long)number);
}

/* loader_objects(number, text): what its data set keeps. */
static PyObject *py_loader_objects(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned number;
    const char *text;
    if (!PyArg_ParseTuple(args, "Is:loader_objects", &number, &text))
        return NULL;
    struct loader_row *row = book_open() ? sonde_tables_row(book()->tables,
                                                            LOADER_LOADERS, number)
                                         : NULL;
    if (row && !row->objects)
        __atomic_store_n(&row->objects, book_text(text), __ATOMIC_RELEASE);
    return new_none();
}

/* loader_standin(dataset, maker): times its samples. */
static PyObject *py_loader_standin(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *dataset, *maker;
    if (!PyArg_ParseTuple(args, "OO!", &dataset, maker_type, &maker))
        return NULL;
    return dataset_standin(dataset, (struct maker *)maker);
}

/* loader_step(callable, maker, name, place, phase): times a transform. */
static PyObject *py_loader_step(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *callable, *maker, *phase_object;
    const char *name;
    unsigned place;
    if (!PyArg_ParseTuple(args, "OO!sIO", &callable, maker_type, &maker, &name, &place,
                          &phase_object))
        return NULL;
    const int phase = phase_from(phase_object);
    if (phase < 0)
        return NULL;
    struct maker *m = (struct maker *)maker;
    struct loader_sum_row *row = book_sum(m->loader, LOADER_TRANSFORM, name, place);
    if (!row) {
        PyErr_SetString(PyExc_OSError, "no room for another transform");
        return NULL;
    }
    struct sonde_site *site = layer_site(name, phase, "transform");
    return step_standin(callable, m, row, site);
}

static PyObject *py_loader_is_standin(PyObject *module, PyObject *o)
{
    (void)module;
    return PyBool_FromLong(standin_target(o) != NULL);
}

static PyObject *py_ticks(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(sonde_ticks());
}

static PyObject *py_process_role(PyObject *module, PyObject *role)
{
    (void)module;
    const char *text = PyUnicode_Check(role) ? PyUnicode_AsUTF8AndSize(role, NULL)
                                             : NULL;
    if (!text)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "a str");
    sonde_process_role(text);
    return new_none();
}

static PyMethodDef functions[] = {
    { "loader_open", py_loader_open, METH_NOARGS, NULL },
    { "loader_new", py_loader_new, METH_VARARGS, NULL },
    { "loader_objects", py_loader_objects, METH_VARARGS, NULL },
    { "loader_standin", py_loader_standin, METH_VARARGS, NULL },
    { "loader_step", py_loader_step, METH_VARARGS, NULL },
    { "loader_is_standin", py_loader_is_standin, METH_O, NULL },
    { "loader_tensor", py_loader_tensor, METH_O, NULL },
    { "watch_card", py_watch_card, METH_O, NULL },
    { "ticks", py_ticks, METH_NOARGS, NULL },
    { "process_role", py_process_role, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};

int loaders_init(PyObject *module)
{
    highs_init();
    return PyModule_AddFunctions(module, functions) == 0 && maker_init(module) == 0 &&
                   proxies_init(module) == 0 && making_init(module) == 0 &&
                   fetches_init(module) == 0 && batch_init() == 0 &&
                   rows_init(module) == 0
               ? 0
               : -1;
}
