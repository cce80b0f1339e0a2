/* operation.c: struct sonde_operation as a Python object.
 *
 * sonde/_operation.py builds the class people use on top: this is the record alone.
 */
#include "module.h"

#include <math.h>
#include <string.h>

struct operation {
    PyObject_HEAD
    struct sonde_operation record;
    PyObject *name; /* str; sonde_operation_disabled() borrows its text */
    bool begun, ended;
};

static struct sonde_operation *record_of(PyObject *self)
{
    return &((struct operation *)self)->record;
}

static PyObject *operation_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "name", NULL };
    PyObject *name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U:Operation", names, &name))
        return NULL;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct operation *op = text ? (struct operation *)alloc(type, 0) : NULL;
    if (!op)
        return NULL;
    op->name = new_ref(name);
    sonde_operation_disabled(&op->record, text);
    return (PyObject *)op;
}

/* begin(phase=None, component=None, tags=None) */
static PyObject *operation_begin(PyObject *self, PyObject *args)
{
    struct operation *op = (struct operation *)self;
    PyObject *phase = Py_None;
    const char *component = NULL, *tags = NULL;
    if (!PyArg_ParseTuple(args, "|Ozz:begin", &phase, &component, &tags))
        return NULL;
    int number = phase_from(phase);
    const char *name = PyUnicode_AsUTF8AndSize(op->name, NULL);
    if (number < 0 || !name)
        return NULL;
    if (op->begun && !op->ended) {
        PyErr_Format(PyExc_RuntimeError, "operation %R is open already", op->name);
        return NULL;
    }
    op->begun = true;
    op->ended = false;
    sonde_operation_begin(&op->record, name, number, component, tags);
    return new_none();
}

static void finish(struct operation *op)
{
    if (op->begun && !op->ended)
        sonde_operation_end(&op->record);
    op->ended = true;
}

static PyObject *operation_end(PyObject *self, PyObject *unused)
{
    (void)unused;
    finish((struct operation *)self);
    return new_none();
}

static PyObject *operation_end_if_memory(PyObject *self, PyObject *threshold)
{
    struct operation *op = (struct operation *)self;
    double mb = PyFloat_AsDouble(threshold);
    if (mb == -1 && PyErr_Occurred())
        return NULL;
    int over = 0;
    if (op->begun && !op->ended)
        over = sonde_operation_end_if_memory(&op->record, mb);
    op->ended = true;
    return PyBool_FromLong(over);
}

static PyObject *operation_value(PyObject *self, PyObject *args)
{
    const char *name;
    double value;
    if (!PyArg_ParseTuple(args, "sd:value", &name, &value))
        return NULL;
    sonde_operation_value(record_of(self), name, value);
    return new_none();
}

static PyObject *operation_elapsed(PyObject *self, PyObject *unused)
{
    (void)unused;
    return float_or_none(sonde_operation_elapsed(record_of(self)));
}

/* An open operation is on a list of the recorder and its zone is open: end it before
 * the memory goes. */
static void operation_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct operation *op = (struct operation *)self;
    finish(op);
    Py_CLEAR(op->name);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *get_number(PyObject *self, void *offset)
{
    double value;
    memcpy(&value, (const char *)record_of(self) + (size_t)offset, sizeof value);
    return float_or_none(value);
}

static PyObject *get_exact(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(record_of(self)->mem_peak_exact);
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return new_ref(((struct operation *)self)->name);
}

#define NUMBER(field, doc)                                                             \
    {                                                                                  \
#field, get_number, NULL, doc, (void *)offsetof(struct sonde_operation, field) \
    }
static PyGetSetDef operation_getset[] = {
    { "name", get_name, NULL, "The name.", NULL },
    NUMBER(start_s, "Begin, seconds since the epoch."),
    NUMBER(duration_s, "Wall time; None while open."),
    NUMBER(cpu_s, "CPU time of the thread."),
    NUMBER(process_cpu_s, "CPU time of the process."),
    NUMBER(mem_before_mb, "Resident memory at the begin, MiB."),
    NUMBER(mem_after_mb, "Resident memory at the end, MiB."),
    NUMBER(mem_peak_mb, "Highest resident memory in between, MiB."),
    { "mem_peak_exact", get_exact, NULL,
      "True when the peak is the kernel's own mark, False when it was sampled.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyMethodDef operation_methods[] = {
    { "begin", operation_begin, METH_VARARGS, NULL },
    { "end", operation_end, METH_NOARGS, NULL },
    { "end_if_memory", operation_end_if_memory, METH_O, NULL },
    { "value", operation_value, METH_VARARGS, NULL },
    { "elapsed", operation_elapsed, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};
static PyType_Slot operation_slots[] = {
    { Py_tp_new, operation_new },
    { Py_tp_dealloc, operation_dealloc },
    { Py_tp_getset, operation_getset },
    { Py_tp_methods, operation_methods },
    { 0, NULL },
};
static PyType_Spec operation_spec = {
    .name = "sonde._sonde.Operation",
    .basicsize = sizeof(struct operation),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = operation_slots,
};

int operation_init(PyObject *module)
{
    PyTypeObject *type = add_type(module, &operation_spec);
    Py_XDECREF((PyObject *)type);
    return type ? 0 : -1;
}
