/* rows.c: what shapes tell: rows of a model's batch, and padding in it.
 *
 * Programs that slice their batches by hand have no loader that knows their size; the
 * model that is trained sees them. What is kept is how many rows it gives results for,
 * which is the size of the batch or more, never less: the first dimension where input
 * and output agree that it is one (a row of results for each row of input, pictures),
 * else everything but the last dimension of the output (sequences, whichever way they
 * lie). One in so many calls is looked at.
 *
 * Padding: pad_sequence() says all of it by the lengths of what it gets. Batches with an
 * attention_mask tell by their zeros, batches of tokens by the one value that their rows
 * end with (or begin with): some are looked at where they are made, on the host.
 *
 * Nothing of a tensor is read but its shape, masks and tokens on the host apart.
 */
#include "rows.h"

#include "fetches.h"

enum {
    LOOK_FIRST = 64, /* calls, before only some are looked at, … */
    LOOK_EVERY = 16, /* … one in so many */
    DIMENSIONS = 8,
    SEQUENCES = 65536, /* of a batch, at most */
    MASK_MOST = 1 << 20,
    LENGTH_LEAST = 8, /* of rows that may be sequences, not records */
};

static PyObject *tensor; /* torch.Tensor, or NULL */
static PyObject *text_shape, *text_mask, *text_data, *text_is_cuda, *text_floating,
    *text_count, *text_is_cpu, *text_complex, *text_contiguous, *text_width,
    *text_pointer;

/* rows_tensor(type): torch.Tensor */
static PyObject *py_rows_tensor(PyObject *module, PyObject *type)
{
    (void)module;
    PyObject *old = tensor;
    tensor = new_ref(type);
    Py_XDECREF(old);
    return new_none();
}

/* Others may run code of the program when they are asked. */
static bool is_plain(const PyObject *o)
{
    return o && tensor && (PyObject *)Py_TYPE(o) == tensor;
}

struct shape {
    int count; /* −1: unknown */
    int64_t size[DIMENSIONS];
};

static struct shape shape_of(PyObject *o)
{
    struct shape s = { .count = -1 };
    PyObject *shape = is_plain(o) ? PyObject_GetAttr(o, text_shape) : NULL;
    const Py_ssize_t n = shape && PyTuple_Check(shape) ? PyTuple_Size(shape) : -1;
    if (n >= 0 && n <= DIMENSIONS)
        s.count = (int)n;
    for (int i = 0; i < s.count; i++)
        s.size[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    Py_XDECREF(shape);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        s.count = -1;
    }
    return s;
}

/* The process's own, whoever has loaders. */
static struct loader_sum_row *sum_of(enum loader_sum what)
{
    return book_open() ? book_sum(LOADER_OF_WORKER, what, NULL, 0) : NULL;
}

/* ---- Rows -------------------------------------------------------------------------- */

/* The first tensor among them; borrowed, NULL none. */
static PyObject *first_of(PyObject *o)
{
    PyObject *key, *value;
    if (is_plain(o))
        return o;
    if (o && PyTuple_Check(o) && PyTuple_Size(o) > 0)
        return first_of(PyTuple_GetItem(o, 0));
    if (o && PyList_Check(o) && PyList_Size(o) > 0)
        return first_of(PyList_GetItem(o, 0));
    for (Py_ssize_t at = 0; o && PyDict_Check(o) && PyDict_Next(o, &at, &key, &value);)
        if (is_plain(value) && shape_of(value).count > 0)
            return value;
    return NULL;
}

static int64_t all_but_last(const struct shape *s)
{
    int64_t rows = 1;
    for (int i = 0; i + 1 < s->count; i++)
        rows *= s->size[i];
    return s->count == 1 ? s->size[0] : rows;
}

/* 0: cannot be told. */
static int64_t rows_in(const struct shape *in, const struct shape *out)
{
    const bool pictures = in->count == 4 || in->count == 5;
    if (in->count < 1)
        return 0;
    if (out->count < 1) /* the loss itself, or nothing we know */
        return pictures ? in->size[0] : all_but_last(in);
    if (in->size[0] != out->size[0])
        return in->size[0] > all_but_last(out) ? in->size[0] : all_but_last(out);
    return out->count <= 2 || pictures ? in->size[0] : all_but_last(out);
}

void rows_seen(PyObject *args, PyObject *kwargs, PyObject *result)
{
    static uint64_t calls;
    if (calls++ >= LOOK_FIRST && calls % LOOK_EVERY != 0)
        return;
    PyObject *first = first_of(args);
    const struct shape in = shape_of(first ? first : first_of(kwargs));
    const struct shape out = shape_of(first_of(result));
    const int64_t rows = rows_in(&in, &out);
    struct loader_sum_row *sum = rows > 0 ? sum_of(LOADER_ROWS) : NULL;
    if (sum && calls > LOOK_FIRST)
        put64(&sum->every, 0);
    sum_add(sum, (uint64_t)rows);
    PyErr_Clear();
}

