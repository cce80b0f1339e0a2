/* facts_memory.c: facts about memory: how much, how it grows, what it costs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/fact_series.h"
#include "analyse/facts_churn.h"
#include "analyse/report.h"
#include "base/files.h"

/* What a page fault costs where nobody measured it: entering the kernel, a zeroed page.
 * On the reference machine (a guest) it was between 0.5 and 3.5 µs. */
static const double FAULT_S = 1e-6, FAULT_LEAST_S = 0.4e-6, FAULT_MOST_S = 3.5e-6;

/* … and of the program's own code that touched the page: an exception and its return, then
 * misses of caches and TLB. Between 0.2 and 0.4 µs in three programs whose buffers were
 * kept instead (jet_kernels, fresh_buffers, edge_messages). */
static const double TOUCH_S = 0.25e-6;

/* Clearing, mapping and unmapping a MiB of huge pages; small ones take four times that. */
static const double FRESH_MS_PER_MB = 0.15;

static const double MIB = 1 << 20;

static uint32_t main_pid(const struct report *r)
{
    return r->main_process < r->process_count ? r->processes[r->main_process].pid
                                              : r->run->meta.pid;
}

double mapped_files_mb(const struct report *r, uint32_t pid)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", pid);
    const struct report_series *s = monitors_find(&r->monitors, "rss_file", text);
    return s && s->last > 0 ? s->last : 0;
}

static void set_use(struct report *r, struct facts *f)
{
    const struct report_series *group = monitors_find(&r->monitors, "cgroup_memory",
                                                      "");
    const struct report_series *limit = monitors_find(&r->monitors,
                                                      "cgroup_memory_limit", "");
    const struct report_series *used = monitors_find(&r->monitors, "memory_used", "");
    const double machine = r->run->meta.memory_mb;
    f->v[FACT_RSS_MB] = report_peak_rss_mb(r);
    f->v[FACT_MEMORY_LIMIT_MB] = limit ? fmin(limit->last, machine) : machine;
    /* The group's use includes page cache, which the kernel gives back: it is near its
     * limit only when the processes' own pages are. Mapped files are such a cache: torch's
     * libraries were 130 MiB of 413 in a group of 420 that had never used more than 300. */
    const double files = fmin(mapped_files_mb(r, main_pid(r)), f->v[FACT_RSS_MB]);
    const double own = (f->v[FACT_RSS_MB] - files) / f->v[FACT_MEMORY_LIMIT_MB];
    f->v[FACT_MEMORY_SHARE] = own;
    if (used && !limit && machine > 0)
        f->v[FACT_MEMORY_SHARE] = fmax(own, used->max / machine);
    (void)group;
}

/* When live bytes were highest, as a share of the steady steps; NaN: nobody looked. */
static double heap_peak_at(const struct report *r)
{
    const struct allocations *a = &r->allocations;
    const double at_s = (double)(a->peak_ns - r->start_ns) / 1e9;
    const double from_s = steady_from_s(r);
    const double to_s = (r->account.wall_ns - r->account.end_ns) / 1e9;
    return a->known && a->peak_ns && r->account.known && to_s > from_s
               ? fmin(fmax((at_s - from_s) / (to_s - from_s), 0), 1)
               : NAN;
}

/* What goes on growing is highest at the end of the steps. True when nobody looked. */
static bool heap_peaks_late(const struct report *r)
{
    return !(heap_peak_at(r) < 0.8);
}

/* Without steps nobody knows what a program still needs: data that it reads, a dictionary
 * that it builds grow as a leak does. It takes a long run that was looked at often, grew
 * alike from its first part to its last, and has blocks of one site left from all of it. */
static bool is_proven_without_steps(const struct report *r, const struct growth *g)
{
    double most = 0;
    for (size_t i = 0; i < r->allocations.site_count; i++)
        if (r->allocations.sites[i].leak)
            most = fmax(most, r->allocations.sites[i].live_bytes / MIB);
    return report_duration_s(r) >= 60 && g->points >= 30 && g->late >= 0.6 &&
           g->late <= 1 / 0.6 && most >= 0.5 * g->total;
}

