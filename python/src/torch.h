/* torch.h: what the files that watch torch share. None of them knows torch's headers. */
#ifndef SONDE_PYTHON_TORCH_H
#define SONDE_PYTHON_TORCH_H

#include "module.h"

/* More than 0 on a thread inside of which calls of modules are no zones of their own. */
extern __thread unsigned torch_alone __attribute__((tls_model("initial-exec")));

/* Forgets the current exception and tells on_problem()'s handler of it. */
void swallow(const char *where);
/* Calls `callable(argument)`; what it raises is swallowed, what is raised stays so. */
void tell(PyObject *callable, PyObject *argument, const char *where);

#endif
