/* mem.c: memory of the run's processes and of the machine.
 *
 * statm is cheap and read every round: resident pages, and how many of them have a file
 * or shared memory behind them. Private pages as such (the growth of a forked worker
 * that writes to what it inherited) need smaps_rollup, whose reader walks the page
 * tables and holds the lock that mmap() in the program waits for: 33 ms for 4 GiB. So
 * it may take half a thousandth of the time, by what it cost last: at every round, or else
 * again after two thousand times its cost, and a quarter of that once the process is ten
 * seconds old. A young process is read when it is twice as old
 * as the last time, or nothing would be known of short ones. In between rss_private has
 * no value.
 *
 * What a process maps from the run directory is Sonde's: taken off its resident set and
 * reported as sonde_rss (own.h).
 */
#include "capture/monitor/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/moment.h"
#include "capture/monitor/kept.h"
#include "capture/monitor/own.h"
#include "capture/monitor/proctab.h"
#include "capture/monitor/readings.h"

enum { ROLLUP_PART = 2000, OWN_PART = 3000, SETTLED = 4, MEM_BUFFER = 64 << 10 };
static const uint64_t SECOND_NS = 1000000000;
static const double GUESS_NS_PER_MB = 8000; /* 33 ms for 4 GiB */
static const uint64_t YOUNG_NS = 10000000;
/* From that age on, SETTLED times less. */
static const uint64_t SETTLED_NS = 10000000000;
static const uint64_t SHORT_NS = 5000000; /* the young pay only for short readings */
static const uint64_t ROUND_NS = 1000000; /* all of a round; the first may be longer */
static const uint64_t BUDGET_MOST_NS = 100000000;
static const double MIB = 1 << 20;

struct mem_slot {
    struct proc_slot base;
    int statm_fd, status_fd, rollup_fd, maps_fd, pagemap_fd;
    uint64_t own_ns, status_ns;         /* not before these moments */
    uint64_t first_ns;                  /* when we first saw it */
    uint64_t rollup_ns, rollup_cost_ns; /* the last time; 0: not yet */
    double rollup_rss_mb;
    uint64_t rounds;
    /* Sonde's mappings in it. A page only one process has mapped counts as private, be
     * the mapping shared or not. */
    double own_mb, own_private_mb, own_pss_mb;
    double swap_mb, file_mb, peak_mb, peak_private_mb;
    double old_peak_mb; /* high-water mark of its life before the run */
};

struct mem {
    const char *proc, *run_dir;
    double page_mb;
    int meminfo_fd;
    struct proctab tab;
    uint64_t budget_ns, spent_ns; /* for smaps_rollup: left in all, used this round */
    size_t turn;                  /* who is read first: all get their turn */
    char buffer[MEM_BUFFER];
};

static void slot_open(void *owner, void *at)
{
    const struct mem *m = owner;
    struct mem_slot *s = at;
    const uint32_t pid = s->base.process.pid;
    s->statm_fd = kept_open(m->proc, "%u/statm", pid);
    s->status_fd = kept_open(m->proc, "%u/status", pid);
    s->rollup_fd = kept_open(m->proc, "%u/smaps_rollup", pid);
    s->maps_fd = m->run_dir ? kept_open(m->proc, "%u/maps", pid) : -1;
    s->pagemap_fd = m->run_dir ? kept_open(m->proc, "%u/pagemap", pid) : -1;
    s->swap_mb = s->file_mb = -1;
}

static void slot_close(void *owner, void *at)
{
    struct mem_slot *s = at;
    (void)owner;
    kept_close(&s->statm_fd);
    kept_close(&s->status_fd);
    kept_close(&s->rollup_fd);
    kept_close(&s->maps_fd);
    kept_close(&s->pagemap_fd);
}

/* ---- smaps ------------------------------------------------------------------------- */

/* "Name:   123 kB" at the beginning of a line. */
static bool line_mb(struct scan *s, const char *name, double *ret_mb)
{
    uint64_t kb;
    if (!scan_word(s, name) || !scan_u64(s, &kb))
        return false;
    *ret_mb = (double)kb / 1024;
    return true;
}

struct rollup {
    double rss, pss, private_clean, private_dirty, shared_clean, shared_dirty;
};

