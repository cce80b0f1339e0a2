/* hang.c: has the program stopped getting anywhere? */
#include "launch/hang.h"

#include <unistd.h>

static const uint64_t DEFAULT_LEAST_NS = 60000000000;
static const unsigned PATIENCE = 10;
/* Watchdog threads wake up now and then; below this they are no progress. */
static const double QUIET_CPU_SHARE = 0.002;
static const uint64_t QUIET_IO_BYTES = 4096;

void hang_init(struct hang *hang, uint64_t least_ns, uint64_t now_ns)
{
    *hang = (struct hang){
        .least_ns = least_ns == UINT64_MAX ? 0
                    : least_ns             ? least_ns
                                           : DEFAULT_LEAST_NS,
        .step_ns = now_ns,
        .quiet_ns = now_ns,
    };
}

/* ---- Steps ------------------------------------------------------------------------ */

void hang_count_steps(struct hang *h, uint64_t steps, uint64_t now_ns)
{
    if (steps <= h->steps)
        return;
    const uint64_t more = steps - h->steps;
    if (h->steps) {
        const uint64_t each_us = (now_ns - h->step_ns) / more / 1000;
        const struct loghist_slot slot = loghist_slot(each_us);
        h->histogram[slot.chunk][slot.sub] += more > UINT32_MAX ? UINT32_MAX
                                                                : (uint32_t)more;
        h->total += more;
    }
    h->steps = steps;
    h->step_ns = now_ns;
}

static double p99_ns(const struct hang *h)
{
    const uint64_t wanted = h->total - h->total / 100;
    uint64_t seen = 0;
    for (unsigned c = 0; c < LOGHIST_CHUNKS; c++)
        for (unsigned s = 0; s < LOGHIST_SUBS; s++) {
            seen += h->histogram[c][s];
            if (seen >= wanted && seen)
                return loghist_middle(c, s) * 1000;
        }
    return 0;
}

uint64_t hang_patience_ns(const struct hang *hang)
{
    const uint64_t steps_ns = (uint64_t)(PATIENCE * p99_ns(hang));
    return steps_ns > hang->least_ns ? steps_ns : hang->least_ns;
}

/* ---- Quiet --------------------------------------------------------------------------- */

static bool is_quiet(const struct hang *h, const struct hang_signs *s)
{
    const double cpu_s = (double)(s->cpu_ticks - h->quiet_cpu) /
                         (double)sysconf(_SC_CLK_TCK);
    const double wall_s = (double)(s->now_ns - h->quiet_ns) / 1e9;
    /* CPU time comes in ticks of 10 ms: two of them say nothing yet. */
    return s->cpu_ticks >= h->quiet_cpu && s->io_bytes >= h->quiet_io &&
           cpu_s <= 0.02 + QUIET_CPU_SHARE * wall_s &&
           s->io_bytes - h->quiet_io < QUIET_IO_BYTES;
}

static void restart_quiet(struct hang *h, const struct hang_signs *s)
{
    h->quiet_ns = s->now_ns;
    h->quiet_cpu = s->cpu_ticks;
    h->quiet_io = s->io_bytes;
}

/* ---- Together -------------------------------------------------------------------------- */

static void begin(struct hang *h, uint64_t since_ns, uint64_t now_ns)
{
    h->hanging = true;
    h->since_ns = since_ns;
    h->waited_ns = now_ns - since_ns;
    h->count++;
}

static enum hang_change go_on(struct hang *h, const struct hang_signs *s, bool moved)
{
    const uint64_t so_far = s->now_ns - h->since_ns;
    if (so_far > h->longest_ns)
        h->longest_ns = so_far;
    if (!moved)
        return HANG_NONE;
    h->hanging = false;
    return HANG_ENDS;
}

enum hang_change hang_look(struct hang *h, const struct hang_signs *s)
{
    if (h->least_ns == 0)
        return HANG_NONE;
    hang_count_steps(h, s->steps, s->now_ns);
    const bool stepped = h->steps > h->steps_looked;
    h->steps_looked = h->steps;
    if (s->stopped) { /* the clock stands still for those who are stopped */
        h->step_ns = s->now_ns;
        restart_quiet(h, s);
        return HANG_NONE;
    }
    const bool quiet = is_quiet(h, s);
    if (!quiet)
        restart_quiet(h, s);
    if (h->hanging)
        return go_on(h, s, h->steps ? stepped : !quiet);
    if (h->steps) {
        if (s->now_ns - h->step_ns < hang_patience_ns(h))
            return HANG_NONE;
        begin(h, h->step_ns, s->now_ns);
        return HANG_BEGINS;
    }
    return s->now_ns - h->quiet_ns >= h->least_ns ? HANG_SUSPECTED : HANG_NONE;
}

void hang_confirm(struct hang *hang, uint64_t now_ns, bool zones_open)
{
    if (zones_open)
        begin(hang, hang->quiet_ns, now_ns);
    else
        hang->quiet_ns = now_ns; /* asks again after as long */
}
