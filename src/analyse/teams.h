/* teams.h: what the CPU time of each process was: waiting for other threads, work that one
 * thread does alone, or pieces that a team of threads has of it.
 *
 * Told by where a sample's stack is, not only by what its innermost function is called:
 * the kernel puts a thread to sleep on behalf of the library that hands out work, and
 * code below such a library is a piece of something that was cut.
 */
#ifndef SONDE_ANALYSE_TEAMS_H
#define SONDE_ANALYSE_TEAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/stacks.h"
#include "base/arena.h"

/* In samples. */
struct team {
    uint32_t pid;
    uint64_t waits, alone, pieces;
    uint64_t beside;  /* of alone: threads of Python's beside the first one */
    uint64_t jit;     /* of pieces: code made at run time, loops that wait among it */
    uint64_t doubles; /* in kernels that compute in double, whichever they are else */
};

struct teams {
    struct team *list;
    size_t count;
};

/* By the name of a function: does it compute in double? */
bool teams_is_double(const char *function);

int teams_count(const struct stacks *stacks, struct arena *arena,
                struct teams *ret_teams);

#endif
