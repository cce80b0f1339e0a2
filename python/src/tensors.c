/* tensors.c: where the host waits for the device, and where batches go over to it.
 *
 * `loss.item()`, `.cpu()`, `.tolist()`, `float(loss)`, `if mask.any():` make the host wait
 * until the device has done everything before. Such a call on a tensor that lies on a GPU is
 * a zone of phase `sync` with the line of the program that made it. `.to()` and `.cuda()`
 * of a tensor that does not are `transfer`.
 *
 * The methods are C functions of torch's tensor class. Only the pointer to the function
 * is exchanged, in the table the method's descriptor points to; the descriptor, which
 * torch's compiler and others know by identity, is the same as ever. Only tensors of
 * torch's own two classes are looked at: asking another one where it lies may run code of
 * the program (__torch_function__).
 */
#include "torch.h"

#include <string.h>

#include <sonde/tables.h>

#ifdef Py_LIMITED_API

/* Neither descriptors nor frames can be had. */
PyObject *py_watch_tensors(PyObject *module, PyObject *args)
{
    (void)module, (void)args;
    return new_ref(Py_False);
}

struct sonde_site *site_of_caller(const char *name, int phase)
{
    return sonde_site_named(name, phase, "torch", NULL, NULL);
}

#else

#include <frameobject.h>

enum kind { SYNC, TRANSFER };
enum { SLOTS = 16, PLACES = 512 };

static struct slot {
    const char *name;
    enum kind kind;
    PyCFunction function;
} slots[SLOTS];
static unsigned slot_count;
static PyObject *plain_tensor, *parameter, *device_type; /* torch's classes */
static PyObject *zone_maker; /* (name, phase, file, line) -> Zone */
static PyObject *text_is_cuda, *text_type;
static char own_code[1024]; /* torch's folder: frames in there are not the program's */

/* ---- Whose line it is -------------------------------------------------------------- */

static struct place {
    PyObject *code; /* held: its address must stay its own */
    int line;
    const char *name;
    struct sonde_site *site;
} places[PLACES];

static bool is_torchs(PyObject *code)
{
    const char *file = PyUnicode_AsUTF8(((PyCodeObject *)code)->co_filename);
    if (!file)
        PyErr_Clear();
    return file && own_code[0] && strncmp(file, own_code, strlen(own_code)) == 0;
}

static struct sonde_site *site_at(PyObject *code, int line, const char *name, int phase)
{
    size_t at = ((uintptr_t)code >> 5) * 31 + (size_t)line * 7 + ((uintptr_t)name >> 3);
    for (size_t i = 0; i < 8; i++) {
        struct place *p = &places[(at + i) % PLACES];
        if (p->code == code && p->line == line && p->name == name)
            return p->site;
        if (p->code)
            continue;
        PyObject *zone = PyObject_CallFunction(
            zone_maker, "siOi", name, phase, ((PyCodeObject *)code)->co_filename, line);
        struct sonde_site *site = zone ? site_from(zone) : NULL;
        Py_XDECREF(zone);
        if (!site)
            break;
        *p = (struct place){ new_ref(code), line, name, site };
        return site;
    }
    PyErr_Clear();
    return sonde_site_named(name, phase, "torch", NULL, NULL);
}

