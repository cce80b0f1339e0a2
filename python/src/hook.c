/* hook.c: callables in front of others. See hook.h. */
#include "hook.h"

#include <string.h>

#include "torch.h"

PyTypeObject *hook_type;

/* ---- Python functions before and after ----------------------------------------------- */

/* Calls fn(first?, *args) and forgets what it says. */
static void call_python(PyObject *fn, PyObject *first, const struct hook_call *call)
{
    PyObject *args = PyTuple_New(call->count + (first != NULL));
    if (args) {
        if (first)
            (void)PyTuple_SetItem(args, 0, new_ref(first));
        for (Py_ssize_t i = 0; i < call->count; i++)
            (void)PyTuple_SetItem(args, i + (first != NULL), new_ref(call->args[i]));
        PyObject *answer = PyObject_CallObject(fn, args);
        Py_XDECREF(answer);
        Py_DECREF(args);
    }
    swallow("data loader");
}

static bool around_before(struct hook *h, struct hook_call *call)
{
    if (h->before)
        call_python(h->before, NULL, call);
    return h->after != NULL;
}

/* Only what came to a good end is of interest. */
static void around_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    if (result)
        call_python(h->after, result, call);
}

static const struct hook_kind around_kind = { "around", around_before, around_after };

/* ---- The call ------------------------------------------------------------------------ */

static bool begin_call(struct hook *h, struct hook_call *call)
{
    const bool after = h->kind->before(h, call);
    if (PyErr_Occurred())
        swallow(h->kind->name);
    return after;
}

static void end_call(struct hook *h, struct hook_call *call, PyObject *result)
{
    PyObject *type, *value, *traceback;
    if (result) {
        h->kind->after(h, call, result);
        if (PyErr_Occurred())
            swallow(h->kind->name);
    } else {
        PyErr_Fetch(&type, &value, &traceback);
        call->raised = type;
        h->kind->after(h, call, NULL);
        PyErr_Restore(type, value, traceback); /* also drops what `after` raised */
    }
    Py_XDECREF(call->owner);
}

#ifndef Py_LIMITED_API
static PyObject *hook_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf,
                                 PyObject *kwnames)
{
    struct hook *h = (struct hook *)self;
    struct hook_call call = { .args = args,
                              .count = PyVectorcall_NARGS(nargsf),
                              .keywords = kwnames };
    /* The offset flag would let the callee overwrite args[-1], which may be ours. */
    const size_t count = (size_t)call.count;
    const bool after = begin_call(h, &call);
    PyObject *result = PyObject_Vectorcall(h->function, args, count, kwnames);
    if (after)
        end_call(h, &call, result);
    return result;
}
#endif

static PyObject *hook_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    enum { SEEN = 8 };
    struct hook *h = (struct hook *)self;
    PyObject *seen[SEEN];
    const Py_ssize_t count = PyTuple_Size(args);
    struct hook_call call = { .args = seen,
                              .count = count < SEEN ? count : SEEN,
                              .keywords = kwargs };
    for (Py_ssize_t i = 0; i < call.count; i++)
        seen[i] = PyTuple_GetItem(args, i);
    const bool after = begin_call(h, &call);
    PyObject *result = PyObject_Call(h->function, args, kwargs);
    if (after)
        end_call(h, &call, result);
    return result;
}

/* ---- The object ---------------------------------------------------------------------- */

static PyObject *hook_get(PyObject *self, PyObject *instance, PyObject *type)
{
    (void)type;
    return instance ? bound_method(self, instance) : new_ref(self);
}

/* Our own dictionary has nothing: whoever asks means the function. */
static PyObject *hook_getattr(PyObject *self, PyObject *name)
{
    struct hook *h = (struct hook *)self;
    if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0)
        return new_ref(h->function);
    if (hook_getattr_special(name))
        return PyObject_GenericGetAttr(self, name);
    return PyObject_GetAttr(h->function, name);
}

int hook_getattr_special(PyObject *name)
{
    static const char *const ours[] = { "__get__", "__call__", "__reduce__",
                                        "__reduce_ex__" };
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (PyUnicode_CompareWithASCIIString(name, ours[i]) == 0)
            return 1;
    return 0;
}

