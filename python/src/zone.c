/* zone.c: Zone objects.
 *
 * `with zone:` looks __enter__ and __exit__ up in the zone's type. A usual method would be
 * bound to the zone first, which costs more than recording. So each zone has a type of its
 * own whose dictionary holds two Edges: callables that know their site and that nobody
 * binds, since Edge has no __get__. That makes `with zone:` cost little more than an empty
 * manager. Types are dear (about 1 KiB), so past MAX_TYPES names zones are plain objects
 * with plain methods, made and dropped as needed.
 *
 * A Zone holds no state: it may be entered again while open and from any thread.
 */
#include "module.h"

#include "enter.h"

struct edge {
    PyObject_HEAD
    vectorcallfunc call;
    struct sonde_site *site;
    PyObject *zone; /* lives as long as its type, and so longer than this */
};

PyTypeObject *zone_type;
static PyTypeObject *edge_type;

/* ---- Entering and leaving -------------------------------------------------------- */

/* Arguments are not looked at: `with` passes none here and three there. */
static PyObject *edge_enter(PyObject *self, PyObject *const *args, size_t nargsf,
                            PyObject *kwnames)
{
    (void)args, (void)nargsf, (void)kwnames;
    struct edge *e = (struct edge *)self;
    enter(e->site);
    return new_ref(e->zone);
}

static PyObject *edge_exit(PyObject *self, PyObject *const *args, size_t nargsf,
                           PyObject *kwnames)
{
    (void)args, (void)nargsf, (void)kwnames;
    leave(((struct edge *)self)->site);
    return new_none();
}

/* For callers who do not know of vectorcall: contextlib.ExitStack passes the zone too. */
static PyObject *edge_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs;
    return ((struct edge *)self)->call(self, NULL, 0, NULL);
}

static PyObject *zone_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    enter(((struct zone *)self)->site);
    return new_ref(self);
}

static PyObject *zone_exit(PyObject *self, PyObject *args)
{
    (void)args;
    leave(((struct zone *)self)->site);
    return new_none();
}

/* ---- Making zones ---------------------------------------------------------------- */

static PyObject *new_edge(struct zone *zone, vectorcallfunc call)
{
    struct edge *e = PyObject_New(struct edge, edge_type);
    if (!e)
        return NULL;
    e->call = call;
    e->site = zone->site;
    e->zone = (PyObject *)zone;
    return (PyObject *)e;
}

static void edge_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* A Zone of type `type`, which it must be given; `name` is borrowed. */
static struct zone *new_zone(PyTypeObject *type, struct sonde_site *site,
                             PyObject *name)
{
    /* The types that type() makes are collected, whatever their base; theirs to know. */
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct zone *z = (struct zone *)alloc(type, 0);
    if (!z)
        return NULL;
    z->site = site;
    z->name = new_ref(name);
    return z;
}

static void zone_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(((struct zone *)self)->name);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* type("Zone", (Zone,), {"__slots__": (), "__module__": "sonde"}) */
static PyObject *new_zone_type(void)
{
    return PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s:(),s:s}", "Zone",
                                 (PyObject *)zone_type, "__slots__", "__module__",
                                 "sonde");
}

PyObject *zone_new_fast(struct sonde_site *site, PyObject *name)
{
    PyObject *type = new_zone_type();
    if (!type)
        return NULL;
    struct zone *z = new_zone((PyTypeObject *)type, site, name);
    PyObject *in = z ? new_edge(z, edge_enter) : NULL;
    PyObject *out = z ? new_edge(z, edge_exit) : NULL;
    if (!in || !out || PyObject_SetAttrString(type, "__enter__", in) < 0 ||
        PyObject_SetAttrString(type, "__exit__", out) < 0)
        Py_CLEAR(z);
    Py_XDECREF(in);
    Py_XDECREF(out);
    Py_DECREF(type);
    return (PyObject *)z;
}

PyObject *zone_new_plain(struct sonde_site *site, PyObject *name)
{
    return (PyObject *)new_zone(zone_type, site, name);
}

/* ---- The types ------------------------------------------------------------------- */

static PyObject *get_text(const char *text)
{
    return text && *text ? PyUnicode_FromString(text) : new_none();
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return new_ref(((struct zone *)self)->name);
}

static PyObject *get_phase(PyObject *self, void *unused)
{
    (void)unused;
    return get_text(sonde_phase_name(((struct zone *)self)->site->phase));
}

