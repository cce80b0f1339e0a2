/* roots.c: the outermost call of a torch module on a thread is a zone.
 *
 * Which module is the root nobody says; it is the one that is called while no other is.
 * Hooks on all modules would double what a call costs, hooks on the root would travel with
 * pickles and copies of the model and change what torch.compile sees. So the call is seen
 * where the interpreter makes it: in the slot tp_call of the classes. Nothing that Python
 * code can look at changes: not the class, not its dictionary, not the instance; torch's
 * compilers trace the Python functions, which are the same as ever. A call inside another
 * costs a thread variable and a branch, about 2 ns.
 *
 * The same holds for tp_init: the outermost construction is the creation of a model.
 *
 * A module called without gradients is evaluation in evaluation mode, or with a batch that
 * was fetched for one; one that has nothing to switch (a loss) goes by the module called
 * before it.
 *
 * A zone of training says where its class is defined; one of evaluation where the call is:
 * the loop that evaluates is what people look for.
 *
 * Who sets __call__ of a class makes the interpreter fill the slot anew; then calls of
 * that class are not seen any more, and nothing else happens.
 */
#include "rows.h"
#include "torch.h"

enum kind { TRAINING, EVALUATING, CREATING, KINDS };
enum { TYPES = 1024 }; /* a power of two */
enum { LINES = 4 };    /* that evaluate with one class */

__thread unsigned torch_alone __attribute__((tls_model("initial-exec")));
static __thread int evaluating __attribute__((tls_model("initial-exec")));
/* The call that began last is one of a module that is trained. */
static __thread bool trains __attribute__((tls_model("initial-exec")));

static ternaryfunc
    plain_call; /* what the slot holds for every class written in Python */
static initproc plain_init;
static PyObject *root_type;                            /* torch.nn.Module */
static PyObject *describe, *grad_enabled, *first_call; /* callables from Python */
static PyObject *describe_call;
static PyObject *text_training, *text_parameters, *text_modules;
static PyObject *text_code, *text_lasti;
static unsigned long long counts[KINDS];
static uint64_t with_gradients, without_gradients;

/* ---- Sites by class --------------------------------------------------------------- */

/* A class that is gone is known by its weak reference, not by its address. */
static struct known {
    PyObject *type;  /* address only */
    PyObject *alive; /* weak reference */
    struct sonde_site *sites[KINDS];
    bool told;
    bool judged, plain; /* it has nothing to switch: a loss */
    struct line {
        PyObject *code; /* held: its address must stay its own; NULL none */
        long instruction;
        struct sonde_site *site; /* never NULL */
    } lines[LINES];
} table[TYPES];

static struct known *place_of(PyObject *type)
{
    return &table[((uintptr_t)type >> 5 ^ (uintptr_t)type >> 15) & (TYPES - 1)];
}

/* describe(type) -> three zones or None each. */
static void learn(struct known *k, PyObject *type)
{
    Py_XDECREF(k->alive);
    for (unsigned i = 0; i < LINES; i++)
        Py_CLEAR(k->lines[i].code);
    *k = (struct known){ .type = type, .alive = PyWeakref_NewRef(type, NULL) };
    PyObject *zones = PyObject_CallFunctionObjArgs(describe, type, NULL);
    for (Py_ssize_t i = 0; zones && k->alive && i < KINDS; i++) {
        PyObject *zone = PyTuple_GetItem(zones, i);
        if (zone && zone != Py_None)
            k->sites[i] = site_from(zone);
    }
    Py_XDECREF(zones);
    if (PyErr_Occurred())
        swallow("describing a module");
}

static bool refers_to(PyObject *weak, const PyObject *o)
{
#if PY_VERSION_HEX >= 0x030D0000 && !defined(Py_LIMITED_API)
    PyObject *held = NULL;
    (void)PyWeakref_GetRef(weak, &held);
    Py_XDECREF(held);
    return held == o;
#else
    return PyWeakref_GetObject(weak) == o;
#endif
}

static bool is_same(const struct known *k, PyObject *type)
{
    return k->type == type && k->alive && refers_to(k->alive, type);
}

static struct sonde_site *site_for(PyObject *type, enum kind kind)
{
    struct known *k = place_of(type);
    if (!is_same(k, type))
        learn(k, type);
    return k->sites[kind];
}

/* describe_call(type, frame) -> zone or None. */
static struct sonde_site *learn_line(PyObject *type, PyObject *frame)
{
    PyObject *zone = PyObject_CallFunctionObjArgs(describe_call, type, frame, NULL);
    struct sonde_site *site = zone && zone != Py_None ? site_from(zone) : NULL;
    Py_XDECREF(zone);
    if (PyErr_Occurred())
        swallow("describing a call of a module");
    return site;
}

/* Known by its code and the instruction that calls: no line is looked up but once. */
static struct sonde_site *site_of_line(struct known *k, PyObject *type, PyObject *frame,
                                       PyObject *code, long instruction)
{
    for (unsigned i = 0; i < LINES; i++) {
        struct line *l = &k->lines[i];
        if (l->code == code && l->instruction == instruction)
            return l->site;
        if (l->code)
            continue;
        struct sonde_site *site = learn_line(type, frame);
        *l = (struct line){ new_ref(code), instruction,
                            site ? site : k->sites[EVALUATING] };
        return l->site;
    }
    return k->sites[EVALUATING];
}