/* ---- Padding ----------------------------------------------------------------------- */

static bool lengths_told; /* by pad_sequence(): nothing needs to be guessed */

static void add_padding(uint64_t cells, uint64_t filled)
{
    struct loader_sum_row *all = cells ? sum_of(LOADER_CELLS) : NULL;
    struct loader_sum_row *real = all ? sum_of(LOADER_FILLED) : NULL;
    if (!real)
        return;
    sum_add(real, filled);
    sum_add(all, cells);
}

static bool add_length(PyObject *sequence, uint64_t *longest, uint64_t *sum)
{
    const struct shape s = shape_of(sequence);
    if (s.count < 1 || s.size[0] < 0)
        return false;
    const uint64_t length = (uint64_t)s.size[0];
    *longest = length > *longest ? length : *longest;
    *sum += length;
    return true;
}

/* padded(arguments): of a call of pad_sequence() that went well. */
static PyObject *py_padded(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list = PyTuple_Check(args) && PyTuple_Size(args) > 0
                         ? PyTuple_GetItem(args, 0)
                         : NULL;
    const bool is_list = list && PyList_Check(list);
    const Py_ssize_t count = is_list                       ? PyList_Size(list)
                             : list && PyTuple_Check(list) ? PyTuple_Size(list)
                                                           : 0;
    uint64_t longest = 0, sum = 0;
    bool known = sonde_on_() && count > 0 && count <= SEQUENCES;
    for (Py_ssize_t i = 0; known && i < count; i++)
        known = add_length(is_list ? PyList_GetItem(list, i) : PyTuple_GetItem(list, i),
                           &longest, &sum);
    if (known)
        add_padding((uint64_t)count * longest, sum);
    lengths_told |= known;
    return new_none();
}

/* ---- Masks ------------------------------------------------------------------------- */

/* New, or NULL: in the batch, or in what it keeps as `data` (transformers' own dictionary),
 * or in the first of several parts. */
static PyObject *mask_in(PyObject *batch, int depth)
{
    if (PyDict_Check(batch)) {
        PyObject *mask = PyDict_GetItemWithError(batch, text_mask);
        return mask ? new_ref(mask) : NULL;
    }
    if (depth > 0 || is_plain(batch))
        return NULL;
    if (PyTuple_Check(batch) && PyTuple_Size(batch) > 0)
        return mask_in(PyTuple_GetItem(batch, 0), depth + 1);
    if (PyList_Check(batch))
        return PyList_Size(batch) > 0 ? mask_in(PyList_GetItem(batch, 0), depth + 1)
                                      : NULL;
    PyObject *data = PyObject_GetAttr(batch, text_data);
    PyObject *mask = data && PyDict_Check(data) ? mask_in(data, depth + 1) : NULL;
    Py_XDECREF(data);
    PyErr_Clear();
    return mask;
}

/* Masks of floats are added to scores: there zeros are what counts. */
static bool is_of_tokens(PyObject *mask)
{
    PyObject *cuda = PyObject_GetAttr(mask, text_is_cuda);
    PyObject *floating = cuda == Py_False
                             ? PyObject_CallMethodObjArgs(mask, text_floating, NULL)
                             : NULL;
    Py_XDECREF(cuda);
    Py_XDECREF(floating);
    return floating == Py_False;
}

static void look_at_mask(PyObject *mask)
{
    const struct shape s = shape_of(mask);
    const int64_t cells = s.count == 2 ? s.size[0] * s.size[1] : 0;
    if (cells > 0 && cells <= MASK_MOST && is_of_tokens(mask)) {
        PyObject *answer = PyObject_CallMethodObjArgs(mask, text_count, NULL);
        PyObject *number = answer ? PyNumber_Long(answer) : NULL;
        const long long filled = number ? PyLong_AsLongLong(number) : -1;
        if (filled >= 0 && !PyErr_Occurred())
            add_padding((uint64_t)cells, (uint64_t)filled);
        Py_XDECREF(answer);
        Py_XDECREF(number);
    }
}

/* ---- Tokens ------------------------------------------------------------------------ */

struct tokens {
    const void *data;
    int64_t rows, length;
    bool wide; /* 64 bits each, else 32 */
};

static int64_t token_at(const struct tokens *t, int64_t row, int64_t column)
{
    const int64_t at = row * t->length + column;
    return t->wide ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
}

