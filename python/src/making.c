/* making.c: stand-ins, put in place while a batch is made and taken away after it.
 *
 * The hook on fetcher.fetch does so. A place whose stand-in is no longer there when it is
 * to be taken away was changed by the program meanwhile, and is left alone; so is one
 * that holds somebody else's stand-in (two threads with one data set).
 */
#include "hook.h"
#include "maker.h"
#include "rows.h"

#include <stdlib.h>

enum {
    MAX_SLOTS = 256,
    MASKS_FIRST = 16, /* batches whose masks are counted, … */
    MASKS_EVERY = 16, /* … then one in so many */
};

/* A place that holds something of the program: list[index] or dict[key]. */
struct slot {
    PyObject *container, *key; /* key NULL: a list */
    Py_ssize_t index;
    PyObject *original, *standin;
    bool in_place;
};

struct making {
    PyObject_HEAD
    struct maker *maker;
    PyObject *dataset, *standin; /* of fetcher.dataset; NULL: left as it is */
    bool standing;
    struct slot *slots;
    unsigned count;
};

static PyTypeObject *making_type;
static PyObject *name_sonde, *name_dataset;

/* ---- Places ------------------------------------------------------------------------------ */

/* Borrowed; NULL when the place is gone. */
static PyObject *slot_look(const struct slot *s)
{
    if (s->key)
        return PyDict_GetItemWithError(s->container, s->key);
    return s->index < PyList_Size(s->container) ? PyList_GetItem(s->container, s->index)
                                                : NULL;
}

static void slot_store(const struct slot *s, PyObject *o)
{
    if (s->key)
        (void)PyDict_SetItem(s->container, s->key, o);
    else
        (void)PyList_SetItem(s->container, s->index, new_ref(o));
}

static void slots_in(struct making *k)
{
    for (unsigned i = 0; i < k->count; i++) {
        struct slot *s = &k->slots[i];
        if (slot_look(s) != s->original)
            continue;
        slot_store(s, s->standin);
        s->in_place = true;
    }
}

static void slots_out(struct making *k)
{
    for (unsigned i = 0; i < k->count; i++) {
        struct slot *s = &k->slots[i];
        if (s->in_place && slot_look(s) == s->standin)
            slot_store(s, s->original);
        s->in_place = false;
    }
}

/* ---- The hook on fetch(indices) ------------------------------------------------------------ */

static struct making *making_of(PyObject *fetcher)
{
    PyObject *o = PyObject_GetAttr(fetcher, name_sonde);
    if (!o) {
        PyErr_Clear();
        return NULL;
    }
    Py_DECREF(o); /* the fetcher holds it */
    return Py_TYPE(o) == making_type ? (struct making *)o : NULL;
}

static void stand(struct making *k, PyObject *fetcher, bool standing)
{
    if (!k->standin || k->standing == standing)
        return;
    if (PyObject_SetAttr(fetcher, name_dataset, standing ? k->standin : k->dataset) ==
        0)
        k->standing = standing;
}

static bool making_before(struct hook *h, struct hook_call *call)
{
    (void)h;
    struct making *k = call->count > 0 ? making_of(call->args[0]) : NULL;
    if (!k || !maker_live(k->maker) || k->maker->making)
        return false;
    call->owner = new_ref((PyObject *)k);
    maker_batch_begins(k->maker);
    stand(k, call->args[0], k->maker->look);
    if (k->maker->look)
        slots_in(k);
    PyObject *indices = call->count > 1 ? call->args[1] : NULL;
    k->maker->samples = indices && (PyList_Check(indices) || PyTuple_Check(indices))
                            ? (uint32_t)PyObject_Size(indices)
                            : 1;
    return true;
}

static void making_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)h;
    struct making *k = (struct making *)call->owner;
    slots_out(k);
    const bool stopped = call->raised &&
                         PyErr_GivenExceptionMatches(call->raised, PyExc_StopIteration);
    maker_batch_ends(k->maker, result != NULL, !result && !stopped);
    if (result &&
        (k->maker->batches <= MASKS_FIRST || k->maker->batches % MASKS_EVERY == 0))
        rows_mask(result);
}

