/* bench.c: sonde_bench() with a Python callable. */
#include "module.h"

#include <errno.h>

struct call {
    PyObject *function;
    bool failed;
};

/* After an exception the remaining runs are empty; their times are not used. */
static void run(void *arg)
{
    struct call *c = arg;
    if (c->failed)
        return;
    PyObject *answer = PyObject_CallObject(c->function, NULL);
    c->failed = answer == NULL;
    Py_XDECREF(answer);
}

/* bench(function, warmup, runs) -> dict */
PyObject *py_bench(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    static char *names[] = { "function", "warmup", "runs", NULL };
    struct call c = { .failed = false };
    int warmup = 10, runs = 100;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|ii:bench", names, &c.function,
                                     &warmup, &runs))
        return NULL;
    if (warmup < 0 || runs < 1) {
        PyErr_SetString(PyExc_ValueError,
                        "bench() needs at least one run and no negative warmup");
        return NULL;
    }
    struct sonde_bench_result r;
    int rc = sonde_bench(run, &c, warmup ? warmup : -1, runs, &r);
    if (c.failed)
        return NULL;
    if (rc < 0)
        return PyErr_NoMemory();
    return Py_BuildValue(
        "{s:n,s:n,s:n,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:s}", "runs",
        (Py_ssize_t)r.runs, "warmup", (Py_ssize_t)r.warmup, "outliers",
        (Py_ssize_t)r.outliers, "mean_s", r.mean_s, "std_s", r.std_s, "min_s", r.min_s,
        "max_s", r.max_s, "median_s", r.median_s, "p95_s", r.p95_s, "ci_low_s",
        r.ci_low_s, "ci_high_s", r.ci_high_s, "total_s", r.total_s, "note", r.note);
}
