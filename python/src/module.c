/* module.c: the module `sonde._sonde`, and the calls that need no type of their own. */
#include "module.h"

#include <math.h>
#include <string.h>

PyObject *float_or_none(double value)
{
    return isnan(value) ? new_none() : PyFloat_FromDouble(value);
}

/* What the package is called here: `sonde run` brings it under a name of its own. */
static char package[32] = "sonde";

/* set_package(name): what to import the package's own modules from. */
static PyObject *py_set_package(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    if (!PyArg_ParseTuple(args, "s:set_package", &name))
        return NULL;
    (void)PyOS_snprintf(package, sizeof package, "%s", name);
    return new_none();
}

PyObject *imported(PyObject **place, const char *module_name, const char *name)
{
    if (!*place) {
        char full[96];
        (void)PyOS_snprintf(full, sizeof full, "%s%s",
                            *module_name == '.' ? package : "", module_name);
        PyObject *module = PyImport_ImportModule(full);
        *place = module ? PyObject_GetAttrString(module, name) : NULL;
        Py_XDECREF(module);
    }
    return *place;
}

PyObject *bound_method(PyObject *callable, PyObject *instance)
{
#ifndef Py_LIMITED_API
    return PyMethod_New(callable, instance);
#else
    static PyObject *method;
    PyObject *make = imported(&method, "types", "MethodType");
    return make ? PyObject_CallFunctionObjArgs(make, callable, instance, NULL) : NULL;
#endif
}