/* The site of the call that evaluates: the frame that is being executed is the caller's. */
static struct sonde_site *site_for_evaluation(PyObject *type)
{
    static PyObject *getframe;
    struct sonde_site *site = site_for(type, EVALUATING);
    PyObject *function = site && describe_call ? imported(&getframe, "sys", "_getframe")
                                               : NULL;
    PyObject *frame = function ? PyObject_CallObject(function, NULL) : NULL;
    PyObject *code = frame ? PyObject_GetAttr(frame, text_code) : NULL;
    PyObject *lasti = code ? PyObject_GetAttr(frame, text_lasti) : NULL;
    if (lasti)
        site = site_of_line(place_of(type), type, frame, code, PyLong_AsLong(lasti));
    Py_XDECREF(lasti);
    Py_XDECREF(code);
    Py_XDECREF(frame);
    PyErr_Clear();
    return site;
}

/* ---- What a call is for ----------------------------------------------------------- */

/* −1: not known. */
static int truth_of(PyObject *o, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(o, name);
    const int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    if (truth < 0)
        PyErr_Clear();
    return truth;
}

bool roots_gradients(void)
{
    PyObject *answer = grad_enabled ? PyObject_CallObject(grad_enabled, NULL) : NULL;
    const bool on = answer != Py_False;
    Py_XDECREF(answer);
    PyErr_Clear();
    return on;
}

static bool has_nothing_to_switch(PyObject *self)
{
    return truth_of(self, text_parameters) == 0 && truth_of(self, text_modules) == 0;
}

/* False: there is nothing in it to train. */
static bool remember(PyObject *self);

static enum kind kind_of(PyObject *self)
{
    trains = false;
    if (roots_gradients()) {
        evaluating = 0;
        trains = remember(self);
        with_gradients += trains;
    } else if (truth_of(self, text_training) == 0) {
        evaluating = 1;
        without_gradients++;
    } else if (!has_nothing_to_switch(self)) {
        evaluating = steps_evaluating();
        without_gradients++;
    }
    return evaluating ? EVALUATING : TRAINING;
}

/* ---- The module that is trained ----------------------------------------------------- */

/* The last one called with gradients that has something to switch. */
static struct {
    PyObject *module; /* address only */
    PyObject *alive;  /* weak reference, or NULL */
    bool switched_on; /* it was in training mode then */
} trained;

static bool remember(PyObject *self)
{
    struct known *k = place_of((PyObject *)Py_TYPE(self));
    if (!k->judged) {
        k->judged = true;
        k->plain = has_nothing_to_switch(self);
    }
    if (k->plain)
        return false;
    if (trained.module != self || !trained.alive || !refers_to(trained.alive, self)) {
        Py_XDECREF(trained.alive);
        trained.module = self;
        trained.alive = PyWeakref_NewRef(self, NULL);
        PyErr_Clear();
    }
    trained.switched_on = truth_of(self, text_training) == 1;
    return true;
}

bool roots_switched(void)
{
    return trained.switched_on && trained.alive &&
           refers_to(trained.alive, trained.module) &&
           truth_of(trained.module, text_training) == 0;
}

uint64_t roots_evaluations(void)
{
    return counts[EVALUATING];
}

uint64_t roots_trained(void)
{
    return with_gradients;
}

uint64_t roots_asked(void)
{
    return without_gradients;
}

/* ---- The slots -------------------------------------------------------------------- */

/* When a class's first call as a root is over: its module has its final shape then. */
static void tell_first(PyObject *self)
{
    struct known *k = place_of((PyObject *)Py_TYPE(self));
    if (SONDE_LIKELY_(k->told || k->type != (PyObject *)Py_TYPE(self)))
        return;
    k->told = true;
    tell(first_call, self, "the first call of a module");
}

static PyObject *root_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const enum kind kind = kind_of(self);
    const bool rows = trains;
    PyObject *type = (PyObject *)Py_TYPE(self);
    struct sonde_site *site = kind == EVALUATING ? site_for_evaluation(type)
                                                 : site_for(type, kind);
    if (!site)
        return plain_call(self, args, kwargs);
    counts[kind]++;
    torch_alone = 1;
    phase_begin(site);
    PyObject *answer = plain_call(self, args, kwargs);
    phase_end(site);
    torch_alone = 0;
    if (answer && rows)
        rows_seen(args, kwargs, answer);
    if (answer)
        tell_first(self);
    return answer;
}

static PyObject *module_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (SONDE_LIKELY_(torch_alone || !sonde_on_()))
        return plain_call(self, args, kwargs);
    return root_call(self, args, kwargs);
}

