/* floor_module.c: the least a Python zone can cost, as a module `python_floor`.
 *
 *   empty     a manager whose __enter__ and __exit__ are plain functions that nobody binds
 *   usual     a manager with methods, as extensions are usually written
 *   floor(n)  nanoseconds of CPU time for n times 2 tick readings and 2 stores (floor.h)
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../floor.h"

static PyObject *nothing(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    Py_RETURN_NONE;
}

static PyObject *nothing_fast(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self, (void)args, (void)n;
    Py_RETURN_NONE;
}

static PyObject *run_floor(PyObject *self, PyObject *count)
{
    (void)self;
    unsigned long n = PyLong_AsUnsignedLong(count);
    if (PyErr_Occurred())
        return NULL;
    double start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    floor_loop(n);
    return PyFloat_FromDouble(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start);
}

#define FAST(f) ((PyCFunction)(void (*)(void))(f))
static PyMethodDef enter = { "__enter__", nothing, METH_NOARGS, NULL };
static PyMethodDef leave = { "__exit__", FAST(nothing_fast), METH_FASTCALL, NULL };
static PyMethodDef usual_methods[] = {
    { "__enter__", nothing, METH_NOARGS, NULL },
    { "__exit__", FAST(nothing_fast), METH_FASTCALL, NULL },
    { NULL, NULL, 0, NULL },
};
static PyType_Slot usual_slots[] = { { Py_tp_methods, usual_methods }, { 0, NULL } };
static PyType_Slot empty_slots[] = { { 0, NULL } };
static PyType_Spec usual_spec = { "python_floor.Usual", sizeof(PyObject), 0,
                                  Py_TPFLAGS_DEFAULT, usual_slots };
static PyType_Spec empty_spec = { "python_floor.Empty", sizeof(PyObject), 0,
                                  Py_TPFLAGS_DEFAULT, empty_slots };

static int add_instance(PyObject *module, const char *name, PyObject *type)
{
    PyObject *one = type ? PyObject_CallObject(type, NULL) : NULL;
    return one ? PyModule_AddObject(module, name, one) : -1;
}

static PyObject *empty_type(void)
{
    PyObject *type = PyType_FromSpec(&empty_spec);
    PyObject *in = PyCFunction_New(&enter, Py_None);
    PyObject *out = PyCFunction_New(&leave, Py_None);
    if (!type || !in || !out || PyObject_SetAttrString(type, "__enter__", in) < 0 ||
        PyObject_SetAttrString(type, "__exit__", out) < 0)
        return NULL;
    return type;
}

static PyMethodDef methods[] = { { "floor", run_floor, METH_O, NULL },
                                 { NULL, NULL, 0, NULL } };
static struct PyModuleDef definition = { PyModuleDef_HEAD_INIT,
                                         .m_name = "python_floor", .m_size = -1,
                                         .m_methods = methods };

PyMODINIT_FUNC PyInit_python_floor(void);
PyMODINIT_FUNC PyInit_python_floor(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module || add_instance(module, "empty", empty_type()) < 0 ||
        add_instance(module, "usual", PyType_FromSpec(&usual_spec)) < 0)
        return NULL;
    return module;
}
