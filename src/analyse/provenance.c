/* provenance.c: how each group of numbers came about.
 *
 * One line per group of keys in report.json. A group nobody captures is said to be
 * unavailable here, and null there.
 */
#include "analyse/parts.h"

#include <errno.h>
#include <math.h>

#include "base/buf.h"
#include "base/human.h"
#include "trace/stack_rows.h"

enum { MAX_ENTRIES = 120 };

static const char *const not_captured[] = {
    "gpu",
    "operations.gpu",
    "cost",
};

static void add(struct report *r, const char *metric, enum provenance_status status,
                const char *method, const char *resolution)
{
    if (r->provenance_count == MAX_ENTRIES)
        return;
    r->provenance[r->provenance_count++] = (struct provenance){ metric, status, method,
                                                                resolution };
}

static const char *resolution_of_durations(struct report *r)
{
    struct buf b = BUF_INIT;
    char error[HUMAN_LEN];
    buf_printf(&b, "%.3g ns", r->ns_per_tick);
    if (isfinite(r->clock_error_ns))
        buf_printf(&b, "; between processes ±%s",
                   human_duration(error, r->clock_error_ns));
    const char *text = b.error ? NULL : arena_strdup(&r->arena, b.data);
    buf_release(&b);
    return text ? text : "";
}

static bool any_operation(const struct report *r)
{
    for (size_t i = 1; i < r->ops.count; i++)
        if (r->ops.ops[i].op_count)
            return true;
    return false;
}

static void add_recorded(struct report *r)
{
    static const char nothing[] = "nothing was recorded";
    const bool recorded = r->events > 0;
    const enum provenance_status status = recorded ? MEASURED : UNAVAILABLE;

    add(r, "operations.durations", status,
        recorded ? "tick counter read at begin and end" : nothing,
        recorded ? resolution_of_durations(r) : "");
    add(r, "operations.percentiles", status,
        recorded ? "logarithmic histogram, 64 buckets per octave" : nothing,
        recorded ? "1 %" : "");
    add(r, "phases", status,
        recorded ? "self time of the main thread's zones; the rest of its wall time is "
                   "other"
                 : nothing,
        "");
    add(r, "step_ms", r->steps.durations.count ? MEASURED : UNAVAILABLE,
        r->steps.durations.count ? "time between calls of sonde_step()"
                                 : "fewer than two steps were recorded",
        "");
    add(r, "events", MEASURED, "records counted in the traces; a zone is two", "exact");
    if (r->hangs.count)
        add(r, "hangs", MEASURED,
            "stacks of sleeping threads read from outside (process_vm_readv) and "
            "unwound by .eh_frame; Python's by its structures; nothing is stopped",
            "one look per hang");
    add(r, "lost", MEASURED, "counted where an event could not be kept", "exact");
}

static void add_diagnosis(struct report *r)
{
    add(r, "account", r->account.known ? MEASURED : UNAVAILABLE,
        r->account.known
            ? "every nanosecond of the main thread in one part and one phase"
            : "no steps were recorded",
        r->account.partial ? "retained steps" : "");
    add(r, "bottlenecks", r->diagnosis.made ? MEASURED : UNAVAILABLE,
        "rules over measured numbers; each finding lists them with their sources", "");
    add(r, "bottlenecks.predicted_gain", MODELLED,
        "settings of the loader by the what-if model, other advice by the share at stake",
        "a range");
}

static void add_resources(struct report *r)
{
    const struct run_meta *m = &r->run->meta;
    const bool cpu = isfinite(report_cpu_percent(r));
    const bool rss = isfinite(report_peak_rss_mb(r));
    const bool supervisor = isfinite(m->supervisor_rss_mb);
    const bool ops = any_operation(r);

    add(r, "operations.memory", ops ? MEASURED : UNAVAILABLE,
        ops ? "resident set at begin and end, high-water mark between"
            : "no operations: plain zones keep no memory",
        ops ? "4 KiB" : "");
    add(r, "cpu_percent_avg", cpu ? MEASURED : UNAVAILABLE,
        cpu ? "CPU time of the program and its ended children (wait4), of all its "
              "processes where that is more (monitors)"
            : "the end of the program was not seen",
        "");
    add(r, "peak_rss_mb", rss ? MEASURED : UNAVAILABLE,
        rss ? "largest resident set of a single process (wait4, VmHWM); of all "
              "processes where shared pages could be counted once (PSS, sampled)"
            : "the end of the program was not seen",
        "");
    const bool overhead = isfinite(report_overhead_percent(r));
    add(r, "overhead_percent", overhead ? MEASURED : UNAVAILABLE,
        !overhead ? "no process measured what an event costs"
        : r->hot.samples >= REPORT_SAMPLES_FOR_OVERHEAD
            ? "the larger of: CPU samples in Sonde's code inside the program; events of "
              "the main thread × the cost of one, plus its waits for trace space. What "
              "the kernel does for sampling, and the supervisor, are not in it"
            : "events of the main thread × the cost of one, measured when the "
              "process began, plus its waits for trace space",
        "");
    add(r, "overhead_mb", supervisor ? MEASURED : UNAVAILABLE,
        supervisor ? "resident set of the supervisor; mapped traces not included"
                   : "no supervisor reported it",
        "");
}

