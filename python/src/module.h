/* module.h: what the files of the extension share.
 *
 *   module.c     the module, names of phases, values, marks
 *   zone.c       Zone objects and what `with` calls
 *   zones.c      zone(): finding and making them
 *   begin.c      begin() and end()
 *   enter.h      what both do to record
 *   frames.h     whether the running Python frame may be suspended
 *   spans.c      zones in coroutines: spans by frame and by task
 *   profiled.c   @sonde.profile of plain functions
 *   drive.c      @sonde.profile of coroutines and generators: who drives them sees them wait
 *   operation.c  operation records
 *   session.c    sessions
 *   bench.c      sonde_bench() with a Python callable
 *   paired.c     is one thing faster than another: the rank test of pairs
 *   cost.c       formulas of model.h: what layers and models cost
 *   torch.h      what the next six share
 *   watched.c    another's callable, watched
 *   calls.c      a Python function that stays what it is, watched
 *   device.c     the GPU's time at each phase; turns.c of which calls
 *   tensors.c    waits for the GPU, transfers to it
 *   ranges.c     ranges the program names itself
 *   roots.c      the outermost call of a torch module
 *   hook.c       callables in front of others, for data loaders
 *   steps.c      where training steps begin and end, what is evaluation
 *   loaders.c    what data loaders do, written down: book.c the file; fetches.c who
 *                iterates: next.c one fetch, batch.c what it brought, travels.c how that
 *                came, pinning.c; maker.c and making.c who makes samples, worker.c that
 *                in a process of its own, looks.c its memory, proxies.c stand-ins
 *
 * Uses Sonde's public headers, the layout of loaders' rows (trace/loader_rows.h) and the
 * rank test (num/ranktest.h). The same source builds for one interpreter with its own
 * headers and, with Py_LIMITED_API, for all from 3.9 on. Everything here runs with the GIL
 * held; sub-interpreters and free-threaded builds are not supported.
 */
#ifndef SONDE_PYTHON_MODULE_H
#define SONDE_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <structmember.h>

#include <sonde/sonde.h>

/* The limited API of 3.9 does not declare these, though every interpreter since 3.8 has
 * them with these values and this meaning (they joined it in 3.10 and 3.12). */
#ifdef Py_LIMITED_API
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
typedef PyObject *(*vectorcallfunc)(PyObject *callable, PyObject *const *args,
                                    size_t nargsf, PyObject *kwnames);
#endif
#if Py_LIMITED_API + 0 < 0x030A0000
PyAPI_FUNC(const char *) PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *ret_size);
PyAPI_FUNC(PyObject *) PyObject_GenericGetDict(PyObject *o, void *unused);
#endif
#endif

#define FUNCTION(f) ((PyCFunction)(void (*)(void))(f))

static inline PyObject *new_ref(PyObject *o)
{
    Py_INCREF(o);
    return o;
}

static inline PyObject *new_none(void)
{
    return new_ref(Py_None);
}

/* NaN, which means "not measured" in C, is None here. */
PyObject *float_or_none(double value);

/* The phase behind None, a name ("forward") or a number; −1 with an exception. */
int phase_from(PyObject *phase);

/* ---- zone.c ---- */
struct zone {
    PyObject_HEAD
    struct sonde_site *site;
    PyObject *name; /* str */
};
extern PyTypeObject *zone_type;
/* Most zones are of a type of their own, one below Zone. */
static inline bool is_zone(PyObject *o)
{
#ifndef Py_LIMITED_API
    if (SONDE_LIKELY_(Py_TYPE(o)->tp_base == zone_type))
        return true;
#endif
    return PyObject_TypeCheck(o, zone_type);
}

/* A zone with its own type: stays for the life of the process, as its site does. */
PyObject *zone_new_fast(struct sonde_site *site, PyObject *name);
/* One that is dropped when nobody holds it. */
PyObject *zone_new_plain(struct sonde_site *site, PyObject *name);
int zone_init(PyObject *module);

/* ---- zones.c ---- */
int zones_init(void);
/* The site behind a Zone or a name; NULL with an exception. */
struct sonde_site *site_from(PyObject *zone_or_name);
PyObject *py_zone(PyObject *module, PyObject *const *args, Py_ssize_t n,
                  PyObject *kwnames);
