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

#include <stdlib.h>
#include <string.h>

#include "frames.h"

enum { MAX_TYPES = 4096 };

struct edge {
    PyObject_HEAD
    vectorcallfunc call;
    struct sonde_site *site;
    PyObject *zone; /* lives as long as its type, and so longer than this */
};

PyTypeObject *zone_type;
static PyTypeObject *edge_type;
static PyObject *zones;     /* name, or tuple of all arguments -> Zone */
static uint32_t phases_off; /* bit n: zones of phase n are switched off */

/* ---- Recording ------------------------------------------------------------------- */

static inline void enter(struct sonde_site *site)
{
    if (!sonde_on_())
        return;
    const void *frame = awaiting_frame();
    if (SONDE_LIKELY_(!frame))
        sonde_begin_on_(site);
    else
        spans_begin(frame, site);
}

static inline void leave(struct sonde_site *site)
{
    if (SONDE_LIKELY_(!spans_open)) {
        end_zone(site);
        return;
    }
    const void *frame = awaiting_frame();
    if (!frame || !spans_end(frame, site))
        end_zone(site);
}

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

/* Most zones are of a type of their own, one below Zone. */
static inline bool is_zone(PyObject *o)
{
#ifndef Py_LIMITED_API
    if (SONDE_LIKELY_(Py_TYPE(o)->tp_base == zone_type))
        return true;
#endif
    return PyObject_TypeCheck(o, zone_type);
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

/* A zone with its own type: stays for the life of the process, as its site does. */
static PyObject *new_fast_zone(struct sonde_site *site, PyObject *name)
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

/* Text of an argument that may be None; *ok turns false with an exception. */
static const char *text_of(PyObject *o, const char *what, bool *ok)
{
    if (!o || o == Py_None)
        return NULL;
    const char *text = PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, NULL) : NULL;
    if (!text) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "%s of a zone must be str or None", what);
        *ok = false;
    }
    return text;
}

struct arguments {
    PyObject *name, *phase, *component, *category, *file, *line;
    PyObject *tags; /* list of "key=value", NULL without */
};

/* Sites with a place are ours; the others are shared by name with the C side. Neither
 * is ever freed: events on disk and other threads may refer to it. */
static struct sonde_site *placed_site(const struct sonde_site *s)
{
    struct sonde_site *site = malloc(sizeof *site);
    if (!site)
        return NULL;
    *site = *s;
    const char **texts[] = { &site->name, &site->file, &site->component,
                             &site->category, &site->tags };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i] && !(*texts[i] = strdup(*texts[i])))
            *texts[i] = "";
    return site;
}

static struct sonde_site *make_site(const struct arguments *a, PyObject *tags)
{
    bool ok = true;
    struct sonde_site s = { .name = text_of(a->name, "name", &ok),
                            .file = text_of(a->file, "file", &ok),
                            .component = text_of(a->component, "component", &ok),
                            .category = text_of(a->category, "category", &ok),
                            .tags = text_of(tags, "tags", &ok) };
    s.phase = a->phase ? phase_from(a->phase) : SONDE_NO_PHASE;
    if (ok && a->line)
        s.line = (int32_t)PyLong_AsLong(a->line);
    if (!ok || s.phase < 0 || PyErr_Occurred())
        return NULL;
    struct sonde_site *site =
        s.file ? placed_site(&s)
               : sonde_site_named(s.name, s.phase, s.component, s.category, s.tags);
    if (!site) {
        PyErr_NoMemory();
        return NULL;
    }
    if (phases_off & 1u << s.phase)
        sonde_site_enable(site, 0);
    return site;
}

static PyObject *joined(PyObject *list)
{
    if (!list)
        return new_none();
    PyObject *comma = PyUnicode_FromString(",");
    PyObject *text = comma ? PyUnicode_Join(comma, list) : NULL;
    Py_XDECREF(comma);
    return text;
}

static PyObject *make_zone(const struct arguments *a, PyObject *key)
{
    PyObject *tags = joined(a->tags);
    struct sonde_site *site = tags ? make_site(a, tags) : NULL;
    Py_XDECREF(tags);
    if (!site)
        return NULL;
    if (PyDict_Size(zones) >= MAX_TYPES)
        return (PyObject *)new_zone(zone_type, site, a->name);
    PyObject *zone = new_fast_zone(site, a->name);
    if (zone && PyDict_SetItem(zones, key, zone) < 0)
        Py_CLEAR(zone);
    return zone;
}

static bool add_tag(struct arguments *a, PyObject *key, PyObject *value)
{
    if (!a->tags && !(a->tags = PyList_New(0)))
        return false;
    PyObject *text = PyUnicode_FromFormat("%U=%S", key, value);
    bool ok = text && PyList_Append(a->tags, text) == 0;
    Py_XDECREF(text);
    return ok;
}