const struct hook_kind making_kind = { "making", making_before, making_after };

/* ---- The object ------------------------------------------------------------------------------ */

/* Making(maker, dataset or None, standin or None, slots): slots is a list of
 * (container, key, original, standin). */
static int take_slot(struct slot *s, PyObject *tuple)
{
    PyObject *container, *key, *original, *standin;
    if (!PyArg_ParseTuple(tuple, "OOOO", &container, &key, &original, &standin))
        return -1;
    *s = (struct slot){ .index = -1 };
    if (PyList_Check(container))
        s->index = PyLong_AsSsize_t(key);
    else if (PyDict_Check(container))
        s->key = new_ref(key);
    else
        PyErr_SetString(PyExc_TypeError, "a slot is in a list or a dict");
    if (PyErr_Occurred())
        return -1;
    s->container = new_ref(container);
    s->original = new_ref(original);
    s->standin = new_ref(standin);
    return 0;
}

static void release_slots(struct making *k)
{
    for (unsigned i = 0; i < k->count; i++) {
        struct slot *s = &k->slots[i];
        Py_XDECREF(s->container);
        Py_XDECREF(s->key);
        Py_XDECREF(s->original);
        Py_XDECREF(s->standin);
    }
    free(k->slots);
    k->slots = NULL;
    k->count = 0;
}

static int take_slots(struct making *k, PyObject *list)
{
    Py_ssize_t n = PyList_Size(list);
    if (n < 0)
        return -1;
    if (n > MAX_SLOTS)
        n = MAX_SLOTS;
    k->slots = calloc((size_t)n + 1, sizeof *k->slots);
    for (Py_ssize_t i = 0; k->slots && i < n; i++) {
        if (take_slot(&k->slots[i], PyList_GetItem(list, i)) < 0)
            return -1;
        k->count++;
    }
    return 0;
}

static PyObject *making_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *maker, *dataset, *standin, *slots;
    if (!PyArg_ParseTuple(args, "O!OOO:Making", maker_type, &maker, &dataset, &standin,
                          &slots))
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct making *k = (struct making *)alloc(type, 0);
    if (!k)
        return NULL;
    k->maker = (struct maker *)new_ref(maker);
    k->dataset = standin == Py_None ? NULL : new_ref(dataset);
    k->standin = standin == Py_None ? NULL : new_ref(standin);
    if (take_slots(k, slots) < 0) {
        Py_DECREF((PyObject *)k);
        return NULL;
    }
    return (PyObject *)k;
}

static PyObject *making_maker(PyObject *self, void *unused)
{
    (void)unused;
    return new_ref((PyObject *)((struct making *)self)->maker);
}

static int making_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct making *k = (struct making *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(k->dataset);
    Py_VISIT(k->standin);
    for (unsigned i = 0; i < k->count; i++) {
        Py_VISIT(k->slots[i].container);
        Py_VISIT(k->slots[i].original);
        Py_VISIT(k->slots[i].standin);
    }
    return 0;
}

static int making_clear(PyObject *self)
{
    struct making *k = (struct making *)self;
    Py_CLEAR(k->dataset);
    Py_CLEAR(k->standin);
    release_slots(k);
    return 0;
}

static void making_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)making_clear(self);
    Py_XDECREF((PyObject *)((struct making *)self)->maker);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyGetSetDef making_getset[] = {
    { "maker", making_maker, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot making_slots[] = {
    { Py_tp_new, making_new },           { Py_tp_dealloc, making_dealloc },
    { Py_tp_traverse, making_traverse }, { Py_tp_clear, making_clear },
    { Py_tp_getset, making_getset },     { 0, NULL },
};
static PyType_Spec making_spec = {
    .name = "sonde._sonde.Making",
    .basicsize = sizeof(struct making),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = making_slots,
};

int making_init(PyObject *module)
{
    name_sonde = PyUnicode_InternFromString("_sonde");
    name_dataset = PyUnicode_InternFromString("dataset");
    making_type = add_type(module, &making_spec);
    return name_sonde && name_dataset && making_type ? 0 : -1;
}
