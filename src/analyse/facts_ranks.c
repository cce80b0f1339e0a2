/* facts_ranks.c: facts about the ranks of a job, from the phases of each.
 *
 * Ranks that exchange gradients in every step are as slow as the slowest of them: the
 * others wait in communication. So the rank that works longest, over all steps together,
 * is the one the others wait for. Which rank was last in which single step nobody
 * records yet: uneven work that changes places is not seen. */
#include <math.h>

#include "analyse/fact_parts.h"
#include "analyse/report.h"

enum { RANKS_MAX = 4096 };

static double worked_ns(const struct phase_split *s)
{
    double work = 0;
    for (int p = SONDE_DATA_LOADING; p < SONDE_PHASE_COUNT; p++)
        if (p != SONDE_COMMUNICATION && p != SONDE_SYNC && p != SONDE_OTHER)
            work += s->total_ns[p];
    return work;
}

/* One exchange a step: further passes of a step (no_sync) have none. */
static void set_exchange(struct facts *f, const struct py_exchange *e, double step_ns)
{
    if (!e->comm_ns || !(step_ns > 0))
        return;
    const double all = (double)e->comm_ns, hidden = fmin((double)e->overlap_ns, all);
    f->v[FACT_EXCHANGE_SHARE] = fmin((all - hidden) / step_ns, 1);
    f->v[FACT_EXCHANGE_HIDDEN] = hidden / all;
    f->v[FACT_EXCHANGE_MB] = (double)e->bytes / (1 << 20);
    f->v[FACT_EXCHANGE_BUCKETS] = (double)e->buckets;
}

void facts_of_ranks(struct report *r, struct facts *f)
{
    double most = 0, sum = 0, wall = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->process_count && n < RANKS_MAX; i++) {
        const struct report_process *p = &r->processes[i];
        if (p->rank < 0 || !p->phases.has_main)
            continue;
        const double work = worked_ns(&p->phases);
        most = fmax(most, work);
        sum += work;
        wall = fmax(wall, p->phases.wall_ns - p->phases.total_ns[SONDE_OTHER]);
        n++;
    }
    const struct py_interpreter *main = r->main_process < r->process_count
                                            ? pylayer_interpreter(
                                                  r, r->processes[r->main_process].pid)
                                            : NULL;
    if (main && r->account.known)
        set_exchange(f, &main->exchange, r->account.mean_ns);
    if (r->run->meta.world_size > 0)
        f->v[FACT_RANKS] = r->run->meta.world_size;
    if (n < 2 || !(wall > 0))
        return;
    f->v[FACT_RANKS] = fmax(f->v[FACT_RANKS], (double)n);
    const double others = (sum - most) / (double)(n - 1);
    f->v[FACT_STRAGGLER_SHARE] = (most - others) / wall;
    f->v[FACT_STRAGGLER_STEADY] = 1; /* sums over all steps: it is one rank */
}