PyObject *py_set_phases(PyObject *module, PyObject *args);
/* A site without a Zone that set_phases() switches too; NULL when there is no room. */
struct sonde_site *layer_site(const char *name, int phase, const char *component);

/* ---- begin.c ---- */
PyObject *py_begin(PyObject *module, PyObject *const *args, Py_ssize_t n,
                   PyObject *kwnames);
PyObject *py_end(PyObject *module, PyObject *const *args, Py_ssize_t n);

/* Ends a zone that may have begun before recording was switched off. */
static inline void end_zone(struct sonde_site *site)
{
    struct sonde_lane *lane = sonde_lane_;
    if (sonde_on_() || (lane && lane->depth && sonde_is_open_(lane, site)))
        sonde_end_on_(site);
}

/* Gives this thread the name it has in Python; called once, when it first records. */
void name_thread(void);
/* <module>.<name> (".module": of our package), imported when first needed and kept in *place; NULL with an
 * exception. */
PyObject *imported(PyObject **place, const char *module_name, const char *name);
/* A callable as the method of an instance: what a function's __get__ gives. */
PyObject *bound_method(PyObject *callable, PyObject *instance);

/* ---- spans.c ---- */
extern size_t spans_open;
/* Begin a span that belongs to a frame; ended by the same frame. */
void spans_begin(const void *frame, struct sonde_site *site);
/* Ends the frame's newest span of the site (NULL: of any); false when there is none. */
bool spans_end(const void *frame, const struct sonde_site *site);
/* The site of the frame's newest span of that name; NULL without. */
struct sonde_site *spans_called(const void *frame, const char *name);
PyObject *py_task_suspended(PyObject *module, PyObject *task);
PyObject *py_task_resumed(PyObject *module, PyObject *task);
int spans_init(PyObject *module);

/* ---- watched.c, calls.c, device.c, tensors.c, ranges.c, roots.c: other people's calls ---- */
int watched_init(PyObject *module);
int ranges_init(PyObject *module);
int roots_init(void);
PyObject *py_watch_tensors(PyObject *module, PyObject *args);
PyObject *py_device_start(PyObject *module, PyObject *function);
PyObject *py_device_flush(PyObject *module, PyObject *unused);
PyObject *py_device_stop(PyObject *module, PyObject *unused);
PyObject *py_watch_function(PyObject *module, PyObject *args);
PyObject *py_on_problem(PyObject *module, PyObject *handler);
PyObject *py_module_zones(PyObject *module, PyObject *args);
PyObject *py_watch_modules(PyObject *module, PyObject *type);
PyObject *py_module_made(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_watch_range(PyObject *module, PyObject *args);
PyObject *py_module_counts(PyObject *module, PyObject *unused);

/* ---- the other types ---- */
int profiled_init(PyObject *module);
int drive_init(PyObject *module);
int operation_init(PyObject *module);
PyObject *py_session_start(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_session_stop(PyObject *module, PyObject *unused);
PyObject *py_session_active(PyObject *module, PyObject *unused);
PyObject *py_session_directory(PyObject *module, PyObject *unused);
PyObject *py_pause(PyObject *module, PyObject *unused);
PyObject *py_resume(PyObject *module, PyObject *unused);
PyObject *py_recording(PyObject *module, PyObject *unused);
PyObject *py_lost(PyObject *module, PyObject *unused);
PyObject *py_bench(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_paired(PyObject *module, PyObject *args);

/* ---- hook.c, loaders.c ---- */
int hook_init(PyObject *module);
int loaders_init(PyObject *module);
int fetches_init(PyObject *module);

/* ---- steps.c ---- */
PyObject *py_step(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_steps_start(PyObject *module, PyObject *args);
PyObject *py_steps_told(PyObject *module, PyObject *told);
PyObject *py_steps_end(PyObject *module, PyObject *unused);
PyObject *py_steps_forget(PyObject *module, PyObject *unused);
PyObject *py_optimizer_begins(PyObject *module, PyObject *unused);
PyObject *py_optimizer_made(PyObject *module, PyObject *unused);

/* Makes the type and adds it to the module under the last part of its name. */
PyTypeObject *add_type(PyObject *module, PyType_Spec *spec);

/* ---- cost.c ---- */
PyObject *py_layer_cost(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_model_cost(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_attention_memory(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_encoding_storage(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_padding_waste(PyObject *module, PyObject *args);

#endif
