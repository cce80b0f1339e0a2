/* proxies.c: stand-ins for a program's data set, iterator or transform.
 *
 * One type: it times being called, subscripted or asked for the next, and answers
 * everything else as what it stands for would: attributes, class, truth, length, equality,
 * representation. Pickled or copied it becomes what it stands for.
 */
#include "maker.h"

static PyTypeObject *proxy_type;

struct proxy {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *target;
    struct maker *maker;
    struct loader_sum_row *row; /* of a transform; NULL: a data set */
    struct sonde_site *site;
};

PyObject *standin_target(PyObject *o)
{
    return Py_TYPE(o) == proxy_type ? ((struct proxy *)o)->target : NULL;
}

static PyObject *target_of(PyObject *self)
{
    return ((struct proxy *)self)->target;
}

/* ---- Timed ---------------------------------------------------------------------------- */

static bool is_timed(const struct proxy *p)
{
    const struct maker *m = p->maker;
    return m->making && m->look && maker_live(m);
}

static PyObject *proxy_subscript(PyObject *self, PyObject *index)
{
    struct proxy *p = (struct proxy *)self;
    uint64_t start;
    if (p->row || !is_timed(p) || !maker_sample_begins(p->maker, &start))
        return PyObject_GetItem(p->target, index);
    PyObject *sample = PyObject_GetItem(p->target, index);
    maker_sample_ends(p->maker, start, p->target, index, sample);
    return sample;
}

static PyObject *proxy_next(PyObject *self)
{
    struct proxy *p = (struct proxy *)self;
    uint64_t start;
    if (p->row || !is_timed(p) || !maker_sample_begins(p->maker, &start))
        return PyIter_Next(p->target);
    PyObject *sample = PyIter_Next(p->target);
    maker_sample_ends(p->maker, start, p->target, Py_None, sample);
    return sample;
}

/* Counts a call that began at `start`; keeps the exception there may be. */
static inline void step_done(const struct proxy *p, uint64_t start)
{
    end_zone(p->site);
    maker_step(p->maker, p->row, sonde_ticks() - start);
}

static PyObject *proxy_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct proxy *p = (struct proxy *)self;
    if (!p->row || !is_timed(p))
        return PyObject_Call(p->target, args, kwargs);
    sonde_begin_on_(p->site);
    const uint64_t start = sonde_ticks();
    PyObject *answer = PyObject_Call(p->target, args, kwargs);
    step_done(p, start);
    return answer;
}

#ifndef Py_LIMITED_API
static PyObject *proxy_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf,
                                  PyObject *kwnames)
{
    struct proxy *p = (struct proxy *)self;
    if (!p->row || !is_timed(p))
        return PyObject_Vectorcall(p->target, args, nargsf, kwnames);
    sonde_begin_on_(p->site);
    const uint64_t start = sonde_ticks();
    PyObject *answer = PyObject_Vectorcall(p->target, args, nargsf, kwnames);
    step_done(p, start);
    return answer;
}
#endif

/* ---- As the target would --------------------------------------------------------------- */

/* Unpickled and copied without us: operator.getitem((target,), 0). */
static PyObject *proxy_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    static PyObject *getitem;
    PyObject *function = imported(&getitem, "operator", "getitem");
    return function ? Py_BuildValue("O((O)i)", function, target_of(self), 0) : NULL;
}

static PyObject *proxy_getattr(PyObject *self, PyObject *name)
{
    if (PyUnicode_CompareWithASCIIString(name, "__reduce_ex__") == 0 ||
        PyUnicode_CompareWithASCIIString(name, "__reduce__") == 0)
        return PyObject_GenericGetAttr(self, name);
    return PyObject_GetAttr(target_of(self), name);
}

static int proxy_setattr(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(target_of(self), name, value);
}

static PyObject *proxy_repr(PyObject *self)
{
    return PyObject_Repr(target_of(self));
}

static PyObject *proxy_str(PyObject *self)
{
    return PyObject_Str(target_of(self));
}

static Py_hash_t proxy_hash(PyObject *self)
{
    return PyObject_Hash(target_of(self));
}