static uint64_t rollup_cost(const struct mem_slot *slot, double rss_mb)
{
    if (!slot->rollup_cost_ns || slot->rollup_rss_mb <= 0)
        return (uint64_t)(rss_mb * GUESS_NS_PER_MB);
    const double growth = rss_mb / slot->rollup_rss_mb;
    return (uint64_t)((double)slot->rollup_cost_ns * (growth > 1 ? growth : 1));
}

/* How many times its cost has to pass before something is done again. */
static uint64_t part_of(uint64_t young, const struct mem_slot *slot, uint64_t now_ns)
{
    return now_ns - slot->first_ns < SETTLED_NS ? young : SETTLED * young;
}

/* After the last reading, until the next: so many times its cost; of a young process,
 * when that is not long, its age. */
static uint64_t rollup_pause(const struct mem_slot *slot, uint64_t cost_ns,
                             uint64_t part)
{
    const uint64_t age = slot->rollup_ns - slot->first_ns + YOUNG_NS;
    const uint64_t pause = cost_ns * part;
    return cost_ns <= SHORT_NS && age < pause ? age : pause;
}

/* Whether reading it is due and affordable: for the process, whose mmap() waits
 * meanwhile, and for us, who have other things to do in a round. */
static bool is_affordable(const struct mem *m, const struct mem_slot *slot,
                          const struct monitor_round *round, double rss_mb)
{
    const uint64_t cost = rollup_cost(slot, rss_mb), now = round->now_ns;
    const uint64_t part = part_of(ROLLUP_PART, slot, now);
    if (cost > m->budget_ns || (m->spent_ns && m->spent_ns + cost > ROUND_NS))
        return false;
    if (cost * part <= round->interval_ns)
        return true;
    if (!slot->rollup_ns) /* it may have been large when we came */
        return cost <= SHORT_NS || now - slot->first_ns >= cost * part;
    return now - slot->rollup_ns >= rollup_pause(slot, cost, part);
}

/* False: not affordable now, or not readable. */
static bool read_rollup(struct mem *m, struct mem_slot *slot,
                        const struct monitor_round *round, double rss_mb,
                        struct rollup *ret)
{
    struct scan s;
    if (slot->rollup_fd < 0 || !is_affordable(m, slot, round, rss_mb))
        return false;
    const uint64_t began = moment_ns(CLOCK_THREAD_CPUTIME_ID);
    if (!kept_read(slot->rollup_fd, m->buffer, sizeof m->buffer, &s))
        return false;
    const uint64_t cost = moment_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    slot->rollup_cost_ns = cost;
    slot->rollup_rss_mb = rss_mb;
    slot->rollup_ns = round->now_ns;
    m->spent_ns += cost;
    m->budget_ns -= cost < m->budget_ns ? cost : m->budget_ns;
    *ret = (struct rollup){ .rss = -1, .pss = -1 };
    while (scan_next_line(&s)) /* the first line is the address range */
        (void)(line_mb(&s, "Rss:", &ret->rss) || line_mb(&s, "Pss:", &ret->pss) ||
               line_mb(&s, "Private_Clean:", &ret->private_clean) ||
               line_mb(&s, "Private_Dirty:", &ret->private_dirty) ||
               line_mb(&s, "Shared_Clean:", &ret->shared_clean) ||
               line_mb(&s, "Shared_Dirty:", &ret->shared_dirty));
    return ret->rss >= 0 && ret->pss >= 0;
}

/* What of it is Sonde's, once a second, less often when that is dear; where there is
 * nothing, when it is twice as old. Pages we share are those the supervisor reads. */
static void read_own(struct mem *m, struct mem_slot *slot, uint64_t now_ns)
{
    struct own_pages own;
    if (now_ns < slot->own_ns || slot->rounds < 2)
        return;
    const uint64_t began = moment_ns(CLOCK_THREAD_CPUTIME_ID);
    const bool known = own_pages_read(slot->maps_fd, slot->pagemap_fd, m->run_dir,
                                      m->buffer, sizeof m->buffer, &own);
    const uint64_t cost = moment_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    uint64_t pause = cost * part_of(OWN_PART, slot, now_ns);
    if ((!known || own.present == 0) && pause < now_ns - slot->first_ns)
        pause = now_ns - slot->first_ns;
    slot->own_ns = now_ns + (pause < SECOND_NS ? SECOND_NS : pause);
    if (!known)
        return;
    slot->own_mb = (double)own.present * m->page_mb;
    slot->own_private_mb = (double)own.exclusive * m->page_mb;
    slot->own_pss_mb = (slot->own_mb + slot->own_private_mb) / 2;
}

