/* due.h: something to be done at a moment, or a little before if we are awake anyway.
 *
 * To wake up costs the supervisor more than most of what it does then, and takes a core
 * from the program. So what has a pause of its own (traces to fold, stacks to look at,
 * processes to watch) is content to come a quarter of that pause early, 25 ms at most,
 * and shares the awakening of another.
 */
#ifndef SONDE_LAUNCH_DUE_H
#define SONDE_LAUNCH_DUE_H

#include <stdbool.h>
#include <stdint.h>

struct due {
    uint64_t at;   /* monotonic; 0: never */
    uint64_t from; /* not before */
};

static inline struct due due_at(uint64_t at_ns, uint64_t now_ns)
{
    const uint64_t most = 25000000;
    const uint64_t early = at_ns > now_ns ? (at_ns - now_ns) / 4 : 0;
    return (struct due){ at_ns, at_ns - (early < most ? early : most) };
}

/* The same of something so cheap that to do it twice as often costs less than to wake up
 * for it. */
static inline struct due due_with_others(uint64_t at_ns, uint64_t now_ns)
{
    const uint64_t early = at_ns > now_ns ? (at_ns - now_ns) / 2 : 0;
    return (struct due){ at_ns, at_ns - early };
}

static inline struct due due_exactly_at(uint64_t at_ns)
{
    return (struct due){ at_ns, at_ns };
}

static inline bool is_due(struct due due, uint64_t now_ns)
{
    return due.at && now_ns >= due.from;
}

#endif
