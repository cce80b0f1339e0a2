/* watched.c: somebody else's callable, watched without standing in its way.
 *
 * A Watched takes the place of a function in a module, a class or an object. It records a
 * zone around each call, counts calls, and may tell Python code before and after. There is
 * no Python frame of ours while the function runs, so tracebacks are what they were. It
 * binds as functions do, and everything one may ask of it (name, signature, source) is
 * answered by the function itself.
 *
 * Whatever goes wrong in what is told is swallowed and handed to on_problem().
 */
#include "module.h"

#include "torch.h"

struct watched {
    PyObject_HEAD
    struct sonde_site *site; /* NULL: no zone */
    PyObject *function, *before, *after;
    PyObject *told; /* called with the arguments of calls that went well */
    PyObject *dict, *weak;
    unsigned long long calls;
    int alone; /* calls of modules inside are part of it, not zones of their own */
};

/* ---- Telling --------------------------------------------------------------------- */

static PyObject *problem_handler;

PyObject *py_on_problem(PyObject *module, PyObject *handler)
{
    (void)module;
    PyObject *old = problem_handler;
    problem_handler = new_ref(handler);
    Py_XDECREF(old);
    return new_none();
}

void swallow(const char *where)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!type)
        return;
    PyErr_NormalizeException(&type, &value, &traceback);
    if (problem_handler && problem_handler != Py_None) {
        PyObject *answer = PyObject_CallFunction(problem_handler, "sO", where,
                                                 value ? value : Py_None);
        Py_XDECREF(answer);
        PyErr_Clear();
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

void tell(PyObject *callable, PyObject *argument, const char *where)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *answer = PyObject_CallFunctionObjArgs(callable, argument, NULL);
    Py_XDECREF(answer);
    if (!answer)
        swallow(where);
    PyErr_Restore(type, value, traceback);
}

/* ---- Calling --------------------------------------------------------------------- */

static PyObject *watched_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct watched *w = (struct watched *)self;
    struct sonde_site *site = sonde_on_() ? w->site : NULL;
    w->calls++;
    if (w->before)
        tell(w->before, args, "before");
    if (site)
        phase_begin(site);
    torch_alone += (unsigned)w->alone;
    PyObject *answer = PyObject_Call(w->function, args, kwargs);
    torch_alone -= (unsigned)w->alone;
    if (site)
        phase_end(site);
    if (w->told && answer)
        tell(w->told, args, "told");
    if (w->after)
        tell(w->after, answer ? answer : Py_None, "after");
    return answer;
}

static PyObject *watched_get(PyObject *self, PyObject *instance, PyObject *type)
{
    (void)type;
    return instance && instance != Py_None ? bound_method(self, instance)
                                           : new_ref(self);
}

/* What is not ours is the function's: __code__, __wrapped__ by others, __self__ … */
static PyObject *watched_getattr(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();
    return PyObject_GetAttr(((struct watched *)self)->function, name);
}

/* ---- The type -------------------------------------------------------------------- */

static PyObject *given(PyObject *o)
{
    return o && o != Py_None ? new_ref(o) : NULL;
}

/* The type has these as well, and would be asked before the function. */
static void take_names(struct watched *w)
{
    static const char *const names[] = { "__module__", "__doc__", "__name__",
                                         "__qualname__" };
    w->dict = PyDict_New();
    for (size_t i = 0; w->dict && i < sizeof names / sizeof *names; i++) {
        PyObject *value = PyObject_GetAttrString(w->function, names[i]);
        if (value)
            (void)PyDict_SetItemString(w->dict, names[i], value);
        Py_XDECREF(value);
        PyErr_Clear();
    }
}

static PyObject *watched_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "function", "zone", "before", "after",
                             "alone",    "told", NULL };
    PyObject *function, *zone = NULL, *before = NULL, *after = NULL, *told = NULL;
    int alone = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOpO:Watched", names, &function,
                                     &zone, &before, &after, &alone, &told))
        return NULL;
    struct sonde_site *site = NULL;
    if (zone && zone != Py_None && !(site = site_from(zone)))
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct watched *w = (struct watched *)alloc(type, 0);
    if (!w)
        return NULL;
    w->site = site;
    w->function = new_ref(function);
    take_names(w);
    w->before = given(before);
    w->after = given(after);
    w->told = given(told);
    w->alone = alone;
    return (PyObject *)w;
}

static int watched_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct watched *w = (struct watched *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(w->function);
    Py_VISIT(w->before);
    Py_VISIT(w->after);
    Py_VISIT(w->told);
    Py_VISIT(w->dict);
    return 0;
}

static int watched_clear(PyObject *self)
{
    struct watched *w = (struct watched *)self;
    Py_CLEAR(w->function);
    Py_CLEAR(w->before);
    Py_CLEAR(w->after);
    Py_CLEAR(w->told);
    Py_CLEAR(w->dict);
    return 0;
}

static void watched_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((struct watched *)self)->weak)
        PyObject_ClearWeakRefs(self);
    (void)watched_clear(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* By name, as functions are pickled; copies are the same object. */
static PyObject *watched_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *watched_copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return new_ref(self);
}

static PyObject *watched_repr(PyObject *self)
{
    return PyObject_Repr(((struct watched *)self)->function);
}

static PyMethodDef watched_methods[] = {
    { "__reduce__", watched_reduce, METH_NOARGS, NULL },
    { "__copy__", watched_copy, METH_NOARGS, NULL },
    { "__deepcopy__", watched_copy, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};
static PyMemberDef watched_members[] = {
    { "__dictoffset__", T_PYSSIZET, offsetof(struct watched, dict), READONLY, NULL },
    { "__weaklistoffset__", T_PYSSIZET, offsetof(struct watched, weak), READONLY,
      NULL },
    { "__wrapped__", T_OBJECT, offsetof(struct watched, function), READONLY, NULL },
    { "calls", T_ULONGLONG, offsetof(struct watched, calls), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};
static PyGetSetDef watched_getset[] = {
    { "__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot watched_slots[] = {
    { Py_tp_new, watched_new },           { Py_tp_dealloc, watched_dealloc },
    { Py_tp_traverse, watched_traverse }, { Py_tp_clear, watched_clear },
    { Py_tp_call, watched_call },         { Py_tp_descr_get, watched_get },
    { Py_tp_getattro, watched_getattr },  { Py_tp_repr, watched_repr },
    { Py_tp_methods, watched_methods },   { Py_tp_members, watched_members },
    { Py_tp_getset, watched_getset },     { 0, NULL },
};
static PyType_Spec watched_spec = {
    .name = "sonde._sonde.Watched",
    .basicsize = sizeof(struct watched),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = watched_slots,
};

static PyTypeObject *watched_type;

bool watched_check(PyObject *o)
{
    return Py_TYPE(o) == watched_type;
}

uint64_t watched_calls(PyObject *watched)
{
    return ((struct watched *)watched)->calls;
}

int watched_init(PyObject *module)
{
    watched_type = add_type(module, &watched_spec);
    return watched_type ? 0 : -1;
}