static int module_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct sonde_site *site = torch_alone || !sonde_on_()
                                  ? NULL
                                  : site_for((PyObject *)Py_TYPE(self), CREATING);
    if (!site)
        return plain_init(self, args, kwargs);
    counts[CREATING]++;
    torch_alone = 1;
    phase_begin(site);
    const int rc = plain_init(self, args, kwargs);
    phase_end(site);
    torch_alone = 0;
    return rc;
}

/* Where the slot is: the same in every version so far, which is checked each time. */
static void **slot_of(PyObject *type, size_t offset, int slot, void *holds)
{
    void **place = (void **)((char *)type + offset);
    return PyType_GetSlot((PyTypeObject *)type, slot) == holds && *place == holds
               ? place
               : NULL;
}

/* The head of PyTypeObject up to the slots; the limited API does not show it. */
struct type_head {
    PyVarObject head;
    const char *name;
    Py_ssize_t basicsize, itemsize;
    void *dealloc;
    Py_ssize_t vectorcall_offset;
    void *getattr, *setattr, *as_async, *repr, *as_number, *as_sequence, *as_mapping,
        *hash, *call;
    void *str, *getattro, *setattro, *as_buffer;
    unsigned long flags;
    const char *doc;
    void *traverse, *clear, *richcompare;
    Py_ssize_t weaklistoffset;
    void *iter, *iternext, *methods, *members, *getset, *base, *dict, *descr_get,
        *descr_set;
    Py_ssize_t dictoffset;
    void *init;
};
#ifndef Py_LIMITED_API
_Static_assert(offsetof(struct type_head, call) == offsetof(PyTypeObject, tp_call) &&
                   offsetof(struct type_head, init) == offsetof(PyTypeObject, tp_init),
               "layout of types");
#endif

/* Whether calls and constructions of its instances are seen from now on. */
static bool watch_type(PyObject *type)
{
    if (!describe || !plain_call || !PyType_Check(type))
        return false;
    void **call = slot_of(type, offsetof(struct type_head, call), Py_tp_call,
                          (void *)plain_call);
    void **init = slot_of(type, offsetof(struct type_head, init), Py_tp_init,
                          (void *)plain_init);
    if (call)
        *call = (void *)module_call;
    if (init)
        *init = (void *)module_init;
    return call != NULL;
}

PyObject *py_watch_modules(PyObject *module, PyObject *type)
{
    (void)module;
    return PyBool_FromLong(watch_type(type));
}

/* module_made(cls, **keywords): what classmethod __init_subclass__ of torch.nn.Module
 * is from now on: the one that would have been called, and the new class is seen. */
PyObject *py_module_made(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    PyObject *cls = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
    PyObject *above = cls && root_type
                          ? PyObject_CallFunctionObjArgs((PyObject *)&PySuper_Type,
                                                         root_type, cls, NULL)
                          : NULL;
    PyObject *next = above ? PyObject_GetAttrString(above, "__init_subclass__") : NULL;
    PyObject *rest = next ? PyTuple_GetSlice(args, 1, PyTuple_Size(args)) : NULL;
    PyObject *answer = rest ? PyObject_Call(next, rest, kwargs) : NULL;
    Py_XDECREF(above);
    Py_XDECREF(next);
    Py_XDECREF(rest);
    if (answer)
        (void)watch_type(cls);
    return answer;
}

/* module_zones(describe, describe_call, first_call, grad_enabled, base): how to name zones,
 * and one of a call that evaluates; who is told
 * of a class's first call; what torch says of gradients; torch.nn.Module, whose slots are
 * those of any class written in Python. */
PyObject *py_module_zones(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *how, *call, *first, *enabled, *base;
    if (!PyArg_ParseTuple(args, "OOOOO!", &how, &call, &first, &enabled, &PyType_Type,
                          &base))
        return NULL;
    plain_call = (ternaryfunc)PyType_GetSlot((PyTypeObject *)base, Py_tp_call);
    plain_init = (initproc)PyType_GetSlot((PyTypeObject *)base, Py_tp_init);
    if (plain_call == module_call || !plain_init)
        plain_call = NULL;     /* cannot be: called twice for one class */
    root_type = new_ref(base); /* for good: it is torch's */
    PyObject *old[] = { describe, grad_enabled, first_call, describe_call };
    describe = new_ref(how);
    describe_call = new_ref(call);
    grad_enabled = new_ref(enabled);
    first_call = new_ref(first);
    Py_XDECREF(old[0]);
    Py_XDECREF(old[1]);
    Py_XDECREF(old[2]);
    Py_XDECREF(old[3]);
    return new_none();
}

/* How often a root was called for training, for evaluation, and made. */
PyObject *py_module_counts(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("(KKK)", counts[TRAINING], counts[EVALUATING],
                         counts[CREATING]);
}

int roots_init(void)
{
    text_training = PyUnicode_InternFromString("training");
    text_parameters = PyUnicode_InternFromString("_parameters");
    text_modules = PyUnicode_InternFromString("_modules");
    text_code = PyUnicode_InternFromString("f_code");
    text_lasti = PyUnicode_InternFromString("f_lasti");
    return text_training && text_parameters && text_modules && text_code && text_lasti
               ? 0
               : -1;
}