/* The value at one end of most rows; false: there is none. */
static bool usual_end(const struct tokens *t, int64_t column, int64_t *ret_value)
{
    int64_t value = 0, lead = 0, count = 0;
    for (int64_t i = 0; i < t->rows; i++) { /* the majority, if there is one */
        const int64_t v = token_at(t, i, column);
        value = lead ? value : v;
        lead += lead == 0 || v == value ? 1 : -1;
    }
    for (int64_t i = 0; i < t->rows; i++)
        count += token_at(t, i, column) == value;
    *ret_value = value;
    return 2 * count > t->rows;
}

/* Cells from one end of the rows on that hold nothing but the value most rows end with. */
static int64_t padded_from(const struct tokens *t, bool end)
{
    int64_t value, sum = 0;
    if (!usual_end(t, end ? t->length - 1 : 0, &value))
        return 0;
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t n = 0;
        while (n < t->length && token_at(t, i, end ? t->length - 1 - n : n) == value)
            n++;
        sum += n;
    }
    return sum;
}

static long long asked(PyObject *o, PyObject *method)
{
    PyObject *answer = PyObject_CallMethodObjArgs(o, method, NULL);
    const long long value = answer ? PyLong_AsLongLong(answer) : -1;
    Py_XDECREF(answer);
    PyErr_Clear();
    return value;
}

static bool is_cpu(PyObject *o)
{
    PyObject *answer = PyObject_GetAttr(o, text_is_cpu);
    Py_XDECREF(answer);
    PyErr_Clear();
    return answer == Py_True;
}

/* Whole numbers of 32 or 64 bits on the host, row behind row. */
static bool tokens_of(PyObject *o, struct tokens *ret_tokens)
{
    const struct shape s = shape_of(o);
    if (s.count != 2 || s.size[0] < 2 || s.size[1] < LENGTH_LEAST ||
        s.size[0] > MASK_MOST / s.size[1] || !is_cpu(o) ||
        asked(o, text_floating) != 0 || asked(o, text_complex) != 0 ||
        asked(o, text_contiguous) != 1)
        return false;
    const long long width = asked(o, text_width), at = asked(o, text_pointer);
    *ret_tokens = (struct tokens){ (const void *)(uintptr_t)at, s.size[0], s.size[1],
                                   width == 8 };
    return at > 0 && (width == 8 || width == 4);
}

static bool look_at_tokens(PyObject *o)
{
    struct tokens t;
    if (!is_plain(o) || !tokens_of(o, &t))
        return false;
    const int64_t cells = t.rows * t.length;
    const int64_t at_end = padded_from(&t, true), at_start = padded_from(&t, false);
    const int64_t padding = at_end > at_start ? at_end : at_start;
    /* A batch of nothing but one value says nothing of lengths. */
    if (padding < cells)
        add_padding((uint64_t)cells, (uint64_t)(cells - padding));
    return true;
}

/* The first tensor of tokens in a batch. */
static void look_for_tokens(PyObject *batch)
{
    PyObject *key, *value;
    bool found = look_at_tokens(batch);
    if (PyTuple_Check(batch))
        for (Py_ssize_t i = 0; !found && i < PyTuple_Size(batch); i++)
            found = look_at_tokens(PyTuple_GetItem(batch, i));
    else if (PyList_Check(batch))
        for (Py_ssize_t i = 0; !found && i < PyList_Size(batch); i++)
            found = look_at_tokens(PyList_GetItem(batch, i));
    else if (PyDict_Check(batch))
        for (Py_ssize_t at = 0; !found && PyDict_Next(batch, &at, &key, &value);)
            found = look_at_tokens(value);
}

void rows_mask(PyObject *batch)
{
    PyObject *mask = tensor ? mask_in(batch, 0) : NULL;
    if (mask)
        look_at_mask(mask);
    else if (tensor && !lengths_told)
        look_for_tokens(batch);
    Py_XDECREF(mask);
    PyErr_Clear();
}

static PyMethodDef functions[] = {
    { "rows_tensor", py_rows_tensor, METH_O, NULL },
    { "padded", py_padded, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};

int rows_init(PyObject *module)
{
    text_shape = PyUnicode_InternFromString("shape");
    text_mask = PyUnicode_InternFromString("attention_mask");
    text_data = PyUnicode_InternFromString("data");
    text_is_cuda = PyUnicode_InternFromString("is_cuda");
    text_floating = PyUnicode_InternFromString("is_floating_point");
    text_count = PyUnicode_InternFromString("count_nonzero");
    text_is_cpu = PyUnicode_InternFromString("is_cpu");
    text_complex = PyUnicode_InternFromString("is_complex");
    text_contiguous = PyUnicode_InternFromString("is_contiguous");
    text_width = PyUnicode_InternFromString("element_size");
    text_pointer = PyUnicode_InternFromString("data_ptr");
    return text_shape && text_mask && text_data && text_is_cuda && text_floating &&
                   text_count && text_is_cpu && text_complex && text_contiguous &&
                   text_width && text_pointer
               ? PyModule_AddFunctions(module, functions)
               : -1;
}
