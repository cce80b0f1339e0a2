/* torch.h: what the names in a trace of torch.profiler (Kineto) stand for. */
#ifndef SONDE_IMPORT_TORCH_H
#define SONDE_IMPORT_TORCH_H

#include "import/events.h"

/* Sets phase and flags from text and category. */
void torch_classify(struct event_name *name);

/* "ProfilerStep#17". */
bool torch_is_step(const char *name);

/* On CUDA the backward pass runs on threads of autograd's engine while the main thread
 * waits without a name. Adds a zone "backward" there for each such wait. After
 * events_sort(); sorts again when it added something. */
int torch_add_backward(struct events *e);

#endif
