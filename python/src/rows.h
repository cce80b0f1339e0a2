/* rows.h: what the shapes of batches tell. With the GIL held; exceptions are swallowed. */
#ifndef SONDE_PYTHON_ROWS_H
#define SONDE_PYTHON_ROWS_H

#include "module.h"

/* A model that is trained was called, and gave this. */
void rows_seen(PyObject *args, PyObject *kwargs, PyObject *result);
/* A batch was made: padding by its attention_mask, if it has one. */
void rows_mask(PyObject *batch);
int rows_init(PyObject *module);

#endif
