/* zones.c: zone(): finding zones by what they were asked for, making those that are new.
 *
 * The same arguments give the same zone. Those with a name alone are found by it; others
 * by a tuple of everything, and the last calls by the addresses of their arguments.
 */
#include "module.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TYPES = 4096 }; /* see zone.c */

static PyObject *zones;     /* name, or tuple of all arguments -> Zone */
static uint32_t phases_off; /* bit n: zones of phase n are switched off */
static uint32_t phases_set; /* … have been switched off at some time */

/* ---- Making ---------------------------------------------------------------------- */

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
    struct sonde_site *site = s.file ? placed_site(&s)
                                     : sonde_site_named(s.name, s.phase, s.component,
                                                        s.category, s.tags);
    if (!site) {
        PyErr_NoMemory();
        return NULL;
    }
    if (phases_set & 1u << s.phase) /* the site may be an old one, made while off */
        sonde_site_enable(site, !(phases_off & 1u << s.phase));
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
        return zone_new_plain(site, a->name);
    PyObject *zone = zone_new_fast(site, a->name);
    if (zone && PyDict_SetItem(zones, key, zone) < 0)
        Py_CLEAR(zone);
    return zone;
}

/* A comma ends a tag: one that belongs to it gets a backslash. Takes the reference. */
static PyObject *escaped(PyObject *text)
{
    static const char *const marks[][2] = { { "\\", "\\\\" }, { ",", "\\," } };
    for (size_t i = 0; text && i < 2; i++) {
        PyObject *more = PyObject_CallMethod(text, "replace", "ss", marks[i][0],
                                             marks[i][1]);
        Py_DECREF(text);
        text = more;
    }
    return text;
}

static bool add_tag(struct arguments *a, PyObject *key, PyObject *value)
{
    if (!a->tags && !(a->tags = PyList_New(0)))
        return false;
    PyObject *text = escaped(PyUnicode_FromFormat("%U=%S", key, value));
    bool ok = text && PyList_Append(a->tags, text) == 0;
    Py_XDECREF(text);
    return ok;
}

/* `phase`, `component` and `category` say what they are; everything else is a tag. */
static bool take_keyword(struct arguments *a, PyObject *key, PyObject *value)
{
    static const char *const names[] = { "phase", "component", "category",
                                         "_file", "_line",     "name" };
    PyObject **places[] = { &a->phase, &a->component, &a->category,
                            &a->file,  &a->line,      &a->name };
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
    PyObject *parts[] = { a->name, a->phase, a->component, a->category,
                          a->file, a->line,  tags };
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
        PyErr_SetString(PyExc_TypeError,
                        "a zone needs a name (str) as its first argument");
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

/* A tuple that only this call holds was made for `**more` and will not come again. Where
 * calls borrow the tuple from the code's constants (3.11, 3.12) nobody can tell; then it
 * is remembered until another takes its place. */
static bool is_passing(PyObject *kwnames)
{
#if defined(Py_LIMITED_API) ||                                                         \
    (PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030D0000)
    (void)kwnames;
    return false;
#else
    return Py_REFCNT(kwnames) == 1;
#endif
}

static PyObject *remembered(PyObject *const *args, PyObject *kwnames)
{
    const Py_ssize_t count = 1 + PyTuple_Size(kwnames);
    if (count > MEMO_VALUES || is_passing(kwnames))
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

/* ---- Switches -------------------------------------------------------------------- */

/* ---- Sites that are no Zone objects ---- */

/* Those of the torch layer; beyond these many, phases are not switched. */
static struct sonde_site *layer_sites[256];
static size_t layer_site_count;

static void switch_site(struct sonde_site *site)
{
    sonde_site_enable(site, !(phases_off & 1u << (site->phase & 31)));
}

struct sonde_site *layer_site(const char *name, int phase, const char *component)
{
    struct sonde_site *site = sonde_site_named(name, phase, component, NULL, NULL);
    size_t i = 0;
    while (i < layer_site_count && layer_sites[i] != site)
        i++;
    if (i == layer_site_count && site && i < 256)
        layer_sites[layer_site_count++] = site;
    if (site && phases_set & 1u << (phase & 31))
        switch_site(site);
    return site;
}

/* _set_phases(bits): phases whose bit is set are not recorded. */
PyObject *py_set_phases(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned bits;
    if (!PyArg_ParseTuple(args, "I", &bits))
        return NULL;
    const uint32_t changed = phases_off ^ (bits & ~1u);
    phases_off = bits & ~1u;
    phases_set |= phases_off;
    PyObject *key, *zone;
    for (Py_ssize_t at = 0; PyDict_Next(zones, &at, &key, &zone);) {
        struct sonde_site *site = ((struct zone *)zone)->site;
        if (changed &
            1u << (site->phase & 31)) /* others keep what enable() gave them */
            switch_site(site);
    }
    for (size_t i = 0; i < layer_site_count; i++)
        if (changed & 1u << (layer_sites[i]->phase & 31))
            switch_site(layer_sites[i]);
    return new_none();
}

int zones_init(void)
{
    zones = PyDict_New();
    return zones ? 0 : -1;
}