/* One line for the monitors, and one for each that is missing. */
static void add_monitors(struct report *r)
{
    const struct report_monitors *m = &r->monitors;
    struct buf b = BUF_INIT;
    char interval[HUMAN_LEN];
    buf_printf(&b, "%s", human_duration(interval, m->interval_s * 1e9));
    const char *resolution = b.error ? NULL : arena_strdup(&r->arena, b.data);
    buf_release(&b);
    if (!m->present)
        add(r, "monitors", UNAVAILABLE, "not watched (--no-monitors, or no supervisor)",
            "");
    else
        add(r, "monitors", MEASURED,
            "files of /proc and /sys, read at intervals; averages weighted by time",
            resolution ? resolution : "");
    for (size_t i = 0; i < m->gap_count; i++)
        add(r, m->gaps[i].metric, UNAVAILABLE, m->gaps[i].why, "");
    const bool cards = isfinite(report_gpu_busy_share(r));
    add(r, "gpu_busy_share", cards ? MEASURED : UNAVAILABLE,
        !cards ? "no NVIDIA card was watched"
        : r->phases.has_busy
            ? "kernels, copies and fills of the imported trace, side by "
              "side counted once, mean of the cards that had any"
            : "NVML: share of time in which any kernel ran, mean of the "
              "cards",
        cards && resolution ? resolution : "");
    const bool each = m->process_count > 0;
    add(r, "processes.cpu_s", each ? MEASURED : UNAVAILABLE,
        each ? "the process's CPU clock at its last reading" : "not watched",
        each ? "until the last reading" : "");
    add(r, "processes.peak_rss_mb", each ? MEASURED : UNAVAILABLE,
        each
            ? "high-water mark (VmHWM) at its last reading, Sonde's own mappings taken "
              "off"
            : "not watched",
        "");
    const bool switches = each && isfinite(m->processes[0].voluntary_switches);
    add(r, "processes.switches", switches ? MEASURED : UNAVAILABLE,
        switches ? "status of every thread, added up; what a thread did after the last "
                   "look at it is missing"
                 : "not watched",
        switches ? "until the last look" : "");
}

static void add_allocations(struct report *r)
{
    const struct allocations *a = &r->allocations;
    const enum provenance_status status = a->known ? MEASURED : UNAVAILABLE;
    static const char none[] =
        "no process was captured (--no-preload, --level basic, a "
        "static program)";
    add(r, "allocations", status,
        !a->known ? none
        : a->in_spells
            ? "every call of the malloc family counted inside the program for ten "
              "seconds; since then, of threads with over 100,000 calls a second, one "
              "stretch of thirty-two, for all (SONDE_ALLOC_EXACT_S=inf: every call)"
            : "every call of the malloc family counted inside the program; realloc "
              "is an allocation and a free",
        !a->known      ? ""
        : a->in_spells ? "estimate"
                       : "exact");
    if (a->counts_only) {
        static const char why[] = "left out (--no-sites)";
        add(r, "allocations.peak_bytes", UNAVAILABLE, why, "");
        add(r, "allocations.sites", UNAVAILABLE, why, "");
        return;
    }
    add(r, "allocations.peak_bytes", status,
        a->known ? "live bytes as the allocator rounds them, of the process that held "
                   "most"
                 : none,
        a->known
            ? "64 KiB, or a thousandth of it, per thread; four times that per thread counted in spells"
            : "");
    add(r, "allocations.sites", status,
        a->known ? "sampled by bytes (Poisson, mean 8 KiB growing to 512 KiB, to 2 MiB "
                   "where gigabytes a second are), weighted"
                 : none,
        a->known ? "estimate" : "");
}

