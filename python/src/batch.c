/* batch.c: how many samples are in a batch, and how many bytes.
 *
 * A batch is whatever a collate function makes: a tensor, a list of them, a dictionary, an
 * object of somebody's class. Asked once a batch, so nothing is walked far: a batch of a
 * thousand strings is known by its first ones.
 */
#include "fetches.h"

enum { DEEPEST = 4, WIDEST = 64 };

static PyObject *tensor_type; /* torch.Tensor, or NULL */
static struct {
    PyObject *shape, *graphs, *values, *nbytes, *element_size, *nelement;
} names;

PyObject *py_loader_tensor(PyObject *module, PyObject *type)
{
    (void)module;
    PyObject *old = tensor_type;
    tensor_type = new_ref(type);
    Py_XDECREF(old);
    return new_none();
}

/* ---- Looking at objects of others ------------------------------------------------------ */

static bool is_tensor(PyObject *o)
{
    return tensor_type && ((PyObject *)Py_TYPE(o) == tensor_type ||
                           PyObject_IsInstance(o, tensor_type) == 1);
}

static bool is_scalar(PyObject *o)
{
    return PyUnicode_Check(o) || PyBytes_Check(o) || PyLong_Check(o) ||
           PyFloat_Check(o);
}

/* New; NULL without an exception. */
static PyObject *attribute(PyObject *o, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(o, name);
    if (!value)
        PyErr_Clear();
    return value;
}

/* A number that o or what o.name() says is; −1: none. Takes o. */
static int64_t number_in(PyObject *o)
{
    PyObject *number = o ? PyNumber_Index(o) : NULL;
    const long long n = number ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    Py_XDECREF(o);
    PyErr_Clear();
    return n;
}

static int64_t answer_of(PyObject *o, PyObject *name)
{
    return number_in(PyObject_CallMethodObjArgs(o, name, NULL));
}

/* The values of a dictionary or of something like one, in a list; NULL: it is none. */
static PyObject *values_of(PyObject *o)
{
    if (PyDict_Check(o))
        return PyDict_Values(o);
    PyObject *method = attribute(o, names.values);
    PyObject *values = method && PyCallable_Check(method)
                           ? PyObject_CallObject(method, NULL)
                           : NULL;
    PyObject *list = values ? PySequence_List(values) : NULL;
    Py_XDECREF(values);
    Py_XDECREF(method);
    PyErr_Clear();
    return list;
}

/* Borrowed. */
static PyObject *part_of(PyObject *sequence, Py_ssize_t i)
{
    return PyList_Check(sequence) ? PyList_GetItem(sequence, i)
                                  : PyTuple_GetItem(sequence, i);
}

static Py_ssize_t parts_in(PyObject *sequence)
{
    return PyList_Check(sequence) ? PyList_Size(sequence) : PyTuple_Size(sequence);
}

static bool is_sequence(PyObject *o)
{
    return PyList_Check(o) || PyTuple_Check(o);
}

static bool is_plain_sequence(PyObject *o)
{
    return PyList_CheckExact(o) || PyTuple_CheckExact(o);
}

/* ---- Samples ------------------------------------------------------------------------------ */

static uint64_t samples_in(PyObject *batch, int depth);

/* The first dimension of the first part that has one. */
static uint64_t samples_in_parts(PyObject *parts, int depth)
{
    const Py_ssize_t count = parts_in(parts);
    for (Py_ssize_t i = 0; i < count && i < WIDEST; i++) {
        PyObject *part = part_of(parts, i);
        const uint64_t n = is_scalar(part) ? 0 : samples_in(part, depth + 1);
        if (n)
            return n;
    }
    return count > 0 && is_scalar(part_of(parts, 0)) ? (uint64_t)count : 0;
}

/* 0: it has none; false: it has no shape at all. */
static bool by_shape(PyObject *batch, uint64_t *ret_samples)
{
    PyObject *shape = attribute(batch, names.shape);
    if (!shape || shape == Py_None) {
        Py_XDECREF(shape);
        return false;
    }
    const int64_t n = PySequence_Size(shape) > 0
                          ? number_in(PySequence_GetItem(shape, 0))
                          : 0;
    Py_DECREF(shape);
    PyErr_Clear();
    *ret_samples = n > 0 ? (uint64_t)n : 0;
    return true;
}

