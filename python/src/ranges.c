/* ranges.c: ranges that a program names itself (torch's record_function) become zones.
 *
 * A Range looks at the two methods of such a context manager when they are called
 * (calls.c; where that cannot be, it stands inside them, as a constant of their code:
 * sonde/_torch/ranges.py). It takes the manager's name. torch names its own doings in the same way, steps of
 * optimizers among them; for those Python code may be told.
 */
#include "torch.h"

struct range {
    PyObject_HEAD
    PyObject *function; /* the method */
    PyObject *describe; /* name -> (zone, told at begin or None) or None */
    PyObject *known;    /* dict: name -> that answer */
    int leaves;
};

static PyObject *text_name;
enum {
    MOST_NAMES = 4096
}; /* names made anew each time (f"step {i}") must not pile up */

/* Borrowed; NULL without an exception when there is nothing to record. */
static PyObject *look_up(struct range *r, PyObject *manager)
{
    PyObject *name = PyObject_GetAttr(manager, text_name);
    PyObject *found = name ? PyDict_GetItemWithError(r->known, name) : NULL;
    if (name && !found && !PyErr_Occurred() && !r->leaves &&
        PyDict_Size(r->known) < MOST_NAMES) {
        PyObject *made = PyObject_CallFunctionObjArgs(r->describe, name, NULL);
        if (made && PyDict_SetItem(r->known, name, made) == 0)
            found = PyDict_GetItemWithError(r->known, name);
        Py_XDECREF(made);
    }
    Py_XDECREF(name);
    if (PyErr_Occurred())
        swallow("a named range");
    return found && PyTuple_Check(found) ? found : NULL;
}

static void begin_range(struct range *r, PyObject *manager)
{
    PyObject *found = look_up(r, manager);
    if (!found)
        return;
    PyObject *told = PyTuple_GetItem(found, 1);
    if (told && told != Py_None)
        tell(told, manager, "a range of torch");
    struct sonde_site *site = site_from(PyTuple_GetItem(found, 0));
    if (site && sonde_on_())
        phase_begin(site);
    else if (!site)
        PyErr_Clear();
}

static void end_range(struct range *r, PyObject *manager)
{
    PyObject *found = look_up(r, manager);
    struct sonde_site *site = found ? site_from(PyTuple_GetItem(found, 0)) : NULL;
    if (site)
        phase_end(site);
    PyErr_Clear();
}

/* The zone encloses what torch does for the range itself. */
void range_before(PyObject *range, PyObject *manager)
{
    if (!((struct range *)range)->leaves)
        begin_range((struct range *)range, manager);
}

void range_after(PyObject *range, PyObject *manager, bool failed)
{
    PyObject *type, *value, *traceback;
    if (!((struct range *)range)->leaves && !failed)
        return;
    PyErr_Fetch(&type, &value, &traceback);
    end_range((struct range *)range, manager);
    PyErr_Restore(type, value, traceback);
}

static PyObject *range_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *manager = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
    if (manager)
        range_before(self, manager);
    PyObject *answer = PyObject_Call(((struct range *)self)->function, args, kwargs);
    if (manager)
        range_after(self, manager, !answer);
    return answer;
}

static PyObject *range_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "function", "describe", "known", "leaves", NULL };
    PyObject *function, *describe, *known;
    int leaves;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO!p:Range", names, &function,
                                     &describe, &PyDict_Type, &known, &leaves))
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct range *r = (struct range *)alloc(type, 0);
    if (!r)
        return NULL;
    r->function = new_ref(function);
    r->describe = new_ref(describe);
    r->known = new_ref(known);
    r->leaves = leaves;
    return (PyObject *)r;
}

/* Lives in a code object's constants, for good: nothing to collect. */
static void range_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct range *r = (struct range *)self;
    Py_XDECREF(r->function);
    Py_XDECREF(r->describe);
    Py_XDECREF(r->known);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyType_Slot range_slots[] = {
    { Py_tp_new, range_new },
    { Py_tp_dealloc, range_dealloc },
    { Py_tp_call, range_call },
    { 0, NULL },
};
static PyType_Spec range_spec = {
    .name = "sonde._sonde.Range",
    .basicsize = sizeof(struct range),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = range_slots,
};

static PyTypeObject *range_type;

bool range_check(PyObject *o)
{
    return Py_TYPE(o) == range_type;
}

int ranges_init(PyObject *module)
{
    text_name = PyUnicode_InternFromString("name");
    range_type = add_type(module, &range_spec);
    return range_type && text_name ? 0 : -1;
}
