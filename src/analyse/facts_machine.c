/* facts_machine.c: facts about processors, from the monitors. */
#include <math.h>

#include "analyse/fact_parts.h"
#include "analyse/fact_series.h"
#include "analyse/report.h"

static void set_cores(struct report *r, struct facts *f)
{
    const double cores = r->run->meta.cores;
    const double used = report_cpu_percent(r) / 100;
    const double all = steady_cores_busy(r);
    const double own = steady_mean(r, "cpu", "") / 100;
    f->v[FACT_CPU_CORES] = isnan(own) ? used : own;
    if (!(cores > 0))
        return;
    f->v[FACT_CORES] = cores;
    f->v[FACT_SYSTEM_BUSY] = all / cores;
    /* In hundredths: less is the rounding of the difference. */
    f->v[FACT_IDLE_CORES] = fmax(round((cores - all) * 100) / 100, 0);
    if (isnan(all))
        f->v[FACT_IDLE_CORES] = NAN;
    f->v[FACT_FREE_CORES] = f->v[FACT_IDLE_CORES]; /* facts_native.c adds to it */
    f->v[FACT_FOREIGN_CORES] = all >= own ? all - own : isnan(all - own) ? NAN : 0;
    /* The kernel counts them over the whole machine: of no use to a run that has a part. */
    if (!monitors_find(&r->monitors, "cpu_allowed", ""))
        f->v[FACT_RUNNABLE] = steady_mean(r, "runnable", "") / cores;
}

/* Those that run and those that wait for a core which one of the run's own has: other
 * programs have their part of the waiting. */
static void set_busy_threads(struct report *r, struct facts *f)
{
    const double waiting = steady_mean(r, "run_delay", "") / 100;
    const double own = f->v[FACT_CPU_CORES], others = f->v[FACT_FOREIGN_CORES];
    const double by_own = others > 0 && own > 0 ? own / (own + others) : 1;
    f->v[FACT_BUSY_THREADS] = own + waiting * by_own;
}

static void set_limits(struct report *r, struct facts *f)
{
    f->v[FACT_CPU_LIMIT] = steady_mean(r, "cgroup_cpu_limit", "") / 100;
    f->v[FACT_THROTTLED_PERIODS] = steady_mean(r, "cgroup_throttled", "") / 100;
    /* Per group of threads: with several cores it may be more than all the time. */
    f->v[FACT_THROTTLED_SHARE] = steady_mean(r, "cgroup_throttled_time", "") / 100;
    if (f->v[FACT_THROTTLED_SHARE] > 0 && f->v[FACT_CORES] > 1)
        f->v[FACT_THROTTLED_SHARE] = at_most(f->v[FACT_THROTTLED_SHARE], 1);
}

void facts_of_machine(struct report *r, struct facts *f)
{
    set_cores(r, f);
    set_busy_threads(r, f);
    set_limits(r, f);
    f->v[FACT_IOWAIT_SHARE] = at_most(steady_mean(r, "cpu_iowait", "") / 100, 1);
    f->v[FACT_IO_PRESSURE] = steady_mean(r, "pressure_io_full", "") / 100;
    f->v[FACT_CPU_PRESSURE] = steady_mean(r, "pressure_cpu", "") / 100;
    f->v[FACT_MEMORY_PRESSURE] = steady_mean(r, "pressure_memory", "") / 100;
    f->v[FACT_THREADS] = steady_mean(r, "threads", "");
    f->v[FACT_SWITCHES] = steady_mean(r, "context_switches", "");
    if (f->v[FACT_CPU_CORES] > 0.05) {
        f->v[FACT_TURNS] = steady_mean(r, "context_switches_involuntary", "") /
                           f->v[FACT_CPU_CORES];
        f->v[FACT_SLEEPS] = steady_mean(r, "context_switches_voluntary", "") /
                            f->v[FACT_CPU_CORES];
    }
}