/* ---- A process ------------------------------------------------------------------------ */

/* The kernel's high-water mark sees what happens between rounds. That of a process which
 * lived before the run may be older: it says something once it has risen. */
static void see_high_water(struct mem_slot *slot, const struct monitor_round *round,
                           double mb)
{
    if (slot->rounds == 1 && monitor_lived_before(round, &slot->base.process))
        slot->old_peak_mb = mb;
    if (mb > slot->old_peak_mb && mb - slot->own_mb > slot->peak_mb)
        slot->peak_mb = mb - slot->own_mb;
}

/* Once a second: it is the longest of the small files. */
static void read_status(struct mem *m, struct mem_slot *slot,
                        const struct monitor_round *round)
{
    const uint64_t now_ns = round->now_ns;
    struct scan s;
    double mb;
    if (now_ns < slot->status_ns || !kept_read(slot->status_fd, m->buffer, 8192, &s))
        return;
    slot->status_ns = now_ns + SECOND_NS * 9 / 10;
    do {
        if (line_mb(&s, "VmHWM:", &mb)) {
            see_high_water(slot, round, mb);
        } else if (line_mb(&s, "RssFile:", &mb)) {
            slot->file_mb = mb;
        } else if (line_mb(&s, "VmSwap:", &mb)) {
            slot->swap_mb = mb;
            break;
        }
    } while (scan_next_line(&s));
}

/* Sums over the processes; each says of how many. */
struct sums {
    double rss, own, pss, swap, private_mb;
    size_t rss_count, pss_count, swap_count;
};

static double at_least_0(double value)
{
    return value > 0 ? value : 0;
}

static void sample_shares(struct mem *m, struct mem_slot *slot, size_t i,
                          const struct monitor_round *round, struct monitor_sink *sink,
                          const struct process_statm *statm, struct sums *sums)
{
    struct rollup r;
    if (read_rollup(m, slot, round, (double)statm->resident * m->page_mb, &r)) {
        const double mine = at_least_0(r.private_clean + r.private_dirty -
                                       slot->own_private_mb);
        const double shared = r.shared_clean + r.shared_dirty - slot->own_mb +
                              slot->own_private_mb;
        const double pss = at_least_0(r.pss - slot->own_pss_mb);
        sink->set_process(sink, i, "rss_private", "MiB", mine);
        sink->set_process(sink, i, "rss_shared", "MiB", at_least_0(shared));
        sink->set_process(sink, i, "pss", "MiB", pss);
        sums->pss += pss;
        sums->private_mb += mine;
        sums->pss_count++;
        if (mine > slot->peak_private_mb)
            slot->peak_private_mb = mine;
        sink->total(sink, i, TOTAL_PEAK_PRIVATE_MB, slot->peak_private_mb);
    } else {
        sink->set_process(
            sink, i, "rss_shared", "MiB",
            at_least_0((double)statm->shared * m->page_mb - slot->own_mb));
    }
}

static void sample_process(struct mem *m, size_t i, const struct monitor_round *round,
                           struct monitor_sink *sink, struct sums *sums)
{
    struct mem_slot *slot = proctab_at(&m->tab, i);
    struct process_statm statm;
    if (slot->rounds++ == 0)
        slot->first_ns = round->now_ns;
    if (!read_process_statm(slot->statm_fd, &statm) || statm.resident == 0)
        return; /* a zombie has none: that is no measurement of its memory */
    read_own(m, slot, round->now_ns);
    read_status(m, slot, round);
    const double rss = at_least_0((double)statm.resident * m->page_mb - slot->own_mb);
    sink->set_process(sink, i, "rss", "MiB", rss);
    if (slot->own_mb > 0)
        sink->set_process(sink, i, "sonde_rss", "MiB", slot->own_mb);
    if (rss > slot->peak_mb)
        slot->peak_mb = rss;
    sink->total(sink, i, TOTAL_PEAK_RSS_MB, slot->peak_mb);
    if (slot->file_mb >= 0)
        sink->set_process(sink, i, "rss_file", "MiB",
                          at_least_0(slot->file_mb - slot->own_mb));
    sample_shares(m, slot, i, round, sink, &statm, sums);
    sums->rss += rss;
    sums->own += slot->own_mb;
    sums->rss_count++;
    if (slot->swap_mb >= 0) {
        sums->swap += slot->swap_mb;
        sums->swap_count++;
    }
}