/* Batches of graphs (PyG) say how many they are. */
static bool by_graphs(PyObject *batch, uint64_t *ret_samples)
{
    PyObject *graphs = attribute(batch, names.graphs);
    const bool known = graphs && PyLong_Check(graphs);
    const int64_t n = known ? number_in(new_ref(graphs)) : -1;
    Py_XDECREF(graphs);
    if (n >= 0)
        *ret_samples = (uint64_t)n;
    return n >= 0;
}

static uint64_t samples_in(PyObject *batch, int depth)
{
    uint64_t samples = 0;
    if (!is_plain_sequence(batch) &&
        (by_shape(batch, &samples) || by_graphs(batch, &samples)))
        return samples;
    if (depth >= DEEPEST)
        return 0;
    if (is_sequence(batch))
        return samples_in_parts(batch, depth);
    PyObject *values = values_of(batch);
    samples = values ? samples_in_parts(values, depth) : 0;
    Py_XDECREF(values);
    return samples;
}

uint64_t batch_samples(PyObject *batch)
{
    return samples_in(batch, 0);
}

/* ---- Bytes -------------------------------------------------------------------------------- */

struct walk {
    int left;   /* things that may still be looked at */
    bool found; /* something with a size */
    int64_t bytes;
};

static void weigh(struct walk *w, PyObject *o, int depth);

static void weigh_parts(struct walk *w, PyObject *parts, int depth)
{
    const Py_ssize_t count = parts_in(parts);
    for (Py_ssize_t i = 0; i < count && w->left >= 0; i++)
        weigh(w, part_of(parts, i), depth + 1);
}

static void weigh_one(struct walk *w, int64_t bytes)
{
    if (bytes < 0)
        return;
    w->found = true;
    w->bytes += bytes;
}

/* An object of somebody's class, a batch of graphs: its fields. No code of its class
 * runs. */
static void weigh_fields(struct walk *w, PyObject *o, int depth)
{
    PyObject *fields = PyType_Check(o) ? NULL : PyObject_GenericGetDict(o, NULL);
    PyObject *values = fields && PyDict_Check(fields) ? PyDict_Values(fields) : NULL;
    if (values)
        weigh_parts(w, values, depth);
    Py_XDECREF(values);
    Py_XDECREF(fields);
    PyErr_Clear();
}

static void weigh(struct walk *w, PyObject *o, int depth)
{
    if (--w->left < 0 || depth > DEEPEST || is_scalar(o))
        return;
    if (is_tensor(o)) {
        const int64_t each = answer_of(o, names.element_size);
        const int64_t count = answer_of(o, names.nelement);
        weigh_one(w, each >= 0 && count >= 0 ? each * count : -1);
    } else if (is_sequence(o)) {
        weigh_parts(w, o, depth);
    } else if (PyDict_Check(o)) {
        PyObject *values = PyDict_Values(o);
        if (values)
            weigh_parts(w, values, depth);
        Py_XDECREF(values);
    } else {
        const int64_t bytes = number_in(attribute(o, names.nbytes));
        if (bytes >= 0)
            weigh_one(w, bytes);
        else
            weigh_fields(w, o, depth);
    }
}

int64_t batch_bytes(PyObject *batch)
{
    struct walk w = { .left = WIDEST };
    weigh(&w, batch, 0);
    PyErr_Clear();
    return w.found && w.left >= 0 ? w.bytes : -1;
}

int batch_init(void)
{
    names.shape = PyUnicode_InternFromString("shape");
    names.graphs = PyUnicode_InternFromString("num_graphs");
    names.values = PyUnicode_InternFromString("values");
    names.nbytes = PyUnicode_InternFromString("nbytes");
    names.element_size = PyUnicode_InternFromString("element_size");
    names.nelement = PyUnicode_InternFromString("nelement");
    return names.shape && names.graphs && names.values && names.nbytes &&
                   names.element_size && names.nelement
               ? 0
               : -1;
}