/* `phase`, `component` and `category` say what they are; everything else is a tag. */
static bool take_keyword(struct arguments *a, PyObject *key, PyObject *value)
{
    static const char *const names[] = { "phase", "component", "category", "_file",
                                         "_line", "name" };
    PyObject **places[] = { &a->phase, &a->component, &a->category, &a->file, &a->line,
                            &a->name };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (PyUnicode_CompareWithASCIIString(key, names[i]) == 0) {
            *places[i] = value == Py_None ? NULL : value;
            return true;
        }
    return add_tag(a, key, value);
}

static PyObject *full_key(const struct arguments *a)
{
    PyObject *tags = joined(a->tags);
    PyObject *parts[] = { a->name, a->phase, a->component, a->category, a->file,
                          a->line, tags };
    PyObject *key = tags ? PyTuple_New(7) : NULL;
    for (Py_ssize_t i = 0; key && i < 7; i++)
        if (PyTuple_SetItem(key, i, new_ref(parts[i] ? parts[i] : Py_None)) < 0)
            Py_CLEAR(key);
    Py_XDECREF(tags);
    return key;
}

static PyObject *found_or_made(const struct arguments *a)
{
    bool plain = !a->phase && !a->component && !a->category && !a->file && !a->tags;
    PyObject *key = plain ? new_ref(a->name) : full_key(a);
    if (!key)
        return NULL;
    PyObject *zone = PyDict_GetItemWithError(zones, key);
    if (zone)
        Py_INCREF(zone);
    else if (!PyErr_Occurred())
        zone = make_zone(a, key);
    Py_DECREF(key);
    return zone;
}

static PyObject *zone_with(PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    struct arguments a = { .name = n > 0 ? args[0] : NULL,
                           .phase = n > 1 ? args[1] : NULL,
                           .component = n > 2 ? args[2] : NULL };
    PyObject *zone = NULL;
    if (a.phase == Py_None)
        a.phase = NULL;
    if (a.component == Py_None)
        a.component = NULL;
    if (n > 3) {
        PyErr_SetString(PyExc_TypeError, "zone(name, phase, component) takes at most 3 "
                                         "positional arguments");
        return NULL;
    }
    Py_ssize_t count = kwnames ? PyTuple_Size(kwnames) : 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!take_keyword(&a, PyTuple_GetItem(kwnames, i), args[n + i]))
            goto done;
    if (!a.name || !PyUnicode_Check(a.name)) {
        PyErr_SetString(PyExc_TypeError, "a zone needs a name (str) as its first argument");
        goto done;
    }
    zone = found_or_made(&a);
done:
    Py_XDECREF(a.tags);
    return zone;
}

/* ---- The last answers ------------------------------------------------------------
 *
 * `zone("x", phase="forward")` in a loop passes the very same objects each time: the
 * constants of its code. A table of the last calls, compared by address, spares building
 * the key. Only arguments that cannot change are remembered, and the table owns them, so
 * that no address is given to another object meanwhile. */
enum { MEMOS = 256, MEMO_VALUES = 5 }; /* the name and up to four keywords */
static struct memo {
    PyObject *zone, *kwnames, *values[MEMO_VALUES];
} memos[MEMOS];

static struct memo *memo_for(PyObject *name, PyObject *kwnames)
{
    uintptr_t mixed = (uintptr_t)name >> 4 ^ (uintptr_t)kwnames >> 6;
    return &memos[(mixed ^ mixed >> 8) % MEMOS];
}

static bool memo_holds(const struct memo *m, PyObject *const *args, Py_ssize_t count,
                       PyObject *kwnames)
{
    if (!m->zone || m->kwnames != kwnames)
        return false;
    for (Py_ssize_t i = 0; i < count; i++)
        if (m->values[i] != args[i])
            return false;
    return true;
}

static bool is_constant(PyObject *o)
{
    return o == Py_None || PyUnicode_CheckExact(o) || PyLong_CheckExact(o) ||
           PyBool_Check(o) || PyFloat_CheckExact(o);
}

static void memo_put(struct memo *m, PyObject *zone, PyObject *const *args,
                     Py_ssize_t count, PyObject *kwnames)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_constant(args[i]))
            return;
    const struct memo old = *m;
    *m = (struct memo){ .zone = new_ref(zone), .kwnames = new_ref(kwnames) };
    for (Py_ssize_t i = 0; i < count; i++)
        m->values[i] = new_ref(args[i]);
    Py_XDECREF(old.zone);
    Py_XDECREF(old.kwnames);
    for (size_t i = 0; i < MEMO_VALUES; i++)
        Py_XDECREF(old.values[i]);
}

