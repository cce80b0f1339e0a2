/* cost.c: the formulas of <sonde/model.h> for Python: sizes by keyword, answers as dicts. */
#include "module.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <sonde/model.h>

/* Fields by name; kinds (activation, message, encoding) are names themselves. */
enum type { SIZE, RATIO, FLAG, ACTIVATION, MESSAGE, ENCODING, TEXT };

struct field {
    const char *name;
    enum type type;
    size_t offset;
};

#define LAYER(name, type)                                                              \
    {                                                                                  \
#name, type, offsetof(struct sonde_layer, name)                                \
    }
static const struct field layer_fields[] = {
    LAYER(rows, SIZE),          LAYER(in, SIZE),
    LAYER(out, SIZE),           LAYER(hidden, SIZE),
    LAYER(heads, SIZE),         LAYER(kv_heads, SIZE),
    LAYER(key_dim, SIZE),       LAYER(sequences, SIZE),
    LAYER(keys, SIZE),          LAYER(pairs, SIZE),
    LAYER(edges, SIZE),         LAYER(edge_dim, SIZE),
    LAYER(kernel, SIZE),        LAYER(kernel_width, SIZE),
    LAYER(groups, SIZE),        LAYER(repeat, SIZE),
    LAYER(sparse_ratio, RATIO), LAYER(activation, ACTIVATION),
    LAYER(message, MESSAGE),    LAYER(encoding, ENCODING),
    LAYER(no_bias, FLAG),       LAYER(causal, FLAG),
    LAYER(flash, FLAG),         LAYER(gated, FLAG),
    LAYER(no_grad, FLAG),       { NULL, SIZE, 0 },
};

#define MODEL(name, type)                                                              \
    {                                                                                  \
#name, type, offsetof(struct sonde_model_sizes, name)                          \
    }
static const struct field model_fields[] = {
    MODEL(family, TEXT),     MODEL(layers, SIZE),       MODEL(hidden, SIZE),
    MODEL(heads, SIZE),      MODEL(ffn, SIZE),          MODEL(batch, SIZE),
    MODEL(nodes, SIZE),      MODEL(edges, SIZE),        MODEL(features, SIZE),
    MODEL(outputs, SIZE),    MODEL(tokens, SIZE),       MODEL(vocabulary, SIZE),
    MODEL(message, MESSAGE), MODEL(encoding, ENCODING), MODEL(encoding_dim, SIZE),
    { NULL, SIZE, 0 },
};

static int kind_of(enum type type, const char *name)
{
    return type == ACTIVATION ? sonde_activation_of(name)
           : type == MESSAGE  ? sonde_message_of(name)
                              : sonde_encoding_of(name);
}

static bool set_size(const struct field *f, PyObject *value, char *target)
{
    const long long given = PyLong_AsLongLong(value);
    if (given == -1 && PyErr_Occurred())
        return false;
    if (given < 0) {
        PyErr_Format(PyExc_ValueError, "%s must not be negative, got %lld", f->name,
                     given);
        return false;
    }
    const uint64_t size = (uint64_t)given;
    memcpy(target, &size, sizeof size);
    return true;
}

static bool set_name(const struct field *f, PyObject *value, char *target)
{
    const char *name = PyUnicode_AsUTF8AndSize(value, NULL);
    if (!name)
        return false;
    if (f->type == TEXT) {
        memcpy(target, &name, sizeof name);
        return true;
    }
    const int kind = kind_of(f->type, name);
    if (kind < 0) {
        PyErr_Format(PyExc_ValueError, "there is no %s '%s'", f->name, name);
        return false;
    }
    memcpy(target, &kind, sizeof kind);
    return true;
}

static bool set_field(const struct field *f, PyObject *value, void *object)
{
    char *target = (char *)object + f->offset;
    if (f->type == SIZE)
        return set_size(f, value, target);
    if (f->type == RATIO) {
        const double ratio = PyFloat_AsDouble(value);
        memcpy(target, &ratio, sizeof ratio);
        return !PyErr_Occurred();
    }
    if (f->type == FLAG) {
        const int flag = PyObject_IsTrue(value);
        memcpy(target, &flag, sizeof flag);
        return flag >= 0;
    }
    return set_name(f, value, target);
}

static bool set_fields(const struct field *fields, PyObject *kwargs, void *object)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        const struct field *f = fields;
        while (name && f->name && strcmp(f->name, name) != 0)
            f++;
        if (!name || !f->name) {
            PyErr_Format(PyExc_TypeError, "there is no size '%s'", name ? name : "?");
            return false;
        }
        if (!set_field(f, value, object))
            return false;
    }
    return true;
}

/* ---- Answers ---------------------------------------------------------------------------- */

static PyObject *ops_dict(const struct sonde_ops *ops)
{
    return Py_BuildValue("{s:d,s:d,s:d,s:d}", "flops", sonde_ops_total(ops), "macs",
                         ops->macs, "elementwise", ops->elementwise, "bytes",
                         ops->bytes);
}