static void set_growth(struct report *r, struct facts *f)
{
    char pid[16];
    (void)snprintf(pid, sizeof pid, "%u", main_pid(r));
    const struct report_series *s = monitors_find(&r->monitors, "rss", pid);
    const struct growth g = series_growth(
        r, s ? s : monitors_find(&r->monitors, "rss", ""));
    if (!r->account.known && !is_proven_without_steps(r, &g))
        return;
    /* Batches of many sizes make it go up and down by more than it grew: a slope through
     * them is chance, unless the heap was highest at the end. */
    const bool swings = g.total < 0.5 * (double)r->allocations.peak_bytes / MIB;
    const bool sure = g.low_per_s > 0 && ((!g.few && !swings) || heap_peaks_late(r));
    f->v[FACT_GROWTH_MB] = sure ? g.total : isnan(g.total) ? NAN : 0;
    f->v[FACT_GROWTH_MB_PER_MIN] = g.per_s * 60;
    f->v[FACT_GROWTH_LATE] = g.late;
}

/* ---- Allocations ------------------------------------------------------------------------- */

static void put_alloc_place(struct report *r, struct facts *f, enum fact_place place,
                            const struct alloc_site *s)
{
    struct buf b = BUF_INIT;
    if (s->at.function[0])
        buf_puts(&b, s->at.function);
    if (s->at.file[0] && s->at.line)
        buf_printf(&b, "%s%s:%u%s", b.len ? " (" : "", path_base(s->at.file),
                   s->at.line, s->at.function[0] ? ")" : "");
    else if (s->at.module[0])
        buf_printf(&b, "%s%s%s", b.len ? " (" : "", path_base(s->at.module),
                   b.len ? ")" : "");
    fact_place(r, f, place, &b);
    buf_release(&b);
}

static void set_leaks(struct report *r, struct facts *f)
{
    const struct allocations *a = &r->allocations;
    const struct alloc_site *worst = NULL;
    double bytes = 0;
    double per_step = 0;
    for (size_t i = 0; i < a->site_count; i++) {
        const struct alloc_site *s = &a->sites[i];
        if (!s->leak)
            continue;
        bytes += s->live_bytes;
        per_step += isnan(s->growth_per_step) ? 0 : s->growth_per_step;
        if (!worst || s->live_bytes > worst->live_bytes)
            worst = s;
    }
    /* Where the program let go of most that it held, what it had kept until then is not
     * known to be nothing. */
    if (bytes > 0 || a->live_bytes >= 0.5 * (double)a->peak_bytes)
        f->v[FACT_LEAK_MB] = bytes / MIB;
    if (per_step > 0)
        f->v[FACT_LEAK_KB_PER_STEP] = per_step / 1024;
    /* Programs let go of everything at their end; what they had kept was live when they
     * held most. */
    for (size_t i = 0; bytes == 0 && i < a->site_count; i++)
        if (a->sites[i].peak_bytes >= 0.5 * (double)a->peak_bytes)
            worst = &a->sites[i];
    if (worst)
        put_alloc_place(r, f, PLACE_LEAK, worst);
}

/* Imports allocate a million blocks before the first step: no step does. */
static void set_per_step(const struct allocations *a, double steps, struct facts *f)
{
    double count = (double)a->count, bytes = (double)a->bytes;
    for (size_t i = 0; i < a->zone_count; i++)
        if (strncmp(a->zones[i].name, "import ", 7) == 0) {
            count -= (double)a->zones[i].count;
            bytes -= (double)a->zones[i].bytes;
        }
    f->v[FACT_ALLOCS_PER_STEP] = fmax(count, 0) / steps;
    f->v[FACT_ALLOC_MB_PER_STEP] = fmax(bytes, 0) / MIB / steps;
}

static void set_allocations(struct report *r, struct facts *f)
{
    const struct allocations *a = &r->allocations;
    const double steps = (double)r->account.steps;
    if (!a->known)
        return;
    set_leaks(r, f);
    f->v[FACT_LIVE_MB] = a->live_bytes / MIB;
    if (a->peak_bytes > 0)
        f->v[FACT_LIVE_PEAK_MB] = (double)a->peak_bytes / MIB;
    f->v[FACT_LIVE_PEAK_AT] = heap_peak_at(r);
    if (a->live_bytes > 0)
        f->v[FACT_FRAGMENTATION] = f->v[FACT_RSS_MB] / f->v[FACT_LIVE_MB];
    if (steps > 0)
        set_per_step(a, steps, f);
    const struct alloc_site *most = NULL;
    for (size_t i = 0; i < a->site_count; i++)
        if (!most || a->sites[i].bytes > most->bytes)
            most = &a->sites[i];
    if (most)
        put_alloc_place(r, f, PLACE_ALLOC, most);
}