static int hook_setattr(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((struct hook *)self)->function, name, value);
}

static PyObject *hook_repr(PyObject *self)
{
    return PyObject_Repr(((struct hook *)self)->function);
}

static const struct hook_kind *kind_named(const char *name)
{
    for (size_t i = 0; hook_kinds[i]; i++)
        if (strcmp(hook_kinds[i]->name, name) == 0)
            return hook_kinds[i];
    return strcmp(name, around_kind.name) == 0 ? &around_kind : NULL;
}

PyObject *hook_new(const struct hook_kind *kind, PyObject *function, PyObject *owner)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(hook_type, Py_tp_alloc);
    struct hook *h = (struct hook *)alloc(hook_type, 0);
    if (!h)
        return NULL;
#ifndef Py_LIMITED_API
    h->call = hook_vectorcall;
#endif
    h->kind = kind;
    h->function = new_ref(function);
    h->owner = owner ? new_ref(owner) : NULL;
    return (PyObject *)h;
}

static PyObject *optional(PyObject *o)
{
    return o && o != Py_None ? new_ref(o) : NULL;
}

/* Hook(function, kind="around", *, owner=None, before=None, after=None) */
static PyObject *hook_make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type;
    static char *names[] = { "function", "kind", "owner", "before", "after", NULL };
    PyObject *function, *owner = NULL, *before = NULL, *after = NULL;
    const char *kind = "around";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|s$OOO:Hook", names, &function,
                                     &kind, &owner, &before, &after))
        return NULL;
    const struct hook_kind *found = kind_named(kind);
    if (!found)
        return PyErr_Format(PyExc_ValueError, "no kind of hook is '%s'", kind);
    struct hook *h = (struct hook *)hook_new(found, function,
                                             owner == Py_None ? NULL : owner);
    if (h) {
        h->before = optional(before);
        h->after = optional(after);
    }
    return (PyObject *)h;
}

static int hook_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct hook *h = (struct hook *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(h->function);
    Py_VISIT(h->owner);
    Py_VISIT(h->before);
    Py_VISIT(h->after);
    return 0;
}

static int hook_clear(PyObject *self)
{
    struct hook *h = (struct hook *)self;
    Py_CLEAR(h->function);
    Py_CLEAR(h->owner);
    Py_CLEAR(h->before);
    Py_CLEAR(h->after);
    return 0;
}

static void hook_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((struct hook *)self)->weak)
        PyObject_ClearWeakRefs(self);
    (void)hook_clear(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* By name, as functions are pickled. */
static PyObject *hook_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(((struct hook *)self)->function, "__qualname__");
}

static PyMethodDef hook_methods[] = {
    { "__reduce__", hook_reduce, METH_NOARGS, NULL },
    { "__reduce_ex__", hook_reduce, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};
static PyMemberDef hook_members[] = {
#ifndef Py_LIMITED_API
    { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct hook, call), READONLY, NULL },
#endif
    { "__weaklistoffset__", T_PYSSIZET, offsetof(struct hook, weak), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};
static PyType_Slot hook_slots[] = {
    { Py_tp_new, hook_make },          { Py_tp_dealloc, hook_dealloc },
    { Py_tp_traverse, hook_traverse }, { Py_tp_clear, hook_clear },
    { Py_tp_call, hook_call },         { Py_tp_descr_get, hook_get },
    { Py_tp_getattro, hook_getattr },  { Py_tp_setattro, hook_setattr },
    { Py_tp_repr, hook_repr },         { Py_tp_methods, hook_methods },
    { Py_tp_members, hook_members },   { 0, NULL },
};
#ifdef Py_LIMITED_API
enum { VECTORCALL = 0 };
#else
enum { VECTORCALL = Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR };
#endif
static PyType_Spec hook_spec = {
    .name = "sonde._sonde.Hook",
    .basicsize = sizeof(struct hook),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | VECTORCALL,
    .slots = hook_slots,
};

int hook_init(PyObject *module)
{
    hook_type = add_type(module, &hook_spec);
    return hook_type ? 0 : -1;
}
