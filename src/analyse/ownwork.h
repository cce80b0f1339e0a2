/* ownwork.h: what a program's own functions do in its loop beside training.
 *
 * A journal, a simulator, statistics of the weights: functions of the program, called from
 * one that trains, that never train themselves. The sampled Python stacks tell. A function
 * trains when a backward pass or an optimizer's step is below it; the lines it does that at
 * are known. What it calls before the first of them may be its start, the batch or a
 * forward pass without modules: none of that counts, only what is called from there on. So
 * does nothing that runs a model (an evaluation), loads, compiles, or writes a checkpoint.
 *
 * Of such time, what is below a function that uses something that writes (print, writerow,
 * flush, …: flags of its row, trace/pystack_rows.h) may be a log made by hand; libraries
 * that log are known by their files (pylines.h) and not in it. That it writes in every step
 * is not known from stacks.
 */
#ifndef SONDE_ANALYSE_OWNWORK_H
#define SONDE_ANALYSE_OWNWORK_H

#include <stdbool.h>

#include "analyse/pylines.h"

struct report;

struct ownwork {
    bool known;             /* there were stacks of a function that trains */
    double wall_ns, cpu_ns; /* of the main thread */
    double after_ns; /* of wall_ns: called behind the last line that trains. The loop's
                      * end, or what comes behind the loop */
    double written_ns;       /* of wall_ns: below a function that writes, … */
    double written_after_ns; /* … and called behind the last line that trains */
    double
        whole_ns; /* all of the outermost functions, of which at least half is that */
    struct py_place
        writer; /* where most of written_ns is, in the function that writes */
};

/* A run without Python stacks is none the worse. Texts go into the report's arena. */
int ownwork_read(struct report *report, struct ownwork *ret_work);

#endif
