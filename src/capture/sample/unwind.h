/* unwind.h: from registers and a piece of the stack to the chain of calls. */
#ifndef SONDE_CAPTURE_SAMPLE_UNWIND_H
#define SONDE_CAPTURE_SAMPLE_UNWIND_H

#include "capture/sample/perf.h"
#include "capture/sample/procs.h"

struct unwind_cache;

/* Rules of addresses met before, for all modules; NULL without memory. */
struct unwind_cache *unwind_cache_new(void);
void unwind_cache_free(struct unwind_cache *cache);

struct unwound {
    struct stack_place stack[STACK_DEPTH]; /* innermost first */
    unsigned depth;
    bool whole; /* the outermost frame was reached */
};

/* With unwinding tables, by frame pointers where there are none. */
void unwind_stack(struct unwind_cache *cache, struct procs *procs, struct proc *proc,
                  const struct perf_sample *sample, struct unwound *ret_stack);
/* What the kernel found by frame pointers. */
void unwind_callchain(struct procs *procs, struct proc *proc,
                      const struct perf_sample *sample, struct unwound *ret_stack);

#endif
