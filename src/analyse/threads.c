/* threads.c: see threads.h.
 *
 * The work is left: CPU time in which no thread waited for another. What one thread does
 * alone takes as long as it did; pieces are side by side, and whoever is through first
 * waits a little for the others. Processes beside one another need no such pieces to keep
 * cores busy: all of their work is shared by all cores, and CPU time of a run that kept
 * them busy has what sharing costs already. The main process hands out jobs and waits for
 * them, so its own work comes on top; but workers of a loader work while it does, and so do
 * processes that train as it does, members of a committee say.
 */
#include "analyse/threads.h"

#include <math.h>

#include "analyse/fact_parts.h"

static double known_or(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

/* Pieces are not equally long. */
static const double UNEVEN = 1.2;

/* Who waits for jobs of others does so outside of the phases of training. */
static const double IN_PHASES = 0.7;

bool threads_train_beside(const struct facts *f)
{
    return f->v[FACT_FORWARD_SHARE] + f->v[FACT_BACKWARD_SHARE] +
               f->v[FACT_OPTIMIZER_SHARE] >=
           IN_PHASES;
}

double threads_that_fit(const struct facts *f)
{
    const double children = known_or(f->v[FACT_CHILDREN_AT_WORK], 0);
    const double at_once = children + (children > 0 && threads_train_beside(f));
    const double cores = f->v[FACT_CORES];
    return at_once >= 2 && !isnan(cores) ? fmax(floor(cores / at_once), 1) : cores;
}

/* One process's work when nobody else is there. */
static double alone_then_pieces(const struct facts *f, double alone, double work,
                                double threads)
{
    const double together = fmin(threads, fmax(f->v[FACT_CORES], 1));
    return alone + (work - alone) * fmin(UNEVEN / fmax(together, 1), 1);
}

/* Whoever else runs meanwhile: a team's other threads may spin beside it. Only where cores
 * are left over: elsewhere it may be waiting for one of those, which fewer threads would
 * give it. */
double threads_asleep(const struct facts *f)
{
    const double input = f->v[FACT_INPUT_SHARE], wait = f->v[FACT_WAIT_SHARE];
    const double cpu = f->v[FACT_SAMPLE_CPU_SHARE];
    if (!(f->v[FACT_CPU_CORES] <= f->v[FACT_CORES] - 0.5))
        return 0;
    const double share = f->v[FACT_WORKERS] > 0 ? wait : input * (1 - fmin(cpu, 1));
    return fmin(fmax(known_or(share, 0), 0), 1);
}

/* Children have `threads` each, the main process `own_threads`. */
static double left_with(const struct facts *f, double threads, double own_threads)
{
    const double work = f->v[FACT_WORK_CORES];
    const double children = fmax(known_or(f->v[FACT_CHILDREN_AT_WORK], 1), 1);
    const double theirs = known_or(f->v[FACT_CHILD_CORES], 0);
    const double alone = known_or(f->v[FACT_CHILD_SERIAL_CORES], 0);
    const double besides = known_or(f->v[FACT_BESIDE_CORES], 0);
    const double cores = fmax(f->v[FACT_CORES], 1);
    const double own = alone_then_pieces(f, f->v[FACT_SERIAL_CORES] - alone,
                                         work - theirs, own_threads);
    const double one = alone_then_pieces(f, alone, theirs, threads) / children;
    const bool loader = f->v[FACT_WORKERS] > 0;
    const double path = loader                    ? own
                        : threads_train_beside(f) ? fmax(own, one)
                                                  : own + fmax(one, theirs / cores);
    const double all = theirs > 0 ? (work + besides) / cores : 0;
    /* Neither works nor waits for a core: for something outside. */
    const double idle = fmax(1 - f->v[FACT_CPU_CORES], threads_asleep(f));
    return isnan(path) ? NAN : fmax(path, all) + idle;
}

double threads_left(const struct facts *f, double threads)
{
    return left_with(f, threads, threads);
}

double threads_left_fitting(const struct facts *f)
{
    const double fit = threads_that_fit(f);
    return left_with(f, fit, threads_train_beside(f) ? fit : f->v[FACT_CORES]);
}
