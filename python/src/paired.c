/* paired.c: num/ranktest.h for Python, so that sonde.optimize judges by the same
 * statistics as `sonde check`. */
#include "module.h"

#include <stdlib.h>

#include "num/ranktest.h"

static bool read_numbers(PyObject *sequence, double *numbers, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        if (!item)
            return false;
        numbers[i] = PyFloat_AsDouble(item);
        Py_DECREF(item);
        if (numbers[i] == -1.0 && PyErr_Occurred())
            return false;
    }
    return true;
}

/* paired(differences, confidence) -> (estimate, low, high, confidence) */
PyObject *py_paired(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *sequence, *answer = NULL;
    double confidence = 0.95, *numbers = NULL;
    if (!PyArg_ParseTuple(args, "O|d:paired", &sequence, &confidence))
        return NULL;
    const Py_ssize_t count = PySequence_Size(sequence);
    if (count < 0)
        return NULL;
    if (count < 1 || count > RANKTEST_MAX_N) {
        PyErr_Format(PyExc_ValueError, "paired() needs 1 to %d differences, got %zd",
                     RANKTEST_MAX_N, count);
        return NULL;
    }
    numbers = malloc((size_t)count * sizeof *numbers);
    if (!numbers)
        return PyErr_NoMemory();

    struct ranktest r;
    if (!read_numbers(sequence, numbers, count))
        goto done;
    const int rc = ranktest_paired(numbers, (size_t)count, confidence, &r);
    if (rc == 0)
        answer = Py_BuildValue("(dddd)", r.estimate, r.low, r.high, r.confidence);
    else
        PyErr_SetString(PyExc_ValueError, "paired() needs finite differences and a "
                                          "confidence between 0 and 1");
done:
    free(numbers);
    return answer;
}
