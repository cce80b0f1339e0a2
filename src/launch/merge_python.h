/* merge_python.h: the Python in native stacks, for capture_stacks.c.
 *
 * Joins the two captures that do not know each other: the sampler asks for each native
 * stack (capture/sample/sample.h), the reader of Python answers (capture/python/moment.h).
 * Used by one thread, the sampler's; it has its own view of each process, beside that of
 * the looks at a steady rate. */
#ifndef SONDE_LAUNCH_MERGE_PYTHON_H
#define SONDE_LAUNCH_MERGE_PYTHON_H

#include "capture/sample/sample.h"

struct merge_python;

struct merge_python *merge_python_new(void);
void merge_python_free(struct merge_python *merge);
/* As struct sampler_options wants it. */
int merge_python_ask(void *arg, const struct sampler_moment *moment,
                     struct merge_answer *ret_answer);

#endif