static PyObject *get_component(PyObject *self, void *unused)
{
    (void)unused;
    return get_text(((struct zone *)self)->site->component);
}

static PyObject *get_category(PyObject *self, void *unused)
{
    (void)unused;
    return get_text(((struct zone *)self)->site->category);
}

static PyObject *get_tags(PyObject *self, void *unused)
{
    (void)unused;
    return get_text(((struct zone *)self)->site->tags);
}

static PyObject *zone_enable(PyObject *self, PyObject *on)
{
    int enabled = PyObject_IsTrue(on);
    if (enabled < 0)
        return NULL;
    sonde_site_enable(((struct zone *)self)->site, enabled);
    return new_none();
}

static PyObject *zone_repr(PyObject *self)
{
    const struct zone *z = (struct zone *)self;
    const char *phase = sonde_phase_name(z->site->phase);
    return phase && *phase
               ? PyUnicode_FromFormat("sonde.zone(%R, phase='%s')", z->name, phase)
               : PyUnicode_FromFormat("sonde.zone(%R)", z->name);
}

/* @sonde.zone("name"): as a decorator it is sonde.profile's business. */
static PyObject *zone_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *function;
    static char *names[] = { "function", NULL };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:zone", names, &function))
        return NULL;
    PyObject *module = PyImport_ImportModule("sonde._profile");
    PyObject *answer = module
                           ? PyObject_CallMethod(module, "wrap", "OO", function, self)
                           : NULL;
    Py_XDECREF(module);
    return answer;
}

/* Zones come from zone(): one without a site would crash. */
static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type, (void)args, (void)kwargs;
    PyErr_SetString(PyExc_TypeError, "use sonde.zone(name) to make a zone");
    return NULL;
}

/* Pickled as the call that makes it again in the other process. */
static PyObject *zone_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct zone *z = (struct zone *)self;
    PyObject *module = PyImport_ImportModule("sonde._profile");
    PyObject *again = module ? PyObject_GetAttrString(module, "zone_again") : NULL;
    Py_XDECREF(module);
    return again ? Py_BuildValue("(N(Oizzz))", again, z->name, (int)z->site->phase,
                                 z->site->component, z->site->category, z->site->tags)
                 : NULL;
}

static PyMethodDef zone_methods[] = {
    { "__reduce__", zone_reduce, METH_NOARGS, NULL },
    { "__enter__", zone_enter, METH_NOARGS, NULL },
    { "__exit__", zone_exit, METH_VARARGS, NULL },
    { "enable", zone_enable, METH_O,
      "enable(on)\n--\n\nSwitch recording of this zone on or off." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef zone_getset[] = {
    { "name", get_name, NULL, "The name shown in reports.", NULL },
    { "phase", get_phase, NULL, "The phase, or None.", NULL },
    { "component", get_component, NULL, "The component, or None.", NULL },
    { "category", get_category, NULL, "The category, or None.", NULL },
    { "tags", get_tags, NULL, "Tags as 'key=value,…', or None.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot zone_slots[] = {
    { Py_tp_new, refuse_new },
    { Py_tp_dealloc, zone_dealloc },
    { Py_tp_methods, zone_methods },
    { Py_tp_getset, zone_getset },
    { Py_tp_repr, zone_repr },
    { Py_tp_call, zone_call },
    { Py_tp_doc, "A named scope: use it with `with`, as often as you like, nested in "
                 "itself and from any thread. Made by sonde.zone()." },
    { 0, NULL },
};
static PyType_Spec zone_spec = {
    .name = "sonde._sonde.Zone",
    .basicsize = sizeof(struct zone),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = zone_slots,
};

static PyMemberDef edge_members[] = {
    { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct edge, call), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};
static PyType_Slot edge_slots[] = {
    { Py_tp_new, refuse_new },
    { Py_tp_dealloc, edge_dealloc },
    { Py_tp_members, edge_members },
    { Py_tp_call, edge_call },
    { 0, NULL },
};
static PyType_Spec edge_spec = {
    .name = "sonde._sonde.Edge",
    .basicsize = sizeof(struct edge),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = edge_slots,
};

int zone_init(PyObject *module)
{
    edge_type = (PyTypeObject *)PyType_FromSpec(&edge_spec);
    zone_type = add_type(module, &zone_spec);
    return edge_type && zone_type ? 0 : -1;
}
