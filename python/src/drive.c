/* drive.c: run somebody's coroutine or generator and see when it waits.
 *
 * `await Drive(coroutine, span)` and `yield from Drive(generator, span)` give what the
 * coroutine or generator itself would give. Each time control goes in the span is resumed,
 * each time it comes out the span is suspended. With a zone besides, each stretch in
 * between is also a zone of the running thread: generators are driven by plain code, so
 * their stretches nest, and what they do belongs to a phase.
 */
#include "module.h"

struct drive {
    PyObject_HEAD
    PyObject *target, *span;
    struct sonde_site *slice; /* NULL: no zone for each stretch */
    int keep;                 /* the span goes on when the target has ended */
};

static PyObject *text_send, *text_throw, *text_close;
static PyObject *text_resume, *text_suspend, *text_end;

static int tell(PyObject *span, PyObject *what)
{
    PyObject *answer = PyObject_CallMethodObjArgs(span, what, NULL);
    Py_XDECREF(answer);
    return answer ? 0 : -1;
}

/* Calls the target's method between resume and suspend. The answer, an exception too,
 * is the target's. */
static PyObject *step(struct drive *d, PyObject *method, PyObject *const *args, int n)
{
    if (tell(d->span, text_resume) < 0)
        return NULL;
    if (d->slice)
        sonde_begin(d->slice);
    PyObject *answer = PyObject_CallMethodObjArgs(
        d->target, method, n > 0 ? args[0] : NULL, n > 1 ? args[1] : NULL,
        n > 2 ? args[2] : NULL, NULL);
    if (d->slice)
        end_zone(d->slice);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool over = !answer || method == text_close;
    (void)tell(d->span, over && !d->keep ? text_end : text_suspend);
    PyErr_Restore(type, value, traceback);
    return answer;
}

static PyObject *drive_send(PyObject *self, PyObject *value)
{
    return step((struct drive *)self, text_send, &value, 1);
}

static PyObject *drive_next(PyObject *self)
{
    PyObject *none = Py_None;
    return step((struct drive *)self, text_send, &none, 1);
}

static PyObject *drive_throw(PyObject *self, PyObject *args)
{
    PyObject *given[3] = { NULL, NULL, NULL };
    if (!PyArg_ParseTuple(args, "O|OO:throw", &given[0], &given[1], &given[2]))
        return NULL;
    return step((struct drive *)self, text_throw, given,
                given[2]   ? 3
                : given[1] ? 2
                           : 1);
}

static PyObject *drive_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    return step((struct drive *)self, text_close, NULL, 0);
}

static PyObject *drive_self(PyObject *self)
{
    return new_ref(self);
}

static PyObject *drive_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "target", "span", "slice", "keep", NULL };
    PyObject *target, *span, *slice = Py_None;
    int keep = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|Op:Drive", names, &target, &span,
                                     &slice, &keep))
        return NULL;
    struct sonde_site *site = slice == Py_None ? NULL : site_from(slice);
    if (!site && slice != Py_None)
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct drive *d = (struct drive *)alloc(type, 0);
    if (!d)
        return NULL;
    d->target = new_ref(target);
    d->span = new_ref(span);
    d->slice = site;
    d->keep = keep;
    return (PyObject *)d;
}

static int drive_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct drive *d = (struct drive *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(d->target);
    Py_VISIT(d->span);
    return 0;
}

static int drive_clear(PyObject *self)
{
    Py_CLEAR(((struct drive *)self)->target);
    Py_CLEAR(((struct drive *)self)->span);
    return 0;
}

static void drive_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)drive_clear(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef drive_methods[] = {
    { "send", drive_send, METH_O, NULL },
    { "throw", drive_throw, METH_VARARGS, NULL },
    { "close", drive_close, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};
static PyType_Slot drive_slots[] = {
    { Py_tp_new, drive_new },
    { Py_tp_dealloc, drive_dealloc },
    { Py_tp_traverse, drive_traverse },
    { Py_tp_clear, drive_clear },
    { Py_tp_iter, drive_self },
    { Py_tp_iternext, drive_next },
    { Py_am_await, drive_self },
    { Py_tp_methods, drive_methods },
    { 0, NULL },
};
static PyType_Spec drive_spec = {
    .name = "sonde._sonde.Drive",
    .basicsize = sizeof(struct drive),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = drive_slots,
};

int drive_init(PyObject *module)
{
    struct {
        PyObject **place;
        const char *text;
    } names[] = { { &text_send, "send" },       { &text_throw, "throw" },
                  { &text_close, "close" },     { &text_resume, "resume" },
                  { &text_suspend, "suspend" }, { &text_end, "end" } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(*names[i].place = PyUnicode_InternFromString(names[i].text)))
            return -1;
    PyTypeObject *type = add_type(module, &drive_spec);
    Py_XDECREF((PyObject *)type);
    return type ? 0 : -1;
}
