/* begin.c: begin() and end(), for zones that no block encloses. */
#include "module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "enter.h"

/* What this thread began, for end() without argument or with a name. */
enum { REMEMBERED = 64 };
struct begun {
    uint32_t depth; /* may exceed REMEMBERED: then the innermost are not known */
    struct sonde_site *sites[REMEMBERED];
};
static __thread struct begun *begun __attribute__((tls_model("initial-exec")));

static pthread_key_t begun_key; /* frees what a thread leaves behind */
static pthread_once_t begun_once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
    (void)pthread_key_create(&begun_key, free);
}

static struct begun *begun_here(void)
{
    if (SONDE_LIKELY_(begun != NULL))
        return begun;
    begun = calloc(1, sizeof *begun);
    (void)pthread_once(&begun_once, make_key);
    (void)pthread_setspecific(begun_key, begun);
    return begun;
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
        if (SONDE_LIKELY_(here->depth < REMEMBERED))
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
    if (here->depth > REMEMBERED) {
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

/* A name alone is not a site: `begin("load", "data_loading")` has another than
 * `begin("load")`. Meant is the innermost of that name that was begun here; in a
 * coroutine, by this frame, since other tasks use the thread too. Without one it is the
 * zone that has nothing but the name. NULL with an exception. */
static struct sonde_site *site_called(PyObject *name)
{
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL)
                                             : NULL;
    if (!text)
        return PyErr_Occurred() ? NULL : site_from(name);
    const void *frame = spans_open ? awaiting_frame() : NULL;
    struct sonde_site *site = frame ? spans_called(frame, text) : NULL;
    const struct begun *here = begun;
    uint32_t i = !here ? 0 : here->depth < REMEMBERED ? here->depth : REMEMBERED;
    while (!site && i-- > 0)
        if (strcmp(here->sites[i]->name, text) == 0)
            site = here->sites[i];
    return site ? site : site_from(name);
}

PyObject *py_end(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n > 1) {
        PyErr_SetString(PyExc_TypeError, "end() takes a zone, a name or nothing");
        return NULL;
    }
    struct sonde_site *site = NULL;
    if (n == 1 &&
        !(site = is_zone(args[0]) ? site_from(args[0]) : site_called(args[0])))
        return NULL;
    if ((site = take_begun(site)))
        leave(site);
    return new_none();
}
