/* torch.h: what the files that watch torch share. None of them knows torch's headers. */
#ifndef SONDE_PYTHON_TORCH_H
#define SONDE_PYTHON_TORCH_H

#include "module.h"

/* More than 0 on a thread inside of which calls of modules are no zones of their own. */
extern __thread unsigned torch_alone __attribute__((tls_model("initial-exec")));

/* next.c: a tensor went to a device, in so many ticks. */
void fetches_moved(uint64_t ticks);

/* Forgets the current exception and tells on_problem()'s handler of it. */
void swallow(const char *where);
/* device.c: the GPU's time. Set while CUDA is in use. */
extern int device_on;
void device_enter(const struct sonde_site *site);
void device_leave(void);

/* turns.c: how many calls of the site the one that begins now stands for; 0: no marks. */
unsigned turns_next(const struct sonde_site *site);
/* … marks took so long. */
void turns_cost(uint64_t ticks);
/* … calls, and those with marks, since the last time asked. */
void turns_take(uint64_t *ret_calls, uint64_t *ret_timed);
void turns_reset(void);

/* steps.c: something of the training has ended. */
void steps_worked(void);
/* … the batch fetched last, on this thread, is one of an evaluation that goes on. */
bool steps_evaluating(void);

/* A zone begins and ends; with a phase of its own, on the device as well. */
static inline void phase_begin(struct sonde_site *site)
{
    if (!SONDE_LIKELY_(!device_on) && site->phase)
        device_enter(site);
    sonde_begin_on_(site);
}

static inline void phase_end(struct sonde_site *site)
{
    end_zone(site);
    if (site->phase >= SONDE_BACKWARD && site->phase <= SONDE_OPTIMIZER)
        steps_worked();
    if (!SONDE_LIKELY_(!device_on) && site->phase)
        device_leave();
}

/* tensors.c: a site for the line of the program that is being executed. */
struct sonde_site *site_of_caller(const char *name, int phase);

/* roots.c: whether torch keeps gradients at the moment. */
bool roots_gradients(void);
/* … the module trained last is switched to evaluation now, and was not then. */
bool roots_switched(void);
/* … how often a module was called to evaluate. */
uint64_t roots_evaluations(void);
/* … how often one that can be trained was called with gradients, and without. */
uint64_t roots_trained(void);
uint64_t roots_asked(void);

/* watched.c: how often it was called. */
bool watched_check(PyObject *o);
uint64_t watched_calls(PyObject *watched);

/* ranges.c: around the call of a method that begins or ends a range; `failed`: it
 * raised something. */
void range_before(PyObject *range, PyObject *manager);
void range_after(PyObject *range, PyObject *manager, bool failed);
bool range_check(PyObject *o);
/* Calls `callable(argument)`; what it raises is swallowed, what is raised stays so. */
void tell(PyObject *callable, PyObject *argument, const char *where);

#endif
