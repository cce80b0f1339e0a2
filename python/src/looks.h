/* looks.h: a worker looks at its own memory: how much of it is its own.
 *
 * A forked worker shares its parent's pages until one of them writes: reading a Python
 * object writes its reference count, and the page is copied. From outside nobody can say
 * when a worker is about to end, and reading smaps_rollup often enough would cost too
 * much. The worker itself knows: it looks before its first batch and when it is told to
 * end; in between for those that are killed or never end, the later the more rarely.
 */
#ifndef SONDE_PYTHON_LOOKS_H
#define SONDE_PYTHON_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/loader_rows.h"

struct looks {
    bool wanted;   /* false: never */
    uint64_t due;  /* ticks: the next one, not before */
    uint64_t cost; /* ticks the last one took */
};

/* With the GIL held; it is given up meanwhile. Between batches, when the worker is about
 * to wait anyway. `ending`: it is the last chance. */
void looks_take(struct looks *looks, struct loader_self_row *self, uint64_t now,
                bool ending);

#endif
