/* pystacks.h: the sampled Python stacks of a run, one by one.
 *
 * pyprofile.h adds them up by function and line; this walks the call paths themselves,
 * for flame graphs. Hostile input like everything in a run directory.
 */
#ifndef SONDE_ANALYSE_PYSTACKS_H
#define SONDE_ANALYSE_PYSTACKS_H

#include <stdint.h>

enum { PYSTACK_PLACES = 512 }; /* of one stack; the outermost are left out */

struct pystack_place {
    const char *function, *file; /* "" unknown */
    uint32_t line, first_line;   /* where it is; where the function begins */
    uint32_t flags;              /* enum pystack_code_flags */
};

/* Borrowed for the call. */
struct pystack {
    uint32_t pid, tid;
    const char *thread; /* "" unknown */
    const struct pystack_place
        *places; /* innermost first; none: no room for its path */
    unsigned depth;
    uint64_t samples, wall_ns, cpu_ns;
};

/* −ENOENT: nobody sampled. A negative result of `each` ends the walk and is returned. */
int pystacks_walk(const char *dir, int (*each)(void *arg, const struct pystack *stack),
                  void *arg);

#endif
