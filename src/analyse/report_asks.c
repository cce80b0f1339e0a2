/* report_asks.c: small questions that a finished report answers. See report.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse/report.h"
#include "base/human.h"
#include "base/signame.h"

double report_duration_s(const struct report *report)
{
    if (!report->start_ns || report->end_ns <= report->start_ns)
        return NAN;
    return (double)(report->end_ns - report->start_ns) / 1e9;
}

double report_gpu_busy_share(const struct report *report)
{
    const struct report_monitors *m = &report->monitors;
    double sum = 0;
    size_t cards = 0;
    for (size_t i = 0; i < m->series_count; i++)
        if (strcmp(m->series[i].metric, "gpu") == 0) {
            sum += m->series[i].avg / 100;
            cards++;
        }
    if (cards)
        return sum / (double)cards;
    const double wall_s = report_duration_s(report);
    return report->phases.has_busy && wall_s > 0
               ? fmin(report->phases.busy_s / wall_s, 1)
               : NAN;
}

static double events_overhead_percent(const struct report *r)
{
    if (r->main_process >= r->process_count)
        return NAN;
    const struct report_process *p = &r->processes[r->main_process];
    const double wall_ns = (double)(r->end_ns - p->start_ns);
    if (!(wall_ns > 0))
        return NAN;
    return 100 * ((double)p->main_events * p->event_cost_ns + p->wait_ns) / wall_ns;
}

double report_overhead_percent(const struct report *r)
{
    const bool sampled = r->hot.samples >= REPORT_SAMPLES_FOR_OVERHEAD;
    return fmax(events_overhead_percent(r), sampled ? 100 * r->hot.own_share : NAN);
}

double report_cpu_percent(const struct report *report)
{
    const struct run_meta *m = &report->run->meta;
    const struct report_series *seen = monitors_find(&report->monitors, "cpu_time", "");
    const double duration_s = report_duration_s(report);
    /* What wait4 tells is exact but leaves out orphans; of a run whose end nobody saw
     * there are only the monitors. */
    const double waited_s = m->cpu_user_s + m->cpu_system_s;
    if (seen && isnan(waited_s) && isnan(duration_s)) {
        const struct report_series *rate = monitors_find(&report->monitors, "cpu", "");
        return rate ? rate->avg : NAN;
    }
    return fmax(waited_s, seen ? seen->last : NAN) / duration_s * 100;
}

double report_peak_rss_mb(const struct report *report)
{
    const struct report_series *all = monitors_find(&report->monitors, "pss", "");
    double peak = fmax(report->run->meta.max_rss_mb, all ? all->max : NAN);
    for (size_t i = 0; i < report->monitors.process_count; i++)
        peak = fmax(peak, report->monitors.processes[i].peak_rss_mb);
    return peak;
}

double report_silent_ns(const struct report *report, const struct open_thread *thread)
{
    const int64_t end = report->state == RUN_LIVE
                            ? report->processes[thread->process].end_ns
                            : report->end_ns;
    return end > thread->last_ns ? (double)(end - thread->last_ns) : 0;
}

const char *report_lost_words(unsigned reasons, char *ret_text, size_t len)
{
    static const struct {
        unsigned bit;
        const char *words;
    } table[] = {
        { LOST_DISK_FULL, "disk full" },
        { LOST_FILE_LIMIT, "file-size limit" },
        { LOST_BUDGET, "--max-trace used up" },
        { LOST_LANES, "too many threads" },
        { LOST_LOSSY, "--lossy" },
        { LOST_STALLED, "nobody folded in time" },
        { LOST_HOLE, "written halfway" },
        { LOST_ADDRESS_SPACE, "no address space" },
    };
    size_t used = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (!(reasons & table[i].bit) || used + 1 >= len)
            continue;
        const int n = snprintf(ret_text + used, len - used, "%s%s", used ? ", " : "",
                               table[i].words);
        used += n > 0 ? (size_t)n : 0;
    }
    if (ret_text[0] == '\0')
        (void)snprintf(ret_text, len, "reason unknown");
    return ret_text;
}

static const char *cause_words(const struct report *r, char *ret_text, size_t len)
{
    const char *cause = r->run->meta.exit.cause;
    static const char *const told_already[] = { "", "ok", "error", "signal",
                                                "unknown" };
    bool plain = false;
    for (size_t i = 0; i < sizeof(told_already) / sizeof(told_already[0]); i++)
        plain |= strcmp(cause, told_already[i]) == 0;
    if (plain)
        ret_text[0] = '\0';
    else
        (void)snprintf(ret_text, len, " (%s)", cause);
    return ret_text;
}

bool report_ended_well(const struct report *report)
{
    return report->state == RUN_GOOD ||
           (report->state == RUN_LEFT && report->run->meta.session);
}

const char *report_left_word(const struct report *report)
{
    const struct run_meta *m = &report->run->meta;
    return m->imported ? "imported" : m->attached ? "attached" : "session";
}

const char *report_state_words(const struct report *report, char *ret_text, size_t len)
{
    const struct run_exit *exit = &report->run->meta.exit;
    char cause[64];
    char name[SIGNAL_NAME_LEN];
    (void)cause_words(report, cause, sizeof(cause));
    switch (report->state) {
    case RUN_GOOD:
    case RUN_FAILED:
        (void)snprintf(ret_text, len, "exit %d%s", exit->code, cause);
        break;
    case RUN_KILLED:
        (void)snprintf(ret_text, len, "killed by %s%s", signal_name(exit->signal, name),
                       cause);
        break;
    case RUN_LIVE:
        (void)snprintf(ret_text, len, "running");
        break;
    case RUN_UNKNOWN:
        (void)snprintf(ret_text, len, "exit unknown%s", cause);
        break;
    case RUN_LEFT:
        (void)snprintf(ret_text, len, "%s", report_left_word(report));
        break;
    }
    return ret_text;
}
