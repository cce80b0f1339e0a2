/* torch.h: what the names in a trace of torch.profiler (Kineto) stand for. */
#ifndef SONDE_IMPORT_TORCH_H
#define SONDE_IMPORT_TORCH_H

#include "import/events.h"

/* Sets phase and flags from text and category. */
void torch_classify(struct event_name *name);

/* Whether the name decides the phase of its zone: a guess gives way to the phase around. */
static inline bool torch_phase_counts(const struct event_name *n, int around)
{
    return n->phase && !(n->is_weak && around);
}

/* What the profiler says of itself: its window, its span, and the shadows that
 * annotations of the host throw on a card. None of it is work. */
bool torch_is_bookkeeping(const char *name, const char *category);

/* "ProfilerStep#17". */
bool torch_is_step(const char *name);

/* On CUDA the backward pass runs on threads of autograd's engine while the main thread
 * waits without a name. Adds a zone "backward" there for each such wait. After
 * events_sort(); sorts again when it added something. */
int torch_add_backward(struct events *e);

#endif