static PyObject *cost_dict(const struct sonde_cost *c)
{
    return Py_BuildValue("{s:N,s:N,s:d,s:d,s:d}", "forward", ops_dict(&c->forward),
                         "backward", ops_dict(&c->backward), "parameters",
                         c->parameters, "saved", c->saved, "attention", c->attention);
}

/* The layer that args and kwargs describe; false with an exception. */
static bool layer_from(PyObject *args, PyObject *kwargs, const char *kind,
                       struct sonde_layer *ret)
{
    char why[96];
    if (!kind && !PyArg_ParseTuple(args, "s:layer_cost", &kind))
        return false;
    *ret = (struct sonde_layer){ .size = sizeof *ret,
                                 .kind = sonde_layer_kind_of(kind) };
    if (ret->kind < 0) {
        PyErr_Format(PyExc_ValueError, "there is no layer '%s'", kind);
        return false;
    }
    if (!set_fields(layer_fields, kwargs, ret))
        return false;
    if (sonde_layer_error(ret, why, sizeof why)[0]) {
        PyErr_Format(PyExc_ValueError, "%s: %s", kind, why);
        return false;
    }
    return true;
}

PyObject *py_layer_cost(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    struct sonde_layer layer;
    struct sonde_cost cost = { .size = sizeof cost };
    if (!layer_from(args, kwargs, NULL, &layer))
        return NULL;
    (void)sonde_layer_cost(&layer, NULL, &cost); /* checked above */
    return cost_dict(&cost);
}

PyObject *py_model_cost(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    (void)args;
    struct sonde_model_sizes sizes = { .size = sizeof sizes };
    struct sonde_estimate e = { .size = sizeof e };
    char error[192];
    if (!set_fields(model_fields, kwargs, &sizes))
        return NULL;
    if (sonde_estimate_model(&sizes, NULL, &e, error, sizeof error) < 0)
        return PyErr_Format(PyExc_ValueError, "%s", error);
    PyObject *components = PyDict_New();
    for (size_t i = 0; components && i < e.component_count; i++) {
        PyObject *cost = cost_dict(&e.components[i].cost);
        if (!cost || PyDict_SetItemString(components, e.components[i].name, cost) < 0)
            Py_CLEAR(components);
        Py_XDECREF(cost);
    }
    if (!components)
        return NULL;
    return Py_BuildValue("{s:N,s:N}", "total", cost_dict(&e.total), "components",
                         components);
}

PyObject *py_attention_memory(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    struct sonde_layer layer;
    struct sonde_attention_memory m = { .size = sizeof m };
    if (!layer_from(args, kwargs, "attention", &layer))
        return NULL;
    (void)sonde_attention_memory(&layer, NULL, &m);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d}", "qkv", m.qkv, "scores", m.scores,
                         "probabilities", m.probabilities, "output", m.output, "total",
                         m.total);
}

PyObject *py_encoding_storage(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    static char *names[] = { "nodes", "dimensions", "buckets", "sparse_ratio", NULL };
    long long nodes, dimensions = 0, buckets = 0;
    double ratio = 0;
    struct sonde_encoding_storage s = { .size = sizeof s };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L|LLd:encoding_storage", names,
                                     &nodes, &dimensions, &buckets, &ratio))
        return NULL;
    if (nodes < 0 || dimensions < 0 || buckets < 0 ||
        sonde_encoding_storage((uint64_t)nodes, (uint64_t)dimensions, (uint64_t)buckets,
                               ratio, &s) < 0)
        return PyErr_Format(PyExc_ValueError,
                            "sizes must be positive, the ratio between "
                            "0 and 1");
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d}", "node", s.node, "relative_dense",
                         s.relative_dense, "relative_sparse", s.relative_sparse,
                         "index_dense", s.index_dense, "index_sparse", s.index_sparse);
}

/* padding_waste([10, 20, 30]) -> (of rows, of pairs) */
PyObject *py_padding_waste(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *given;
    if (!PyArg_ParseTuple(args, "O:padding_waste", &given))
        return NULL;
    PyObject *list = PySequence_List(given);
    if (!list)
        return NULL;
    const Py_ssize_t count = PyList_Size(list);
    uint64_t *nodes = PyMem_Malloc(((size_t)count + 1) * sizeof *nodes);
    bool good = nodes != NULL;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        nodes[i] = PyLong_AsUnsignedLongLong(PyList_GetItem(list, i));
        good = !PyErr_Occurred();
    }
    struct sonde_padding p = { .size = sizeof p };
    if (good && sonde_padding_waste(nodes, (size_t)count, &p) < 0) {
        PyErr_SetString(PyExc_ValueError, "no graph has a node");
        good = false;
    }
    PyMem_Free(nodes);
    Py_DECREF(list);
    return good ? Py_BuildValue("(dd)", p.node_waste, p.pair_waste) : NULL;
}
