/* pystack_counts.h: what sampled Python stacks took, by the kernel's account.
 *
 * A look tells where a thread was, not how long: the CPU time in a row of counts is the
 * sampler's guess, made while it looked (a thread that is found running ran, all the time
 * since the last look or as much of it as it used to). The scheduler knows what the thread
 * really used. So rows are read through here: each thread's are scaled to its account, and
 * looks only say how it is shared out. On a machine where others take the cores the guess
 * was 18 % too much, and 16 % too little where looks came late.
 */
#ifndef SONDE_TRACE_PYSTACK_COUNTS_H
#define SONDE_TRACE_PYSTACK_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/pystack_rows.h"
#include "trace/tables.h"

struct pystack_counts {
    const struct tablefile *file; /* borrowed */
    uint32_t count;               /* rows */
    uint32_t tasks;
    double *scale; /* by task: account over guess; 1 where one of them is missing */
};

int pystack_counts_init(struct pystack_counts *ret_counts,
                        const struct tablefile *file);
void pystack_counts_release(struct pystack_counts *counts);

/* False: there is no such row. */
bool pystack_counts_get(const struct pystack_counts *counts, uint32_t index,
                        struct pystack_count_row *ret_row);

#endif
