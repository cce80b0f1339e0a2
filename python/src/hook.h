/* hook.h: a callable in front of another one, that no traceback shows.
 *
 * Python code that wraps a function adds a frame to every traceback that passes it. A
 * Hook calls what it stands for from C: exceptions pass as if it were not there. It binds
 * as functions do, and everything that is not its own (names, signature, defaults) is
 * asked of the function: inspect finds that through __wrapped__.
 *
 * What a kind of hook does before and after the call is two C functions; kind AROUND
 * calls Python ones. Whatever they do wrong is dropped: the program never sees it.
 */
#ifndef SONDE_PYTHON_HOOK_H
#define SONDE_PYTHON_HOOK_H

#include "module.h"

struct hook;
/* What `before` remembers for `after`; on the stack of the call. */
struct hook_call {
    PyObject *const *args; /* positional ones */
    Py_ssize_t count;
    PyObject *keywords; /* their names: a tuple or a dict, or NULL */
    PyObject *owner;    /* strong or NULL: whom it is counted for */
    PyObject *raised;   /* in `after` without result: type of the exception, borrowed */
    uint64_t start;
    uint64_t number[2];
};
struct hook_kind {
    const char *name;
    /* false: `after` is not to be called. */
    bool (*before)(struct hook *hook, struct hook_call *call);
    /* result is NULL when the call raised; the exception is kept meanwhile. */
    void (*after)(struct hook *hook, struct hook_call *call, PyObject *result);
};
struct hook {
    PyObject_HEAD
    vectorcallfunc call;
    const struct hook_kind *kind;
    PyObject *function;
    PyObject *owner;          /* what the kind needs, or NULL */
    PyObject *before, *after; /* of AROUND */
    PyObject *weak;
};

extern PyTypeObject *hook_type;
extern const struct hook_kind *const hook_kinds[];
PyObject *hook_new(const struct hook_kind *kind, PyObject *function, PyObject *owner);
int hook_init(PyObject *module);

/* Whether a name is one of those only the hook itself answers. */
int hook_getattr_special(PyObject *name);

#endif