static void add_io(struct report *r)
{
    const struct io_report *io = &r->io;
    if (!io->captured) {
        add(r, "io", UNAVAILABLE, "no process was preloaded, or none used a file", "");
        return;
    }
    add(r, "io", MEASURED,
        "calls of libc interposed; stdio from the state of its buffers before and after",
        "bytes exact; calls of stdio are its refills and flushes");
    add(r, "io.latency", MEASURED,
        "tick counter around each call; logarithmic histogram, 8 buckets per octave",
        "6 %");
    add(r, "io.warm_share", MEASURED,
        "cachestat or mincore on up to 4 x 64 pages before the first read", "");
    add(r, "io.mapped_read_bytes", MODELLED,
        "pages in the process's page table when the mapping ended",
        "64 KiB: the kernel maps cached neighbours too");
    const bool known = isfinite(io->coverage);
    add(r, "io.coverage", known ? MEASURED : UNAVAILABLE,
        known
            ? "bytes seen / rchar + wchar of /proc/self/io, each process at its end or "
              "within its last second"
            : io->coverage_why,
        "");
}

static void add_syscalls(struct report *r)
{
    const struct syscall_report *s = &r->syscalls;
    add(r, "syscalls", s->known ? MEASURED : UNAVAILABLE,
        s->known
            ? "the kernel's count (tracepoint raw_syscalls:sys_enter) of the program "
              "and all it started; of Sonde's libraries inside it too"
            : "not counted (sonde run --syscalls asks for it)",
        !s->known     ? ""
        : s->is_final ? "exact"
                      : "up to the last look, a second apart");
}

static void add_shapes(struct report *r)
{
    const struct loader_report *l = &r->loaders;
    if (l->rows.count)
        add(r, "diagnosis.batch_rows", MODELLED,
            "shapes of what the trained model gets and gives, in some of its calls",
            "the batch or more: other first dimensions count as rows too");
    if (l->cells > 0)
        add(r, "diagnosis.padding_share", MEASURED,
            "lengths given to pad_sequence; zeros of attention_mask, in some batches",
            "exact for pad_sequence");
}

static void add_fits(struct report *r)
{
    if (r->fits[FIT_HOST].known)
        add(r, "batch_memory.host", MODELLED,
            "the most that was live on the main process's heap from each batch to the next "
            "fetch, by bytes of the batch; non-negative least squares, a square only where "
            "it halves what is left; everything else as at the peak",
            "fits_low_mb to fits_high_mb: two standard deviations");
    if (r->fits[FIT_CARD].known)
        add(r, "batch_memory.gpu", MODELLED,
            "peaks of torch's allocator, of batches that raised it, by bytes of the batch; "
            "what is not the allocator's as at the peak; scattered free memory is not in "
            "it",
            "fits_low_mb to fits_high_mb: two standard deviations");
}

static void add_loaders(struct report *r)
{
    const struct loader_report *l = &r->loaders;
    if (!l->count) {
        add(r, "loaders", UNAVAILABLE,
            "no data loader of torch was iterated under the Python layer", "");
        return;
    }
    add(r, "loaders", MEASURED,
        "tick counter read around torch's own calls, in the process that iterates and in "
        "every worker; counts and sums exact, percentiles from 16 buckets per octave",
        "3 % of a percentile");
    add(r, "loaders.sample_cpu_ms", MEASURED,
        "the thread's CPU clock at the end of each sample; of samples below 200 µs in one "
        "batch of 32",
        "");
    add(r, "loaders.transforms", MEASURED,
        "around each call in the list of a Compose; of samples below 30 µs in one batch "
        "of 32, totals scaled up by samples",
        "");
    add(r, "loaders.copied_mb", MEASURED,
        "forked workers 0 to 3 read their smaps_rollup before the first batch and when "
        "they end: private pages beyond the growth of the resident set, at most their "
        "faults",
        "a page");
    add(r, "loaders.queued", MEASURED,
        "batches put by workers and not yet taken: the last may still be on its way",
        "");
    add(r, "loaders.bytes", MODELLED,
        "tensors and arrays of every batch that took 0.4 ms or more, of one in 32 of "
        "others; their mean for all",
        "");
    add_fits(r);
}

