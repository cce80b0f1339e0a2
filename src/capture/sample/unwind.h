/* unwind.h: from registers and a piece of the stack to the chain of calls. */
#ifndef SONDE_CAPTURE_SAMPLE_UNWIND_H
#define SONDE_CAPTURE_SAMPLE_UNWIND_H

#include "capture/sample/perf.h"
#include "capture/sample/procs.h"

struct unwind_cache;

/* Rules of addresses met before, for all modules; NULL without memory. */
struct unwind_cache *unwind_cache_new(void);
void unwind_cache_free(struct unwind_cache *cache);

/* What a frame was found by. */
struct unwound_frame {
    uint64_t pc;             /* of a caller, in its call instruction; 0: the kernel */
    uint64_t low, high;      /* its piece of the stack; high 0: not known */
    uint64_t regs[CFI_REGS]; /* in it; of a caller only those that calls keep */
    bool caller;
    bool resumed; /* found by unwind_resume(): of the registers none is known */
};

struct unwound {
    struct stack_place stack[STACK_DEPTH]; /* innermost first */
    unsigned depth;
    bool whole; /* the outermost frame was reached */
};

/* With unwinding tables, by frame pointers where there are none. */
void unwind_stack(struct unwind_cache *cache, struct procs *procs, struct proc *proc,
                  const struct perf_sample *sample, struct unwound *ret_stack);
/* The same, and what each frame was found by: room for STACK_DEPTH; NULL: not wanted. */
void unwind_frames(struct unwind_cache *cache, struct procs *procs, struct proc *proc,
                   const struct perf_sample *sample, struct unwound *ret_stack,
                   struct unwound_frame *ret_frames);
/* Where a stack was cut but somebody knows a frame further out: goes on from there, with the
 * return address into it and what the stack pointer is behind that. */
void unwind_resume(struct unwind_cache *cache, struct procs *procs, struct proc *proc,
                   const struct perf_sample *sample, uint64_t pc, uint64_t sp,
                   struct unwound *stack, struct unwound_frame *frames);
/* What the kernel found by frame pointers. */
void unwind_callchain(struct procs *procs, struct proc *proc,
                      const struct perf_sample *sample, struct unwound *ret_stack);

#endif
