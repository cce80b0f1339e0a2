/* spans.c: zones of coroutines and asynchronous generators.
 *
 * Such a zone is a span: it does not lie on the thread's stack of zones, so whatever the
 * event loop runs meanwhile cannot tangle with it. Begin and end happen in the same frame,
 * which is how they find each other. The task is noted besides, when there is one: the
 * hook in sonde._aio tells when a task is put aside and when it goes on, and the spans of
 * the task are suspended and resumed with it.
 *
 * A `with` block without an await inside (sonde._awaits) is left before anything else can
 * run: it stays a zone. It is noted here all the same, so that its end is not taken for
 * that of a span of the same site around it.
 */
#include "module.h"

#include <stdlib.h>
#include <string.h>

#include "frames.h"

enum { BUCKETS = 1024 };

/* Frame and task are only compared, never kept alive: whoever drops a waiting task must
 * see it go, and as its coroutine goes the `with` block is left and its span ends. */

struct open_span {
    struct open_span *next_frame, *next_task; /* in their buckets */
    const void *frame;
    const PyObject *task; /* NULL outside tasks and for zones */
    bool is_zone;
    struct sonde_span span;
};

size_t spans_open;
static struct open_span *by_frame[BUCKETS], *by_task[BUCKETS];
static PyObject *current_task; /* sonde._aio.current_task; NULL until needed */
static PyObject *body_awaits;  /* sonde._awaits.body_awaits; NULL until needed */

static size_t bucket(const void *p)
{
    return ((uintptr_t)p >> 4 ^ (uintptr_t)p >> 14) % BUCKETS;
}

/* The running task, or NULL; perhaps with an exception. */
static PyObject *running_task(void)
{
    PyObject *ask = imported(&current_task, "._aio", "current_task");
    PyObject *task = ask ? PyObject_CallObject(ask, NULL) : NULL;
    if (task == Py_None)
        Py_CLEAR(task);
    return task;
}

/* Whether the `with` that begins now has an await inside; true when in doubt, perhaps
 * with an exception. */
static bool may_be_suspended(void)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    PyObject *ask = imported(&body_awaits, "._awaits", "body_awaits");
    PyObject *answer = ask && frame ? PyObject_CallFunctionObjArgs(ask, frame, NULL)
                                    : NULL;
    bool may = answer != Py_False;
    Py_XDECREF(answer);
    return may;
}

static void note_task(struct open_span *s)
{
    if (!s->task)
        return;
    s->next_task = by_task[bucket(s->task)];
    by_task[bucket(s->task)] = s;
}

static void note_open(struct open_span *s)
{
    s->next_frame = by_frame[bucket(s->frame)];
    by_frame[bucket(s->frame)] = s;
    note_task(s);
    spans_open++;
}

void spans_begin(const void *frame, struct sonde_site *site)
{
    struct open_span *s = calloc(1, sizeof *s);
    if (!s)
        return; /* not recorded: better than to fail the program */
    PyObject *type, *value,
        *traceback; /* a zone in an except block must not lose them */
    PyErr_Fetch(&type, &value, &traceback);
    s->frame = frame;
    s->is_zone = !may_be_suspended();
    if (!s->is_zone) {
        PyObject *task = running_task();
        s->task = task;
        Py_XDECREF(task); /* its loop holds it */
    }
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    note_open(s);
    if (s->is_zone) {
        s->span.site = site;
        sonde_begin(site);
    } else {
        sonde_span_begin(&s->span, site);
    }
}

static void unlink_task(struct open_span *s)
{
    struct open_span **at = &by_task[bucket(s->task)];
    while (*at && *at != s)
        at = &(*at)->next_task;
    if (*at)
        *at = s->next_task;
}

bool spans_end(const void *frame, const struct sonde_site *site)
{
    struct open_span **at = &by_frame[bucket(frame)];
    while (*at && ((*at)->frame != frame || (site && (*at)->span.site != site)))
        at = &(*at)->next_frame;
    struct open_span *s = *at;
    if (!s)
        return false;
    *at = s->next_frame;
    if (s->is_zone)
        end_zone(s->span.site);
    else
        sonde_span_end(&s->span);
    spans_open--;
    if (s->task)
        unlink_task(s);
    free(s);
    return true;
}

struct sonde_site *spans_called(const void *frame, const char *name)
{
    for (struct open_span *s = by_frame[bucket(frame)]; s; s = s->next_frame)
        if (s->frame == frame && strcmp(s->span.site->name, name) == 0)
            return s->span.site;
    return NULL;
}

