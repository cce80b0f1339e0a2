/* hang.h: has the program stopped getting anywhere?
 *
 * With steps: none for 10 × the p99 of the time between them, 60 s at least. Without:
 * hardly any CPU time and no I/O in the whole tree for that long while zones are open;
 * a program that sleeps with no zone open is nobody's business.
 *
 * The supervisor sees steps as often as it looks, several times a second. Shorter
 * steps are seen several at a time and their mean is taken: at that length the 60 s
 * decide anyway.
 */
#ifndef SONDE_LAUNCH_HANG_H
#define SONDE_LAUNCH_HANG_H

#include <stdbool.h>
#include <stdint.h>

#include "num/loghist.h"

struct hang_signs {
    uint64_t now_ns;
    uint64_t steps;     /* of the fastest process, so far */
    uint64_t cpu_ticks; /* of the tree */
    uint64_t io_bytes;  /* of the tree */
    bool stopped;       /* the program is stopped: no wonder */
};

struct hang {
    uint64_t least_ns; /* 0: never look */
    uint64_t steps, step_ns;
    uint64_t steps_looked;                  /* at the last look */
    uint64_t quiet_ns, quiet_cpu, quiet_io; /* since when, and what had been used */
    bool hanging;
    uint64_t since_ns;  /* of the hang going on, or of the last one */
    uint64_t waited_ns; /* the time that was too long */
    uint64_t count, longest_ns;
    uint64_t total; /* of durations */
    uint32_t histogram[LOGHIST_CHUNKS][LOGHIST_SUBS];
};

enum hang_change { HANG_NONE, HANG_BEGINS, HANG_SUSPECTED, HANG_ENDS };

/* least_ns: 0 for the default of 60 s, UINT64_MAX for never. */
void hang_init(struct hang *hang, uint64_t least_ns, uint64_t now_ns);
/* As often as one can: how long steps take is learnt from it. */
void hang_count_steps(struct hang *hang, uint64_t steps, uint64_t now_ns);
/* HANG_SUSPECTED: no steps, no activity; it is a hang if zones are open: say so with
 * hang_confirm(). */
enum hang_change hang_look(struct hang *hang, const struct hang_signs *signs);
void hang_confirm(struct hang *hang, uint64_t now_ns, bool zones_open);
/* How long no step may come; before any step, least_ns. */
uint64_t hang_patience_ns(const struct hang *hang);

#endif
