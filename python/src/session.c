/* session.c: sessions, pausing, and what the recorder says about itself. */
#include "module.h"

#include <errno.h>

/* session_start(…) -> run directory. OSError by errno: EBUSY when a session is active,
 * ECANCELED when SONDE_DISABLE forbids one. */
PyObject *py_session_start(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    static char *names[] = { "output",      "name",     "level",       "max_trace",
                             "min_zone_ns", "after_ns", "duration_ns", "first_step",
                             "last_step",   "lossy",    "no_drainer",  "quiet",
                             "no_energy",   NULL };
    struct sonde_options o = { .size = sizeof o };
    unsigned long long max_trace = 0, min_zone = 0, after = 0, duration = 0, first = 0,
                       last = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$zziKKKKKKpppp:session_start",
                                     names, &o.output, &o.name, &o.level, &max_trace,
                                     &min_zone, &after, &duration, &first, &last,
                                     &o.lossy, &o.no_drainer, &o.quiet, &o.no_energy))
        return NULL;
    o.max_trace = max_trace;
    o.min_zone_ns = min_zone;
    o.after_ns = after;
    o.duration_ns = duration;
    o.first_step = first;
    o.last_step = last;
    PyThreadState *state = PyEval_SaveThread();
    int rc = sonde_session_start(&o);
    PyEval_RestoreThread(state);
    if (rc < 0) {
        PyObject *error = PyObject_CallFunction(PyExc_OSError, "is", -rc,
                                                sonde_session_error());
        if (error)
            PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_XDECREF(error);
        return NULL;
    }
    return PyUnicode_DecodeFSDefault(sonde_session_directory());
}

PyObject *py_session_stop(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyThreadState *state = PyEval_SaveThread();
    int rc = sonde_session_stop();
    PyEval_RestoreThread(state);
    return PyLong_FromLong(rc);
}

PyObject *py_session_active(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(sonde_session_active());
}

PyObject *py_session_directory(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_DecodeFSDefault(sonde_session_directory());
}

PyObject *py_pause(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    sonde_pause();
    return new_none();
}

PyObject *py_resume(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    sonde_resume();
    return new_none();
}

PyObject *py_recording(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(sonde_recording());
}

PyObject *py_lost(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(sonde_lost());
}