/* A thousandth of the time may go into smaps_rollup of all processes together. */
static void earn(struct mem *m, const struct monitor_round *round)
{
    m->spent_ns = 0;
    m->budget_ns += round->elapsed_ns / 1000;
    if (m->budget_ns > BUDGET_MOST_NS)
        m->budget_ns = BUDGET_MOST_NS;
}

static void sample_tree(struct mem *m, const struct monitor_round *round,
                        struct monitor_sink *sink)
{
    struct sums sums = { 0 };
    proctab_follow(&m->tab, round);
    earn(m, round);
    m->turn++;
    for (size_t i = 0; i < m->tab.count; i++)
        sample_process(m, (i + m->turn) % m->tab.count, round, sink, &sums);
    if (sums.rss_count) {
        sink->set(sink, "rss", "", "MiB", sums.rss);
        sink->set(sink, "sonde_rss", "", "MiB", sums.own);
    }
    /* Sums of a part would be wrong sums. */
    if (sums.pss_count && sums.pss_count == sums.rss_count) {
        sink->set(sink, "pss", "", "MiB", sums.pss);
        sink->set(sink, "rss_private", "", "MiB", sums.private_mb);
    }
    if (sums.swap_count && sums.swap_count == sums.rss_count)
        sink->set(sink, "swap", "", "MiB", sums.swap);
}

/* ---- The machine ---------------------------------------------------------------------- */

static void sample_machine(struct mem *m, struct monitor_sink *sink)
{
    struct scan s;
    double total = -1, available = -1, swap_total = -1, swap_free = -1;
    if (!kept_read(m->meminfo_fd, m->buffer, 4096, &s))
        return;
    do
        (void)(line_mb(&s, "MemTotal:", &total) ||
               line_mb(&s, "MemAvailable:", &available) ||
               line_mb(&s, "SwapTotal:", &swap_total) ||
               line_mb(&s, "SwapFree:", &swap_free));
    while (scan_next_line(&s));
    if (total >= 0)
        sink->set(sink, "memory_total", "", "MiB", total);
    if (total >= 0 && available >= 0) {
        sink->set(sink, "memory_available", "", "MiB", available);
        sink->set(sink, "memory_used", "", "MiB", total - available);
    }
    if (swap_total >= 0 && swap_free >= 0)
        sink->set(sink, "swap_used", "", "MiB", swap_total - swap_free);
}

/* ---- The monitor ------------------------------------------------------------------------ */

static void mem_close(void *state)
{
    struct mem *m = state;
    if (!m)
        return;
    proctab_release(&m->tab);
    kept_close(&m->meminfo_fd);
    free(m);
}

static int mem_open(const struct monitor_roots *roots, void **ret_state,
                    const char **ret_why)
{
    struct mem *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->proc = proc_root(roots);
    m->run_dir = roots && roots->run_dir && roots->run_dir[0] == '/' ? roots->run_dir
                                                                     : NULL;
    m->page_mb = (double)sysconf(_SC_PAGESIZE) / MIB;
    m->tab = (struct proctab){ .slot_size = sizeof(struct mem_slot),
                               .owner = m,
                               .open = slot_open,
                               .close = slot_close };
    m->budget_ns = BUDGET_MOST_NS;
    m->meminfo_fd = kept_open(m->proc, "meminfo");
    if (m->meminfo_fd < 0) {
        *ret_why = "no /proc/meminfo";
        mem_close(m);
        return SONDE_E_UNSUPPORTED;
    }
    *ret_state = m;
    return 0;
}

static void mem_sample(void *state, const struct monitor_round *round,
                       struct monitor_sink *sink)
{
    sample_tree(state, round, sink);
    sample_machine(state, sink);
}

const struct monitor_ops monitor_mem = {
    .name = "mem",
    .what = "memory of the run: resident, private, shared, swapped; of the machine",
    .open = mem_open,
    .sample = mem_sample,
    .close = mem_close,
};