/* Without `threading` there is only the main thread, which needs no name. */
void name_thread(void)
{
    static PyObject *function;
    static __thread bool named __attribute__((tls_model("initial-exec")));
    if (named) /* there is still no lane: recording fails, and must stay cheap */
        return;
    named = true;
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    if (!modules || !PyDict_GetItemString(modules, "threading"))
        return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *call = imported(&function, "._threads", "name_thread");
    PyObject *answer = call ? PyObject_CallObject(call, NULL) : NULL;
    Py_XDECREF(answer);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

/* ---- Phases ---------------------------------------------------------------------- */

static int unknown_phase(PyObject *phase)
{
    PyObject *names = PyUnicode_FromString(sonde_phase_name(1));
    for (int i = 2; names && i < SONDE_PHASE_COUNT; i++) {
        PyObject *more = PyUnicode_FromFormat("%U %s", names, sonde_phase_name(i));
        Py_DECREF(names);
        names = more;
    }
    if (names)
        PyErr_Format(PyExc_ValueError, "no phase %R; phases are: %U", phase, names);
    Py_XDECREF(names);
    return -1;
}

int phase_from(PyObject *phase)
{
    if (phase == Py_None)
        return SONDE_NO_PHASE;
    if (PyLong_Check(phase)) {
        long number = PyLong_AsLong(phase);
        return number >= 0 && number < SONDE_PHASE_COUNT ? (int)number
                                                         : unknown_phase(phase);
    }
    if (!PyUnicode_Check(phase))
        return unknown_phase(phase);
    for (int i = 1; i < SONDE_PHASE_COUNT; i++)
        if (PyUnicode_CompareWithASCIIString(phase, sonde_phase_name(i)) == 0)
            return i;
    return unknown_phase(phase);
}

static PyObject *phase_names(void)
{
    PyObject *names = PyTuple_New(SONDE_PHASE_COUNT - 1);
    for (int i = 1; names && i < SONDE_PHASE_COUNT; i++)
        if (PyTuple_SetItem(names, i - 1, PyUnicode_FromString(sonde_phase_name(i))) <
            0)
            Py_CLEAR(names);
    return names;
}

/* ---- Values, marks -------------------------------------------------------- */

typedef void value_function(const char *, double);

static PyObject *named_value(PyObject *args, value_function *record)
{
    const char *name;
    double value;
    if (!PyArg_ParseTuple(args, "sd", &name, &value))
        return NULL;
    record(name, value);
    return new_none();
}

static PyObject *py_value(PyObject *module, PyObject *args)
{
    (void)module;
    return named_value(args, sonde_value);
}

static PyObject *py_counter(PyObject *module, PyObject *args)
{
    (void)module;
    return named_value(args, sonde_counter);
}

static PyObject *py_metric(PyObject *module, PyObject *args)
{
    (void)module;
    return named_value(args, sonde_metric);
}

static PyObject *py_mark(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    if (!PyArg_ParseTuple(args, "s:mark", &name))
        return NULL;
    sonde_mark(name);
    return new_none();
}

typedef void note_function(const char *, const char *);

static PyObject *note(PyObject *args, note_function *record)
{
    PyObject *key, *value;
    if (!PyArg_ParseTuple(args, "UO", &key, &value))
        return NULL;
    PyObject *text = PyObject_Str(value);
    const char *k = text ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
    const char *v = k ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (v)
        record(k, v);
    Py_XDECREF(text);
    return v ? new_none() : NULL;
}

static PyObject *py_tag(PyObject *module, PyObject *args)
{
    (void)module;
    return note(args, sonde_tag);
}

static PyObject *py_param(PyObject *module, PyObject *args)
{
    (void)module;
    return note(args, sonde_param);
}

static PyObject *py_thread_name(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    if (!PyArg_ParseTuple(args, "s:thread_name", &name))
        return NULL;
    sonde_thread_name(name);
    return new_none();
}

/* ---- The module ------------------------------------------------------------------ */

PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (!type)
        return NULL;
    Py_INCREF(type); /* one for the module, one for the caller */
    if (PyModule_AddObject(module, strrchr(spec->name, '.') + 1, type) < 0) {
        Py_DECREF(type);
        Py_DECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type;
}

enum { KEYWORDS = METH_VARARGS | METH_KEYWORDS, FAST = METH_FASTCALL };

static PyMethodDef methods[] = {
    { "zone", FUNCTION(py_zone), FAST | METH_KEYWORDS,
      "zone(name, phase=None, component=None, *, category=None, **tags)\n--\n\n"
      "The zone of this name, for `with`. The same arguments give the same object; keep "
      "it\nin a variable where every nanosecond counts.\n\n"
      "    with sonde.zone(\"forward\", phase=\"forward\"):\n"
      "        loss = model(batch)\n\n"
      "It is also a decorator. In coroutines it becomes a span: time in which the task "
      "waits\nis kept apart." },
    { "begin", FUNCTION(py_begin), FAST | METH_KEYWORDS,
      "begin(zone_or_name, phase=None, component=None, **tags)\n--\n\n"
      "Begin a zone that end() will end. Returns the zone.\n\n"
      "    z = sonde.begin(\"load\")\n    ...\n    sonde.end(z)" },
    { "end", FUNCTION(py_end), FAST,
      "end(zone_or_name=None)\n--\n\nEnd the zone; without argument the last one that "
      "this thread began with begin()." },
    { "value", py_value, METH_VARARGS,
      "value(name, value)\n--\n\nAttach a number to the innermost open zone." },
    { "counter", py_counter, METH_VARARGS,
      "counter(name, value)\n--\n\nA quantity over time: queue depth, learning rate." },
    { "metric", py_metric, METH_VARARGS,
      "metric(name, value)\n--\n\nA result of the run: the last value is its metric." },
    { "mark", py_mark, METH_VARARGS,
      "mark(name)\n--\n\nA moment worth a line on the timeline." },
    { "step", FUNCTION(py_step), KEYWORDS,
      "step(samples=0)\n--\n\nOne training iteration begins; call it once per iteration.\n\n"
      "    for batch in loader:\n        sonde.step(samples=len(batch))\n        ..." },
    { "tag", py_tag, METH_VARARGS, "tag(key, value)\n--\n\nA tag of the whole run." },
    { "param", py_param, METH_VARARGS,
      "param(key, value)\n--\n\nA parameter of the whole run: batch size, model …" },
    { "thread_name", py_thread_name, METH_VARARGS,
      "thread_name(name)\n--\n\nThe name of this thread in reports." },
    { "pause", py_pause, METH_NOARGS,
      "pause()\n--\n\nStop recording in this process." },
    { "resume", py_resume, METH_NOARGS, "resume()\n--\n\nGo on after pause()." },
    { "recording", py_recording, METH_NOARGS,
      "recording()\n--\n\nWhether a zone begun now would be recorded." },
    { "lost", py_lost, METH_NOARGS,
      "lost()\n--\n\nEvents this process could not keep so far." },
    { "layer_cost", FUNCTION(py_layer_cost), KEYWORDS,
      "layer_cost(kind, **sizes)\n--\n\nWhat one layer costs, by formula (model.h)." },
    { "model_cost", FUNCTION(py_model_cost), KEYWORDS,
      "model_cost(**sizes)\n--\n\nWhat a model of a known family costs, by component." },
    { "attention_memory", FUNCTION(py_attention_memory), KEYWORDS, NULL },
    { "encoding_storage", FUNCTION(py_encoding_storage), KEYWORDS, NULL },
    { "padding_waste", py_padding_waste, METH_VARARGS, NULL },
    { "session_start", FUNCTION(py_session_start), KEYWORDS, NULL },
    { "session_stop", py_session_stop, METH_NOARGS, NULL },
    { "session_active", py_session_active, METH_NOARGS, NULL },
    { "session_directory", py_session_directory, METH_NOARGS, NULL },
    { "bench", FUNCTION(py_bench), KEYWORDS, NULL },
    { "paired", py_paired, METH_VARARGS,
      "paired(differences, confidence=0.95)\n--\n\nHodges-Lehmann estimate of pairs "
      "with its signed-rank interval: (estimate, low, high, confidence)." },
    { "task_suspended", py_task_suspended, METH_O, NULL },
    { "task_resumed", py_task_resumed, METH_O, NULL },
    { "set_phases", py_set_phases, METH_VARARGS, NULL },
    { "set_package", py_set_package, METH_VARARGS, NULL },
    { "steps_start", py_steps_start, METH_VARARGS, NULL },
    { "steps_told", py_steps_told, METH_O, NULL },
    { "steps_end", py_steps_end, METH_NOARGS, NULL },
    { "steps_forget", py_steps_forget, METH_NOARGS, NULL },
    { "optimizer_begins", py_optimizer_begins, METH_O, NULL },
    { "optimizer_made", py_optimizer_made, METH_O, NULL },
    { "watch_tensors", py_watch_tensors, METH_VARARGS, NULL },
    { "device_start", py_device_start, METH_O, NULL },
    { "device_flush", py_device_flush, METH_NOARGS, NULL },
    { "device_stop", py_device_stop, METH_NOARGS, NULL },
    { "watch_function", py_watch_function, METH_VARARGS, NULL },
    { "on_problem", py_on_problem, METH_O, NULL },
    { "module_zones", py_module_zones, METH_VARARGS, NULL },
    { "watch_modules", py_watch_modules, METH_O, NULL },
    { "module_made", FUNCTION(py_module_made), KEYWORDS, NULL },
    { "watch_range", py_watch_range, METH_VARARGS, NULL },
    { "module_counts", py_module_counts, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "sonde._sonde",
    .m_doc = "The recorder of Sonde. Use it through the package `sonde`.",
    .m_size = -1, /* one recorder per process, so one module */
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__sonde(void);
/* Loaded under a second name (`sonde run` brings this package under one of its own, and
 * the program may import it as well) it is the same module: there is one recorder. */
PyMODINIT_FUNC PyInit__sonde(void)
{
    static PyObject *made;
    if (made)
        return new_ref(made);
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    PyObject *phases = phase_names();
    if (!phases || PyModule_AddObject(module, "PHASES", phases) < 0 ||
        PyModule_AddStringConstant(module, "__version__", SONDE_VERSION) < 0 ||
        zones_init() < 0 || zone_init(module) < 0 || spans_init(module) < 0 ||
        profiled_init(module) < 0 || drive_init(module) < 0 ||
        operation_init(module) < 0 || watched_init(module) < 0 ||
        ranges_init(module) < 0 || roots_init() < 0 || hook_init(module) < 0 ||
        loaders_init(module) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    made = new_ref(module);
    return module;
}