/* Blocks that the C library always takes from the kernel and gives back: their pages are
 * cleared each time, in huge pages or small ones. MiB in a step. */
static double fresh_mb_per_step(const struct report *r)
{
    double bytes = 0;
    for (unsigned k = 0; k < HEAP_CLASSES; k++)
        if (heap_class_limit(k) > 32u << 20)
            bytes += (double)r->allocations.sizes[k].bytes;
    return r->allocations.known && r->account.steps
               ? bytes / MIB / (double)r->account.steps
               : NAN;
}

static double kernel_s(const struct hot_functions *h)
{
    double ns = 0;
    for (size_t i = 0; i < h->function_count; i++)
        if (strcmp(h->functions[i].module, "[kernel]") == 0)
            ns += h->functions[i].share * h->cpu_ns;
    return ns / 1e9;
}

/* What one cost here: CPU time in the kernel that is no file call and no yield of a thread
 * that spins, over all faults. At most that: starting a program takes time in the kernel
 * too. */
static double fault_s(const struct report *r)
{
    const struct report_series *faults = monitors_find(&r->monitors, "page_faults", "");
    const struct hot_functions *h = &r->hot;
    if (!faults || !h->sampled || h->samples < 100 || !r->io.captured)
        return FAULT_S;
    const double calls_s = (r->io.total[0].ns + r->io.total[1].ns + r->io.open_ns) /
                           1e9;
    const double count = faults->avg * report_duration_s(r);
    const double each = (kernel_s(h) - native_yield_ns(h) / 1e9 - calls_s) / count;
    return count > 0 ? fmin(fmax(each, FAULT_LEAST_S), FAULT_MOST_S) : FAULT_S;
}

static void set_faults(struct report *r, struct facts *f)
{
    const struct churn churn = churn_of(r, f);
    const double faults = churn.faults_per_s;
    const double cores = f->v[FACT_CPU_CORES];
    f->v[FACT_TURNOVER] = churn_turnover(&churn);
    f->v[FACT_MAJOR_FAULTS] = steady_mean(r, "page_faults_major", "");
    f->v[FACT_SWAP_MB] = steady_mean(r, "swap", "");
    if (cores > 0.05)
        f->v[FACT_FAULT_SHARE] = at_most(faults * FAULT_S / cores, 1);
    if (cores > 0.05)
        f->v[FACT_FAULT_KERNEL_SHARE] = at_most(faults * fault_s(r) / cores, 1);
    if (cores > 0.05)
        f->v[FACT_FAULT_TOUCH_SHARE] = at_most(faults * TOUCH_S / cores, 1);
    const double fresh = fresh_mb_per_step(r) * churn_returned(&churn) *
                         FRESH_MS_PER_MB / f->v[FACT_STEP_MS];
    f->v[FACT_HUGE_BLOCKS_SHARE] = at_most(fresh, 1);
    if (fresh > 0) /* fmax takes the one that is known */
        f->v[FACT_FAULT_SHARE] = at_most(fmax(f->v[FACT_FAULT_SHARE], fresh), 1);
    if (f->v[FACT_STEP_MS] > 0)
        f->v[FACT_FAULTS_PER_STEP] = steady_mean(r, "page_faults", "") *
                                     f->v[FACT_STEP_MS] / 1e3;
}

void facts_of_memory(struct report *r, struct facts *f)
{
    const double total = steady_mean(r, "shm_total", "");
    set_use(r, f);
    set_growth(r, f);
    set_allocations(r, f);
    set_faults(r, f);
    const struct report_series *shm = monitors_find(&r->monitors, "shm_used", "");
    if (shm && total > 0) {
        f->v[FACT_SHM_MB] = shm->max;
        f->v[FACT_SHM_SHARE] = shm->max / total;
    }
}
