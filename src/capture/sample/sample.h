/* sample.h: native stacks of a program and its children, counted while it runs.
 *
 *     sampler_open     before the program is executed (or of one that runs already)
 *     sampler_tick     takes over what the kernel has sampled; call until it is done
 *     sampler_close    the rest, and everything back
 *
 * Stacks are unwound with the tables compilers write for exceptions; where a module has
 * none (a JIT), by frame pointers. When that takes more than the share of a CPU that is
 * allowed, only every 2nd, 4th … sample is unwound; of the others, what the kernel finds
 * by frame pointers has to do: the innermost function is right, its callers may be few.
 */
#ifndef SONDE_CAPTURE_SAMPLE_SAMPLE_H
#define SONDE_CAPTURE_SAMPLE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/sample/merge.h"
#include "capture/sample/unwind.h"
#include "trace/control.h"

struct sampler;

/* A sample whose native stack is known, for who knows Python. */
struct sampler_moment {
    uint32_t pid, tid;
    uint64_t time_ns; /* of the sample, monotonic */
    const struct unwound *stack;
    const struct unwound_frame *frames; /* of stack */
    struct cfi_memory memory;
};

struct sampler_options {
    pid_t pid;
    unsigned rate_hz; /* samples per second of CPU time and thread */
    bool on_exec;     /* the process has not executed the program yet */
    bool paused;      /* begin with sampler_pause(…, false) */
    bool in_spells;   /* later, when the run is no longer young (spells.h) */
    /* The threads of the program then, at most `max` of them: how many there are, 0 when
     * that is not known. */
    size_t (*threads)(void *arg, pid_t *ret_tids, size_t max);
    void *threads_arg;
    /* Given: stacks are merged with those of Python (merge.h). Asked for each sample, at
     * once and by a thread of the sampler's own. SONDE_E_NOTFOUND: no Python;
     * SONDE_E_UNSUPPORTED: of an unknown version; other errors: not this time. */
    int (*python)(void *arg, const struct sampler_moment *moment,
                  struct merge_answer *ret_answer);
    void *python_arg;
    const char *dir;
    struct control *control;
};

/* When the kernel forbids it, the file of tables is written all the same: it says why.
 * *ret_why, never NULL, is a sentence for a note then. */
int sampler_open(const struct sampler_options *options, struct sampler **ret_sampler,
                 const char **ret_why);
/* The program's work begins: it is looked at as closely as at the start (spells.h), from
 * the next tick on. */
void sampler_begin_anew(struct sampler *sampler);
/* Works for a millisecond at most; returns in how many nanoseconds to come again. */
uint64_t sampler_tick(struct sampler *sampler, uint64_t now_ns);
/* Samples are thrown away while paused: the kernel goes on telling of mappings. */
void sampler_pause(struct sampler *sampler, bool paused);
void sampler_close(struct sampler *sampler);

/* Whether the kernel would let us, for `sonde doctor`: 1 yes; 0 yes, but not the time
 * spent in the kernel; negative: no, *ret_why says why and what helps. */
int sampler_probe(const char **ret_why);

#endif