PyObject *py_task_suspended(PyObject *module, PyObject *task)
{
    (void)module;
    for (struct open_span *s = by_task[bucket(task)]; s; s = s->next_task)
        if (s->task == task)
            sonde_span_suspend(&s->span);
    return new_none();
}

PyObject *py_task_resumed(PyObject *module, PyObject *task)
{
    (void)module;
    for (struct open_span *s = by_task[bucket(task)]; s; s = s->next_task)
        if (s->task == task)
            sonde_span_resume(&s->span);
    return new_none();
}

#ifdef FRAMES_ASKED
/* Flags of code objects do not change: the last one asked is remembered. */
static int flags_of(PyObject *code)
{
    static PyObject *last; /* owned: its address cannot be given to another */
    static int flags;
    if (code == last)
        return flags;
    PyObject *answer = PyObject_GetAttrString(code, "co_flags");
    long value = answer ? PyLong_AsLong(answer) : 0;
    Py_XDECREF(answer);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    PyObject *old = last;
    last = new_ref(code);
    flags = (int)value;
    Py_XDECREF(old);
    return flags;
}

const void *awaiting_frame(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
    int flags = code ? flags_of((PyObject *)code) : 0;
    Py_XDECREF((PyObject *)code);
    return flags & MAY_AWAIT ? frame : NULL;
}
#endif

/* The span of one thing that its owner drives by hand: Span(zone). */
struct span {
    PyObject_HEAD
    struct open_span open; /* of no frame; of a task after begin_in_task() */
    PyObject *zone;
    bool begun;
};

static PyObject *span_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "zone", NULL };
    PyObject *zone;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Span", names, zone_type, &zone))
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct span *s = (struct span *)alloc(type, 0);
    if (s)
        s->zone = new_ref(zone);
    return (PyObject *)s;
}

static PyObject *span_resume(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct span *s = (struct span *)self;
    if (s->begun) {
        sonde_span_resume(&s->open.span);
    } else {
        s->begun = true;
        sonde_span_begin(&s->open.span, ((struct zone *)s->zone)->site);
    }
    return new_none();
}

/* For owners who do not see when the task they are in waits. */
static PyObject *span_begin_in_task(PyObject *self, PyObject *unused)
{
    struct open_span *open = &((struct span *)self)->open;
    if (!open->task) {
        PyObject *task = running_task();
        if (PyErr_Occurred())
            PyErr_Clear(); /* its waiting will count as active */
        open->task = task;
        Py_XDECREF(task); /* its loop holds it */
        note_task(open);
    }
    return span_resume(self, unused);
}

static PyObject *span_suspend(PyObject *self, PyObject *unused)
{
    (void)unused;
    sonde_span_suspend(&((struct span *)self)->open.span);
    return new_none();
}

static void close_span(struct span *s)
{
    sonde_span_end(&s->open.span); /* nothing when it has ended */
    if (s->open.task)
        unlink_task(&s->open);
    s->open.task = NULL;
}

static PyObject *span_end(PyObject *self, PyObject *unused)
{
    (void)unused;
    close_span((struct span *)self);
    return new_none();
}

static void span_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct span *s = (struct span *)self;
    close_span(s);
    Py_CLEAR(s->zone);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef span_methods[] = {
    { "begin", span_resume, METH_NOARGS, "begin()\n--\n\nBegin, or go on." },
    { "begin_in_task", span_begin_in_task, METH_NOARGS,
      "begin_in_task()\n--\n\nBegin; suspended while the running task is." },
    { "resume", span_resume, METH_NOARGS, "resume()\n--\n\nBegin, or go on." },
    { "suspend", span_suspend, METH_NOARGS,
      "suspend()\n--\n\nFrom here on the time counts as suspended." },
    { "end", span_end, METH_NOARGS, "end()\n--\n\nEnd; further calls do nothing." },
    { NULL, NULL, 0, NULL },
};
static PyType_Slot span_slots[] = {
    { Py_tp_new, span_new },
    { Py_tp_dealloc, span_dealloc },
    { Py_tp_methods, span_methods },
    { Py_tp_doc, "Span(zone)\n--\n\nA zone that may be suspended, change threads and "
                 "overlap others: begin(), suspend(), resume(), end()." },
    { 0, NULL },
};
static PyType_Spec span_spec = {
    .name = "sonde._sonde.Span",
    .basicsize = sizeof(struct span),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = span_slots,
};

int spans_init(PyObject *module)
{
    PyTypeObject *type = add_type(module, &span_spec);
    Py_XDECREF((PyObject *)type);
    return type ? 0 : -1;
}
