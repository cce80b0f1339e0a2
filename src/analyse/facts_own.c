/* facts_own.c: facts about what the program's own functions do in its steps beside training
 * (ownwork.h).
 *
 * Stacks say whose time it is, zones how much at most: of a steady step, what is outside of
 * all phases. */
#include <math.h>

#include "analyse/fact_parts.h"
#include "analyse/ownwork.h"
#include "analyse/report.h"

/* What the interpreter and its libraries take to end is in no stack. */
static const double USUAL_END_NS = 0.3e9;

/* Behind the last line that trains a loop goes on, or has ended: as much as the run has
 * behind its last step may be of the latter. */
static double behind_loop_ns(const struct report *r, const struct ownwork *work)
{
    return fmin(work->after_ns, fmax(r->account.end_ns - USUAL_END_NS, 0));
}

/* Where backward and optimizer have zones, nothing of theirs is outside of all; a program
 * that updates its weights by hand does that in functions of its own. */
static bool phases_are_known(const struct facts *f)
{
    return f->v[FACT_BACKWARD_SHARE] > 0 && f->v[FACT_OPTIMIZER_SHARE] > 0 &&
           f->v[FACT_OTHER_SHARE] > 0;
}

static void set_beside(const struct report *r, struct facts *f,
                       const struct ownwork *work, double loop_ns)
{
    const double ns = work->wall_ns - behind_loop_ns(r, work);
    const double share = at_most(ns / loop_ns, f->v[FACT_OTHER_SHARE]);
    if (!(ns > 0) || !phases_are_known(f))
        return;
    f->v[FACT_OWN_SHARE] = share;
    f->v[FACT_OWN_CPU_S] = work->cpu_ns / work->wall_ns * share * loop_ns / 1e9;
}

void facts_of_own(struct report *r, struct facts *f)
{
    struct ownwork work;
    const double loop_ns = account_loop_ns(&r->account);
    if (!r->account.known || !(loop_ns > 0) || ownwork_read(r, &work) < 0 ||
        !work.known)
        return;
    set_beside(r, f, &work, loop_ns);
}