static PyObject *proxy_compare(PyObject *self, PyObject *other, int op)
{
    PyObject *theirs = standin_target(other);
    return PyObject_RichCompare(target_of(self), theirs ? theirs : other, op);
}

static int proxy_true(PyObject *self)
{
    return PyObject_IsTrue(target_of(self));
}

static Py_ssize_t proxy_length(PyObject *self)
{
    return PyObject_Size(target_of(self));
}

static int proxy_contains(PyObject *self, PyObject *o)
{
    return PySequence_Contains(target_of(self), o);
}

static int proxy_store(PyObject *self, PyObject *key, PyObject *value)
{
    return value ? PyObject_SetItem(target_of(self), key, value)
                 : PyObject_DelItem(target_of(self), key);
}

/* An iterator's stand-in is asked for itself; a data set's for an iterator. */
static PyObject *proxy_iter(PyObject *self)
{
    PyObject *target = target_of(self);
    PyObject *iterator = PyObject_GetIter(target);
    if (iterator != target)
        return iterator;
    Py_DECREF(iterator);
    return new_ref(self);
}

/* ---- The object ------------------------------------------------------------------------ */

PyObject *step_standin(PyObject *callable, struct maker *maker,
                       struct loader_sum_row *row, struct sonde_site *site)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(proxy_type, Py_tp_alloc);
    struct proxy *p = (struct proxy *)alloc(proxy_type, 0);
    if (!p)
        return NULL;
#ifndef Py_LIMITED_API
    p->call = proxy_vectorcall;
#endif
    p->target = new_ref(callable);
    p->maker = (struct maker *)new_ref((PyObject *)maker);
    p->row = row;
    p->site = site;
    return (PyObject *)p;
}

PyObject *dataset_standin(PyObject *dataset, struct maker *maker)
{
    return step_standin(dataset, maker, NULL, NULL);
}

static int proxy_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((struct proxy *)self)->target);
    Py_VISIT(((struct proxy *)self)->maker);
    return 0;
}

static int proxy_clear(PyObject *self)
{
    Py_CLEAR(((struct proxy *)self)->target);
    return 0;
}

static void proxy_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)proxy_clear(self);
    Py_DECREF((PyObject *)((struct proxy *)self)->maker);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef proxy_methods[] = {
    { "__reduce__", proxy_reduce, METH_NOARGS, NULL },
    { "__reduce_ex__", proxy_reduce, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};
static PyMemberDef proxy_members[] = {
#ifndef Py_LIMITED_API
    { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct proxy, call), READONLY,
      NULL },
#endif
    { NULL, 0, 0, 0, NULL },
};
static PyType_Slot proxy_slots[] = {
    { Py_tp_dealloc, proxy_dealloc },     { Py_tp_traverse, proxy_traverse },
    { Py_tp_clear, proxy_clear },         { Py_tp_call, proxy_call },
    { Py_tp_getattro, proxy_getattr },    { Py_tp_setattro, proxy_setattr },
    { Py_tp_repr, proxy_repr },           { Py_tp_str, proxy_str },
    { Py_tp_hash, proxy_hash },           { Py_tp_richcompare, proxy_compare },
    { Py_tp_iter, proxy_iter },           { Py_tp_iternext, proxy_next },
    { Py_nb_bool, proxy_true },           { Py_mp_length, proxy_length },
    { Py_mp_subscript, proxy_subscript }, { Py_mp_ass_subscript, proxy_store },
    { Py_sq_contains, proxy_contains },   { Py_tp_methods, proxy_methods },
    { Py_tp_members, proxy_members },     { 0, NULL },
};
#ifdef Py_LIMITED_API
enum { VECTORCALL = 0 };
#else
enum { VECTORCALL = Py_TPFLAGS_HAVE_VECTORCALL };
#endif
static PyType_Spec proxy_spec = {
    .name = "sonde._sonde.StandIn",
    .basicsize = sizeof(struct proxy),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | VECTORCALL,
    .slots = proxy_slots,
};

int proxies_init(PyObject *module)
{
    proxy_type = add_type(module, &proxy_spec);
    return proxy_type ? 0 : -1;
}
