/* calls.c: zones around calls of a Python function that stays what it is.
 *
 * A function object has a pointer to the C code that calls it. Ours records a zone and goes
 * on to the one that was there. Name, code, identity, signature, source, pickles: nothing
 * about the function changes, whoever imported it before sees it too, and torch's compiler,
 * which reads the function's code, sees what it always saw.
 *
 * The interpreter skips that pointer for functions it can enter by itself. From 3.12 on it
 * looks whether the pointer is the usual one; up to 3.10 it always uses it. 3.11 looks at
 * the object's type alone: there the function gets a type below `function` that differs in
 * nothing but its address. With the limited API none of this can be had; then the caller
 * puts a Watched in the function's place.
 */
#include "torch.h"

#ifdef Py_LIMITED_API

PyObject *py_watch_function(PyObject *module, PyObject *args)
{
    (void)module, (void)args;
    return new_ref(Py_False);
}

PyObject *py_watch_range(PyObject *module, PyObject *args)
{
    return py_watch_function(module, args);
}

#else

enum { MOST = 256 };
static struct call {
    PyObject *function; /* ours to hold: never freed */
    vectorcallfunc next;
    struct sonde_site *site;
    bool by_caller; /* the site's name and phase, the caller's line */
    PyObject *
        told; /* instead of a site: called with the arguments of calls that went well */
    PyObject *range; /* instead of a site: a Range, which knows by the first argument */
    unsigned alone;
} calls[MOST];
static unsigned count;

static const struct call *call_of(const PyObject *function)
{
    unsigned i = 0;
    while (calls[i].function != function) /* there: who else would call us */
        i++;
    return &calls[i];
}

static PyObject *call_range(const struct call *c, PyObject *const *args, size_t nargsf,
                            PyObject *kwnames)
{
    const bool any = PyVectorcall_NARGS(nargsf) > 0;
    if (any)
        range_before(c->range, args[0]);
    PyObject *answer = c->next(c->function, args, nargsf, kwnames);
    if (any)
        range_after(c->range, args[0], !answer);
    return answer;
}

static void tell_of(const struct call *c, PyObject *const *args, Py_ssize_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++)
        PyTuple_SET_ITEM(tuple, i, new_ref(args[i]));
    if (tuple)
        tell(c->told, tuple, "a call");
    else
        PyErr_Clear();
    Py_XDECREF(tuple);
}

static PyObject *call_told(const struct call *c, PyObject *const *args, size_t nargsf,
                           PyObject *kwnames)
{
    PyObject *answer = c->next(c->function, args, nargsf, kwnames);
    if (answer)
        tell_of(c, args, PyVectorcall_NARGS(nargsf));
    return answer;
}

static PyObject *call_function(PyObject *function, PyObject *const *args, size_t nargsf,
                               PyObject *kwnames)
{
    const struct call *c = call_of(function);
    if (c->range)
        return call_range(c, args, nargsf, kwnames);
    if (c->told)
        return call_told(c, args, nargsf, kwnames);
    if (!sonde_on_())
        return c->next(function, args, nargsf, kwnames);
    struct sonde_site *site = c->by_caller
                                  ? site_of_caller(c->site->name, c->site->phase)
                                  : c->site;
    phase_begin(site);
    torch_alone += c->alone;
    PyObject *answer = c->next(function, args, nargsf, kwnames);
    torch_alone -= c->alone;
    phase_end(site);
    return answer;
}

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
/* Functions are pickled by name; the pickler knows that of their own type alone. */
static PyObject *reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}
static PyMethodDef reduce_method = { "__reduce__", reduce, METH_NOARGS, NULL };

/* type() gives a class attributes that would hide those of the function. */
static void remove_names(PyTypeObject *type)
{
    static const char *const names[] = { "__module__", "__doc__", "__slots__" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (PyDict_DelItemString(type->tp_dict, names[i]) < 0)
            PyErr_Clear();
    PyType_Modified(type);
}

static PyObject *type_below(void)
{
    static PyObject *type;
    if (type)
        return type;
    const unsigned long flags = PyFunction_Type.tp_flags;
    PyFunction_Type.tp_flags |= Py_TPFLAGS_BASETYPE; /* for a moment, under the GIL */
    type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s:(),s:s}", "function",
                                 (PyObject *)&PyFunction_Type, "__slots__",
                                 "__module__", "builtins");
    PyFunction_Type.tp_flags = flags;
    PyObject *method = type ? PyDescr_NewMethod((PyTypeObject *)type, &reduce_method)
                            : NULL;
    if (!method || PyObject_SetAttrString(type, "__reduce__", method) < 0 ||
        ((PyTypeObject *)type)->tp_basicsize != PyFunction_Type.tp_basicsize)
        Py_CLEAR(type);
    else
        remove_names((PyTypeObject *)type);
    Py_XDECREF(method);
    return type;
}

static bool redirect(PyFunctionObject *f)
{
    PyObject *type = type_below();
    if (!type)
        return false;
    Py_SET_TYPE((PyObject *)f, (PyTypeObject *)new_ref(type));
    f->vectorcall = call_function;
    return true;
}
#elif PY_VERSION_HEX >= 0x030C0000
static bool redirect(PyFunctionObject *f)
{
    PyFunction_SetVectorcall(f, call_function);
    return true;
}
#else
static bool redirect(PyFunctionObject *f)
{
    f->vectorcall = call_function;
    return true;
}
#endif

static PyObject *watch(struct call call)
{
    if (!PyFunction_Check(call.function) || count == MOST)
        return new_ref(Py_False);
    PyFunctionObject *f = (PyFunctionObject *)call.function;
    call.next = f->vectorcall;
    calls[count] = call;
    if (!redirect(f)) {
        PyErr_Clear();
        return new_ref(Py_False);
    }
    Py_INCREF(call.function);
    Py_XINCREF(call.range);
    Py_XINCREF(call.told);
    count++;
    return new_ref(Py_True);
}

/* watch_function(function, zone, alone, by_caller): whether calls of it are zones from now on. Any
 * other callable instead of a zone is told of each call that went well. */
PyObject *py_watch_function(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *function, *zone;
    int alone = 0, by_caller = 0;
    if (!PyArg_ParseTuple(args, "OO|pp:watch_function", &function, &zone, &alone,
                          &by_caller))
        return NULL;
    if (!is_zone(zone))
        return watch((struct call){ .function = function, .told = zone });
    struct sonde_site *site = site_from(zone);
    if (!site)
        return NULL;
    return watch((struct call){ .function = function,
                                .site = site,
                                .by_caller = by_caller,
                                .alone = (unsigned)alone });
}

/* watch_range(function, range): the same for a method that begins or ends a range. */
PyObject *py_watch_range(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *function, *range;
    if (!PyArg_ParseTuple(args, "OO:watch_range", &function, &range))
        return NULL;
    if (!range_check(range))
        return PyErr_Format(PyExc_TypeError, "not a Range: %R", range);
    return watch((struct call){ .function = function, .range = range });
}

#endif