static const char *sampling_method(struct report *r)
{
    static const char *const methods[] = {
        [STACKS_BY_PERF_USER] = "perf_event on the CPU time of every thread, user code "
                                "only",
        [STACKS_BY_PERF_KERNEL] = "perf_event on the CPU time of every thread",
        [STACKS_BY_TIMER] = "timers on the CPU time of every thread",
    };
    const struct hot_functions *h = &r->hot;
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s: %llu samples, %llu lost, %llu stacks cut short",
               h->method < sizeof methods / sizeof *methods && methods[h->method]
                   ? methods[h->method]
                   : "samples",
               (unsigned long long)h->samples, (unsigned long long)h->lost,
               (unsigned long long)h->cut + h->shallow);
    if (isfinite(h->coverage))
        buf_printf(&b, "; they cover %.0f %% of its CPU time%s", 100 * h->coverage,
                   h->coverage < 0.9 ? " (a window, time in the kernel that we may not "
                                       "see, or processes shorter than a period)"
                                     : "");
    if (h->addresses)
        buf_printf(&b, "; %.0f %% of the addresses named, %.0f %% with a line",
                   100.0 * (double)h->named / (double)h->addresses,
                   100.0 * (double)h->with_line / (double)h->addresses);
    const char *text = b.error ? NULL : arena_strdup(&r->arena, b.data);
    buf_release(&b);
    return text ? text : "";
}

static void add_sampled(struct report *r)
{
    const struct hot_functions *h = &r->hot;
    const bool any = h->samples > 0;
    struct buf b = BUF_INIT;
    const char *method = any          ? sampling_method(r)
                         : h->why[0]  ? h->why
                         : h->sampled ? "the program used too little CPU time"
                                      : "not sampled (--rate 0 or level basic)";
    buf_printf(&b, "%.3g ms of CPU time a sample; waiting is not seen",
               h->period_ns / 1e6);
    const char *resolution = any && !b.error ? arena_strdup(&r->arena, b.data) : "";
    buf_release(&b);
    add(r, "functions", any ? MEASURED : UNAVAILABLE, method,
        resolution ? resolution : "");
    add(r, "lines", any && h->line_count ? MEASURED : UNAVAILABLE,
        any && !h->line_count ? "no debugging information in what was sampled" : method,
        any && h->line_count && resolution ? resolution : "");
}

static void add_energy(struct report *r)
{
    static const char *const names[ENERGY_PARTS] = { "energy.cpu", "energy.dram",
                                                     "energy.gpu", "energy.machine" };
    static const enum provenance_status status[] = {
        [ENERGY_MEASURED] = MEASURED,
        [ENERGY_MODELLED] = MODELLED,
        [ENERGY_UNAVAILABLE] = UNAVAILABLE,
    };
    const struct energy *e = &r->energy;
    for (int p = 0; p < ENERGY_PARTS; p++)
        add(r, names[p], status[e->part[p].status], e->part[p].method,
            e->part[p].status == ENERGY_MODELLED ? "a factor of two" : "");
    add(r, "energy.co2e_g", isnan(e->co2e_g) ? UNAVAILABLE : MODELLED,
        e->off ? "switched off (--no-energy)"
        : !e->grid_is_default
            ? "joules × the grid's intensity as given (--grid)"
            : "joules × 458 g CO₂e/kWh (world average of 2025, Ember, "
              "Global Electricity Review 2026)",
        "");
}

static void add_ranks(struct report *r)
{
    bool told = false;
    for (size_t i = 0; i < r->layer.interpreter_count; i++)
        told |= r->layer.interpreters[i].rank >= 0;
    add(r, "ranks", told ? MEASURED : UNAVAILABLE,
        told ? "processes with RANK and WORLD_SIZE" : "no process said that it is one",
        "");
}

int provenance_write(struct report *report)
{
    report->provenance = arena_alloc_array(&report->arena, MAX_ENTRIES,
                                           sizeof(*report->provenance));
    if (!report->provenance)
        return -ENOMEM;
    add_recorded(report);
    add_diagnosis(report);
    add_resources(report);
    add_monitors(report);
    add_allocations(report);
    add_io(report);
    add_syscalls(report);
    add_loaders(report);
    add_shapes(report);
    add_sampled(report);
    add_energy(report);
    report->provenance_count += python_provenance(
        report, report->provenance + report->provenance_count,
        MAX_ENTRIES - report->provenance_count);
    add_ranks(report);
    for (size_t i = 0; i < sizeof(not_captured) / sizeof(not_captured[0]); i++)
        add(report, not_captured[i], UNAVAILABLE, "nothing captures it yet", "");
    return 0;
}
