/* begin.c: begin() and end(), for zones that no block encloses. */
#include "module.h"

#include <pthread.h>
#include <stdlib.h>

#include "enter.h"

/* What this thread began, for end() without argument. */
struct begun {
    uint32_t depth;
    struct sonde_site *sites[64];
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
