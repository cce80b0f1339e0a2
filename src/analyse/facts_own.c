/* facts_own.c: facts about what the program's own functions do in its steps beside training
 * (ownwork.h).
 *
 * Stacks say whose time it is, zones how much at most: of a steady step, what is outside of
 * all phases. */
#include <math.h>

#include "analyse/fact_parts.h"
#include "analyse/ownwork.h"
#include "analyse/report.h"
#include "base/files.h"

enum { LEAST_STEPS = 8 };

/* A byte of a log is no more work than this: a number is asked of a tensor, or a norm of a
 * layer made, and ten characters of it written. What took longer was not done for the sake
 * of the line that tells of it. A journal of single weights took 0.1 µs (lantern_poems). */
static const double BYTE_NS = 20e3;

/* What the interpreter and its libraries take to end is in no stack. */
static const double USUAL_END_NS = 0.3e9;

/* Behind the last line that trains a loop goes on, or has ended: as much as the run has
 * behind its last step may be of the latter. */
static double behind_loop_ns(const struct report *r, double after_ns)
{
    return fmin(after_ns, fmax(r->account.end_ns - USUAL_END_NS, 0));
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
    const double ns = work->wall_ns - behind_loop_ns(r, work->after_ns);
    const double share = at_most(ns / loop_ns, f->v[FACT_OTHER_SHARE]);
    if (!(ns > 0) || !phases_are_known(f))
        return;
    f->v[FACT_OWN_SHARE] = share;
    f->v[FACT_OWN_CPU_S] = work->cpu_ns / work->wall_ns * share * loop_ns / 1e9;
}

/* The main thread writes in every step, or in every other one, outside of all zones: what
 * a function that runs once an epoch prints is none of a step's. */
static bool writes_in_steps(const struct report *r)
{
    const struct io_hand *h = &r->io.hand;
    return r->io.captured && h->known && h->writes_known &&
           r->account.steps >= LEAST_STEPS && 2 * h->write_steps >= r->account.steps;
}

/* Who wrote nearly all of it in steps wrote nothing to speak of behind the loop. */
static double written_behind_ns(const struct report *r, const struct ownwork *work)
{
    const bool in_steps = (double)r->io.hand.write_bytes >=
                          0.9 * (double)r->io.total[1].bytes;
    return in_steps ? 0 : behind_loop_ns(r, work->written_after_ns);
}

static void put_writer(struct report *r, struct facts *f, const struct py_place *p)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s:%u in %s", path_base(p->file), p->line, p->function);
    fact_place(r, f, PLACE_LOG, &b);
    buf_release(&b);
}

/* Of logging three things must say the same: the functions that time is in, the time
 * steps have outside of phases, and bytes that were written there. */
static void set_log(struct report *r, struct facts *f, const struct ownwork *work,
                    double loop_ns)
{
    const double other = f->v[FACT_OTHER_SHARE];
    const double most = fmin(BYTE_NS * (double)r->io.hand.write_bytes / loop_ns, other);
    const double ns = work->written_ns - written_behind_ns(r, work);
    const double share = fmin(ns / loop_ns, most);
    const double before = f->v[FACT_LOG_SHARE] > 0 ? f->v[FACT_LOG_SHARE] : 0;
    const double whole = fmax(f->v[FACT_LOG_WHOLE_SHARE], before);
    if (!writes_in_steps(r) || isnan(other) || !(share > 0))
        return;
    f->v[FACT_LOG_SHARE] = fmin(before + share, 1);
    f->v[FACT_LOG_WHOLE_SHARE] = fmin(whole + fmin(work->whole_ns / loop_ns, most), 1);
    if (share > before)
        put_writer(r, f, &work->writer);
}

void facts_of_own(struct report *r, struct facts *f)
{
    struct ownwork work;
    const double loop_ns = account_loop_ns(&r->account);
    if (!r->account.known || !(loop_ns > 0) || ownwork_read(r, &work) < 0 ||
        !work.known)
        return;
    set_beside(r, f, &work, loop_ns);
    set_log(r, f, &work, loop_ns);
}
