/* lifetime.c: from when to when a run was looked at, and how that ended.
 *
 * A run is not always a program from its first instruction to its last: a session begins
 * and ends inside of one, `attach` comes later and lets go, windows and pauses leave parts
 * out. What was not looked at is in no phase, and is told.
 */
#include "analyse/parts.h"
#include "base/buf.h"
#include "base/human.h"

static const double UNRECORDED_MIN_NS = 1e6; /* less is the start of a window */

/* ---- The run ---------------------------------------------------------------------------- */

static void find_span(struct report *r)
{
    const struct run_meta *m = &r->run->meta;
    int64_t first = 0;
    int64_t last = 0;
    for (size_t i = 0; i < r->process_count; i++) {
        const struct report_process *p = &r->processes[i];
        if (p->start_ns && (!first || p->start_ns < first))
            first = p->start_ns;
        if (p->last_ns > last)
            last = p->last_ns;
    }
    r->start_ns = m->started_ns ? m->started_ns : first;
    r->end_ns = m->ended_ns ? m->ended_ns : last;
    if (r->end_ns < r->start_ns)
        r->end_ns = r->start_ns;
}

/* Whether we left it as it was: attached and let go, or a session that was stopped. Of
 * one that was cut off, who adopted it says that nobody knows. */
static bool was_left(const struct run_meta *m)
{
    return m->attached || (m->session && !m->exit.cause[0]);
}

static void find_state(struct report *r)
{
    const struct run_exit *exit = &r->run->meta.exit;
    bool alive = run_meta_alive(&r->run->meta);
    for (size_t i = 0; i < r->process_count; i++)
        alive |= r->processes[i].alive;
    if (exit->signal > 0)
        r->state = RUN_KILLED;
    else if (exit->known)
        r->state = exit->code == 0 ? RUN_GOOD : RUN_FAILED;
    else if (r->run->meta.ended_ns)
        r->state = was_left(&r->run->meta) ? RUN_LEFT : RUN_UNKNOWN;
    else
        r->state = alive ? RUN_LIVE : RUN_UNKNOWN;
}

void lifetime_find(struct report *r)
{
    find_span(r);
    find_state(r);
}

/* ---- Its processes ----------------------------------------------------------------------- */

/* Is this the file of the program as it was at the end? Files are sorted by age. */
static bool is_last_of_program(const struct report *r, size_t index)
{
    const uint32_t pid = r->run->meta.pid;
    if (!pid || r->processes[index].pid != pid)
        return false;
    for (size_t i = index + 1; i < r->process_count; i++)
        if (r->processes[i].pid == pid)
            return false;
    return true;
}

void lifetime_close_phases(struct report *r)
{
    const int64_t ended_ns = r->run->meta.ended_ns;
    for (size_t i = 0; i < r->process_count; i++) {
        struct report_process *p = &r->processes[i];
        int64_t from = p->start_ns;
        int64_t to = p->last_ns;
        if (p->first_event_ns && p->first_event_ns < from)
            from = p->first_event_ns;
        if (ended_ns > to && is_last_of_program(r, i))
            to = ended_ns;
        p->end_ns = to;
        const double shut_ns = p->shut_since_ns && to > p->shut_since_ns
                                   ? (double)(to - p->shut_since_ns)
                                   : 0;
        phase_split_close(&p->phases, to > from ? (double)(to - from) : 0,
                          p->unrecorded_ns + shut_ns);
    }
}

void lifetime_note_unrecorded(struct report *r)
{
    const double missing_ns = r->phases.unrecorded_ns;
    char part[HUMAN_LEN], all[HUMAN_LEN];
    struct buf b = BUF_INIT;
    if (missing_ns < UNRECORDED_MIN_NS)
        return;
    buf_printf(&b, "%s of %s were not recorded (outside the window, or paused)",
               human_duration(part, missing_ns),
               human_duration(all, r->phases.wall_ns + missing_ns));
    report_note(r, "window", b.data);
    buf_release(&b);
}