static PyObject *remembered(PyObject *const *args, PyObject *kwnames)
{
    const Py_ssize_t count = 1 + PyTuple_Size(kwnames);
    /* A tuple that only this call holds was made for `**more` and will not come again. */
    if (count > MEMO_VALUES || Py_REFCNT(kwnames) == 1)
        return zone_with(args, 1, kwnames);
    struct memo *m = memo_for(args[0], kwnames);
    if (SONDE_LIKELY_(memo_holds(m, args, count, kwnames)))
        return new_ref(m->zone);
    PyObject *zone = zone_with(args, 1, kwnames);
    if (zone && Py_TYPE(zone) != zone_type) /* one that stays */
        memo_put(m, zone, args, count, kwnames);
    return zone;
}

PyObject *py_zone(PyObject *module, PyObject *const *args, Py_ssize_t n,
                  PyObject *kwnames)
{
    (void)module;
    if (n == 1 && kwnames)
        return remembered(args, kwnames);
    if (SONDE_LIKELY_(n == 1 && !kwnames && PyUnicode_CheckExact(args[0]))) {
        PyObject *zone = PyDict_GetItemWithError(zones, args[0]);
        if (SONDE_LIKELY_(zone != NULL))
            return new_ref(zone);
        if (PyErr_Occurred())
            return NULL;
    }
    return zone_with(args, n, kwnames);
}

struct sonde_site *site_from(PyObject *zone_or_name)
{
    if (is_zone(zone_or_name))
        return ((struct zone *)zone_or_name)->site;
    PyObject *zone = zone_with(&zone_or_name, 1, NULL);
    if (!zone)
        return NULL;
    struct sonde_site *site = ((struct zone *)zone)->site;
    Py_DECREF(zone); /* the site stays */
    return site;
}

/* ---- begin() and end() ----------------------------------------------------------- */

/* What this thread began, for end() without argument. */
struct begun {
    uint32_t depth;
    struct sonde_site *sites[64];
};
static __thread struct begun *begun __attribute__((tls_model("initial-exec")));

static struct begun *begun_here(void)
{
    if (SONDE_LIKELY_(begun != NULL))
        return begun;
    return begun = calloc(1, sizeof *begun); /* a thread's; 520 bytes */
}

PyObject *py_begin(PyObject *module, PyObject *const *args, Py_ssize_t n,
                   PyObject *kwnames)
{
    PyObject *zone;
    if (n == 1 && !kwnames && is_zone(args[0]))
        zone = new_ref(args[0]);
    else if (!(zone = py_zone(module, args, n, kwnames)))
        return NULL;
    struct sonde_site *site = ((struct zone *)zone)->site;
    struct begun *here = begun_here();
    if (here) {
        if (SONDE_LIKELY_(here->depth < 64))
            here->sites[here->depth] = site;
        here->depth++;
    }
    enter(site);
    return zone;
}

/* Takes the site off the list: mostly the last one. NULL when there is none. */
static struct sonde_site *take_begun(struct sonde_site *site)
{
    struct begun *here = begun;
    if (!here || here->depth == 0)
        return site;
    if (here->depth > 64) {
        here->depth--; /* deeper than we remember: the caller must say which */
        return site;
    }
    if (!site || here->sites[here->depth - 1] == site)
        return here->sites[--here->depth];
    for (uint32_t i = here->depth; i-- > 0;)
        if (here->sites[i] == site) {
            here->depth = i;
            break;
        }
    return site;
}

PyObject *py_end(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n > 1) {
        PyErr_SetString(PyExc_TypeError, "end() takes a zone, a name or nothing");
        return NULL;
    }
    struct sonde_site *site = NULL;
    if (n == 1 && !(site = site_from(args[0])))
        return NULL;
    if ((site = take_begun(site)))
        leave(site);
    return new_none();
}

/* ---- Switches -------------------------------------------------------------------- */

/* _set_phases(bits): phases whose bit is set are not recorded. */
PyObject *py_set_phases(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned bits;
    if (!PyArg_ParseTuple(args, "I", &bits))
        return NULL;
    phases_off = bits & ~1u;
    PyObject *key, *zone;
    for (Py_ssize_t at = 0; PyDict_Next(zones, &at, &key, &zone);) {
        struct sonde_site *site = ((struct zone *)zone)->site;
        if (site->phase > 0 && site->phase < SONDE_PHASE_COUNT)
            sonde_site_enable(site, !(phases_off & 1u << site->phase));
    }
    return new_none();
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
    PyObject *answer =
        module ? PyObject_CallMethod(module, "wrap", "OO", function, self) : NULL;
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
    zones = PyDict_New();
    edge_type = (PyTypeObject *)PyType_FromSpec(&edge_spec);
    zone_type = add_type(module, &zone_spec);
    return zones && edge_type && zone_type ? 0 : -1;
}