struct sonde_site *site_of_caller(const char *name, int phase)
{
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    struct sonde_site *site = NULL;
    for (int i = 0; frame && !site && i < 64; i++) {
        PyObject *code = (PyObject *)PyFrame_GetCode(frame);
        PyFrameObject *back = PyFrame_GetBack(frame);
        if (!is_torchs(code))
            site = site_at(code, PyFrame_GetLineNumber(frame), name, phase);
        Py_DECREF(code);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return site ? site : sonde_site_named(name, phase, "torch", NULL, NULL);
}

/* ---- Whether it is one -------------------------------------------------------------- */

static bool is_plain(const PyObject *o)
{
    return (PyObject *)Py_TYPE(o) == plain_tensor ||
           (PyObject *)Py_TYPE(o) == parameter;
}

static bool is_on_gpu(PyObject *tensor)
{
    PyObject *answer = PyObject_GetAttr(tensor, text_is_cuda);
    Py_XDECREF(answer);
    PyErr_Clear();
    return answer == Py_True;
}

/* What an argument of .to() says of the place. */
enum where { NOWHERE, HOST, GPU };

static enum where place_in(PyObject *o)
{
    PyObject *type = NULL;
    enum where where = NOWHERE;
    if (is_plain(o))
        return is_on_gpu(o) ? GPU : HOST;
    if (PyLong_Check(o) && !PyBool_Check(o))
        return GPU;
    if ((PyObject *)Py_TYPE(o) == device_type)
        type = PyObject_GetAttr(o, text_type);
    else if (PyUnicode_Check(o))
        type = new_ref(o);
    const char *text = type ? PyUnicode_AsUTF8(type) : NULL;
    if (text)
        where = strncmp(text, "cuda", 4) == 0 ? GPU
                : strcmp(text, "cpu") == 0    ? HOST
                                              : NOWHERE;
    Py_XDECREF(type);
    PyErr_Clear();
    return where;
}

static enum where target_of(const struct slot *s, PyObject *args, PyObject *kwargs)
{
    PyObject *key, *value;
    enum where where = NOWHERE;
    if (strcmp(s->name, "to") != 0)
        return GPU;
    for (Py_ssize_t i = 0; args && !where && i < PyTuple_GET_SIZE(args); i++)
        where = place_in(PyTuple_GET_ITEM(args, i));
    for (Py_ssize_t at = 0; kwargs && !where && PyDict_Next(kwargs, &at, &key, &value);)
        where = place_in(value);
    return where;
}

/* A transfer to the host is a wait for the device as well. */
static struct sonde_site *site_for(const struct slot *s, PyObject *self, PyObject *args,
                                   PyObject *kwargs)
{
    if (!sonde_on_() || !is_plain(self))
        return NULL;
    const bool on_gpu = is_on_gpu(self);
    if (s->kind == SYNC)
        return on_gpu ? site_of_caller(s->name, SONDE_SYNC) : NULL;
    const enum where target = target_of(s, args, kwargs);
    if (!on_gpu && target == GPU)
        return site_of_caller(s->name, SONDE_TRANSFER);
    return on_gpu && target == HOST ? site_of_caller(s->name, SONDE_SYNC) : NULL;
}

/* ---- The methods --------------------------------------------------------------------- */

static PyObject *without(const struct slot *s, PyObject *self, PyObject *argument)
{
    struct sonde_site *site = site_for(s, self, NULL, NULL);
    if (!site)
        return s->function(self, argument);
    sonde_begin_on_(site);
    PyObject *answer = s->function(self, argument);
    end_zone(site);
    return answer;
}

static PyObject *with(const struct slot *s, PyObject *self, PyObject *args,
                      PyObject *kwargs)
{
    const PyCFunctionWithKeywords call = (PyCFunctionWithKeywords)(void (*)(
        void))s->function;
    struct sonde_site *site = site_for(s, self, args, kwargs);
    if (!site)
        return call(self, args, kwargs);
    const uint64_t start = sonde_ticks();
    phase_begin(site);
    PyObject *answer = call(self, args, kwargs);
    phase_end(site);
    if (site->phase == SONDE_TRANSFER)
        fetches_moved(sonde_ticks() - start);
    return answer;
}

/* A C function knows nothing but its arguments: one for each place in the table. */
#define ENTRIES(X)                                                                     \
    X(0)                                                                               \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define DEFINE(n)                                                                      \
    static PyObject *plain_##n(PyObject *self, PyObject *argument)                     \
    {                                                                                  \
        return without(&slots[n], self, argument);                                     \
    }                                                                                  \
    static PyObject *keyword_##n(PyObject *self, PyObject *args, PyObject *kwargs)     \
    {                                                                                  \
        return with(&slots[n], self, args, kwargs);                                    \
    }
ENTRIES(DEFINE)
#define PLAIN(n)   plain_##n,
#define KEYWORD(n) keyword_##n,
static const PyCFunction plain[SLOTS] = { ENTRIES(PLAIN) };
static const PyCFunctionWithKeywords keyword[SLOTS] = { ENTRIES(KEYWORD) };

static bool take_method(PyObject *base, const char *name, enum kind kind)
{
    PyObject *method = PyDict_GetItemString(((PyTypeObject *)base)->tp_dict, name);
    if (!method || !Py_IS_TYPE(method, &PyMethodDescr_Type) || slot_count == SLOTS)
        return false;
    PyMethodDef *def = ((PyMethodDescrObject *)method)->d_method;
    struct slot *s = &slots[slot_count];
    *s = (struct slot){ def->ml_name, kind, def->ml_meth };
    if (def->ml_flags == METH_NOARGS)
        def->ml_meth = plain[slot_count];
    else if (def->ml_flags == (METH_VARARGS | METH_KEYWORDS))
        def->ml_meth = (PyCFunction)(void (*)(void))keyword[slot_count];
    else
        return false;
    slot_count++;
    return true;
}

/* watch_tensors(base, tensor, parameter, device, folder, make_zone) -> how many methods.
 * The tables must be writable; torch's are. */
PyObject *py_watch_tensors(PyObject *module, PyObject *args)
{
    (void)module;
    static const char *const waits[] = { "item",      "tolist",      "cpu",
                                         "__float__", "__int__",     "__bool__",
                                         "__index__", "__complex__", "nonzero" };
    static const char *const moves[] = { "to", "cuda" };
    PyObject *base;
    const char *folder;
    if (!PyArg_ParseTuple(args, "O!OOOsO", &PyType_Type, &base, &plain_tensor,
                          &parameter, &device_type, &folder, &zone_maker))
        return NULL;
    if (slot_count)
        return PyLong_FromLong(0);
    Py_INCREF(plain_tensor), Py_INCREF(parameter), Py_INCREF(device_type);
    Py_INCREF(zone_maker);
    (void)PyOS_snprintf(own_code, sizeof own_code, "%s", folder);
    text_is_cuda = PyUnicode_InternFromString("is_cuda");
    text_type = PyUnicode_InternFromString("type");
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        (void)take_method(base, waits[i], SYNC);
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        (void)take_method(base, moves[i], TRANSFER);
    return PyLong_FromLong((long)slot_count);
}

#endif
