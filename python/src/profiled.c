/* profiled.c: @sonde.profile of a plain function.
 *
 * A callable that records a zone around each call. It binds as functions do (methods),
 * carries the function's attributes in its own dictionary (functools.update_wrapper fills
 * it) and pickles by name, so that decorated functions travel to worker processes.
 */
#include "module.h"

struct profiled {
    PyObject_HEAD
    vectorcallfunc call;
    struct sonde_site *site;
    PyObject *function, *zone;
    PyObject *dict, *weak;
};

/* The function records its zone where it runs: a plain frame, never suspended. */
#ifndef Py_LIMITED_API
/* Python functions are called directly; who called us checks the result. */
static inline PyObject *call(const struct profiled *p, PyObject *const *args,
                             size_t nargsf, PyObject *kwnames)
{
    if (SONDE_LIKELY_(PyFunction_Check(p->function)))
        return ((PyFunctionObject *)p->function)
            ->vectorcall(p->function, args, nargsf, kwnames);
    return PyObject_Vectorcall(p->function, args, nargsf, kwnames);
}

static PyObject *profiled_vectorcall(PyObject *self, PyObject *const *args,
                                     size_t nargsf, PyObject *kwnames)
{
    struct profiled *p = (struct profiled *)self;
    if (!sonde_on_())
        return call(p, args, nargsf, kwnames);
    struct sonde_site *site = p->site;
    sonde_begin_on_(site);
    PyObject *answer = call(p, args, nargsf, kwnames);
    sonde_end_on_(site);
    return answer;
}
#endif

static PyObject *profiled_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct profiled *p = (struct profiled *)self;
    if (!sonde_on_())
        return PyObject_Call(p->function, args, kwargs);
    sonde_begin_on_(p->site);
    PyObject *answer = PyObject_Call(p->function, args, kwargs);
    sonde_end_on_(p->site);
    return answer;
}

static PyObject *profiled_get(PyObject *self, PyObject *instance, PyObject *type)
{
    (void)type;
    return instance ? bound_method(self, instance) : new_ref(self);
}

static PyObject *profiled_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "function", "zone", NULL };
    PyObject *function, *zone;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!:Profiled", names, &function,
                                     zone_type, &zone))
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct profiled *p = (struct profiled *)alloc(type, 0);
    if (!p)
        return NULL;
#ifndef Py_LIMITED_API
    p->call = profiled_vectorcall;
#endif
    p->site = ((struct zone *)zone)->site;
    p->function = new_ref(function);
    p->zone = new_ref(zone);
    return (PyObject *)p;
}

static int profiled_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct profiled *p = (struct profiled *)self;
#if PY_VERSION_HEX >= 0x03090000
    Py_VISIT(Py_TYPE(self));
#endif
    Py_VISIT(p->function);
    Py_VISIT(p->zone);
    Py_VISIT(p->dict);
    return 0;
}

static int profiled_clear(PyObject *self)
{
    struct profiled *p = (struct profiled *)self;
    Py_CLEAR(p->function);
    Py_CLEAR(p->zone);
    Py_CLEAR(p->dict);
    return 0;
}

static void profiled_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((struct profiled *)self)->weak)
        PyObject_ClearWeakRefs(self);
    (void)profiled_clear(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* By name, as functions are pickled; copies are the same object. */
static PyObject *profiled_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *profiled_copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return new_ref(self);
}

static PyObject *profiled_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<sonde.profile of %R>",
                                ((struct profiled *)self)->function);
}

static PyMethodDef profiled_methods[] = {
    { "__reduce__", profiled_reduce, METH_NOARGS, NULL },
    { "__copy__", profiled_copy, METH_NOARGS, NULL },
    { "__deepcopy__", profiled_copy, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};
static PyMemberDef profiled_members[] = {
#ifndef Py_LIMITED_API
    { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct profiled, call), READONLY,
      NULL },
#endif
    { "__dictoffset__", T_PYSSIZET, offsetof(struct profiled, dict), READONLY, NULL },
    { "__weaklistoffset__", T_PYSSIZET, offsetof(struct profiled, weak), READONLY,
      NULL },
    { "zone", T_OBJECT, offsetof(struct profiled, zone), READONLY,
      "The zone each call records." },
    { NULL, 0, 0, 0, NULL },
};
static PyGetSetDef profiled_getset[] = {
    { "__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot profiled_slots[] = {
    { Py_tp_new, profiled_new },
    { Py_tp_dealloc, profiled_dealloc },
    { Py_tp_traverse, profiled_traverse },
    { Py_tp_clear, profiled_clear },
    { Py_tp_call, profiled_call },
    { Py_tp_descr_get, profiled_get },
    { Py_tp_repr, profiled_repr },
    { Py_tp_methods, profiled_methods },
    { Py_tp_members, profiled_members },
    { Py_tp_getset, profiled_getset },
    { 0, NULL },
};

#ifdef Py_LIMITED_API
enum { VECTORCALL = 0 };
#else
enum { VECTORCALL = Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR };
#endif
static PyType_Spec profiled_spec = {
    .name = "sonde._sonde.Profiled",
    .basicsize = sizeof(struct profiled),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | VECTORCALL,
    .slots = profiled_slots,
};

int profiled_init(PyObject *module)
{
    PyTypeObject *type = add_type(module, &profiled_spec);
    Py_XDECREF((PyObject *)type);
    return type ? 0 : -1;
}
