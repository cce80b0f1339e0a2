/* rules_host.c: rules about processors, the interpreter and native code. */
#include "analyse/habits.h"
#include "analyse/rules.h"
#include "analyse/threads.h"

/* ---- cpu_saturated ---------------------------------------------------------------------- */

/* A compute-bound program that keeps every core busy is healthy. It is worth a word when
 * something explains it, or when others take the cores. */
static bool judge_saturated(const struct rule_case *c, struct draft *d)
{
    const double busy = FACT_OF(c, SYSTEM_BUSY);
    const double foreign = FACT_OF(c, FOREIGN_CORES) / FACT_OF(c, CORES);
    if (!(busy >= c->t->cpu_busy))
        return false;
    const bool others = foreign >= 0.25;
    d->needs_cause = !others;
    d->always_low = others;
    d->of_others = others;
    d->stake = c->t->reference ? 0.2 : others ? fmin(foreign, 1) : 0.1;
    buf_printf(&d->text, "%.0f %% of all cores were busy", 100 * busy);
    if (others)
        buf_printf(&d->text, ", %.1f of them with other programs",
                   FACT_OF(c, FOREIGN_CORES));
    buf_putc(&d->text, '.');
    buf_puts(&d->advice, others
                             ? "Give the run cores of its own: other programs compete "
                               "with it"
                         : FACT_OF(c, INPUT_SHARE) >= 0.1 || FACT_OF(c, WORKERS) > 0
                             ? "Spend less CPU on loading and preprocessing, or use "
                               "more cores"
                             : "Cure what it comes from, or use more cores");
    return true;
}

/* ---- cpu_throttled ------------------------------------------------------------------------- */

/* Without the quota the same CPU time is used by as many threads at once as want to run.
 * Where a step is shorter than what a period allows, most steps were never stopped: the
 * usual one shows what they all would take. It cannot bring more than the time the
 * program was stopped. */
static void gain_of_quota(const struct rule_case *c, struct draft *d, double lost)
{
    const double wanted = fmin(fmax(FACT_OF(c, BUSY_THREADS), 1), FACT_OF(c, CORES));
    const double cpu = FACT_OF(c, CPU_CORES) / fmax(wanted, 1);
    const double usual = FACT_OF(c, STEP_MS) / FACT_OF(c, STEP_MEAN_MS);
    const double left = fmin(cpu, usual); /* whichever is known */
    const double mid = isnan(left) ? 0.8 * lost : fmin(1 - left, lost);
    d->gain = (struct gain){ fmin(fmax(1 - 2 * (1 - mid), 0.5 * mid), mid), mid,
                             fmax(1 - 0.7 * (1 - mid), mid) };
}

static bool judge_throttled(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, THROTTLED_SHARE);
    if (!(share >= c->t->throttled))
        return false;
    const double lost = fmin(share, 0.95);
    d->stake = fmax(lost, fmin(FACT_OF(c, THROTTLED_PERIODS), 1) * 0.5);
    gain_of_quota(c, d, share);
    buf_printf(&d->text, "The CPU quota stopped the program for %.0f %% of the time",
               100 * lost);
    if (fact_known(c->f, FACT_CPU_LIMIT))
        buf_printf(&d->text, ": it may use %.3g cores of %.0f", FACT_OF(c, CPU_LIMIT),
                   FACT_OF(c, CORES));
    buf_putc(&d->text, '.');
    buf_puts(&d->advice, "Raise the container's CPU limit");
    if (FACT_OF(c, THREADS) > FACT_OF(c, CPU_LIMIT))
        buf_printf(&d->advice,
                   ", or use as many threads and workers as it allows (%.3g cores): "
                   "OMP_NUM_THREADS, num_workers",
                   FACT_OF(c, CPU_LIMIT));
    return true;
}

/* ---- oversubscribed ----------------------------------------------------------------------- */

/* To take a thread off its core and put another there, and the caches that are cold then. */
static const double SWITCH_S = 5e-6;

/* A team of threads that meets after every piece of work: whoever comes early spins,
 * yields or sleeps until the last has had a core. So few of them are runnable at any
 * moment. What it costs can be measured: CPU time spent spinning, as far as somebody
 * wanted that core, and switches. */
static double team_loss(const struct rule_case *c)
{
    const double waiting = (FACT_OF(c, BUSY_THREADS) - FACT_OF(c, CPU_CORES)) /
                           FACT_OF(c, CORES);
    const double spin = FACT_OF(c, SPIN_SHARE) * (waiting > 1 ? 1 : waiting);
    const double turns = FACT_OF(c, TURNS), sleeps = FACT_OF(c, SLEEPS);
    return (spin > 0 ? spin : 0) +
           SWITCH_S * ((turns > 0 ? turns : 0) + (sleeps > 0 ? sleeps : 0));
}

static bool is_team(const struct rule_case *c)
{
    return FACT_OF(c, THREADS) / FACT_OF(c, CORES) >= c->t->team_threads &&
           team_loss(c) >= c->t->team_loss;
}

/* In steps of now, with threads that fit. Where only names of functions told work from
 * waiting, putting a thread to sleep and waking it is not in it yet. NaN: nobody knows
 * which is which. */
static double team_that_fits(const struct rule_case *c, double sleeps)
{
    struct facts f = *c->f;
    const double all = FACT_OF(c, WORK_CORES);
    if (isnan(FACT_OF(c, CHILDREN_AT_WORK))) {
        const double work = all - sleeps * FACT_OF(c, CPU_CORES);
        f.v[FACT_WORK_CORES] = fmax(work, FACT_OF(c, SERIAL_CORES) + 0.2 * all);
    }
    return isnan(all) ? NAN : threads_left_fitting(&f);
}

/* With as many threads as cores the work is left: CPU time in which no thread waited for
 * another. How much of it runs side by side is told by what it is; where the loop's part
 * is not known, by how much did: where nearly all CPU time was waiting it is between one
 * core and all of them. Without native stacks waiting is not told from work. */
static void gain_of_threads(const struct rule_case *c, struct draft *d, double lost)
{
    const double sleeps = FACT_OF(c, SLEEPS) > 0 ? SWITCH_S * FACT_OF(c, SLEEPS) : 0;
    const double waits = fmin(FACT_OF(c, AWAIT_SHARE) + sleeps, 0.98);
    const double used = FACT_OF(c, CPU_CORES);
    d->gain = (struct gain){ 0.1 * lost, 0.7 * lost, fmin(1.5 * lost, 0.95) };
    if (!(FACT_OF(c, AWAIT_SHARE) >= 0.05) || !(used >= 1))
        return;
    const double work = used * (1 - waits); /* in steps of now, on one core */
    const double fits = team_that_fits(c, sleeps);
    const double left = fmin(isnan(fits) ? work / pow(used, 1 - 0.5 * waits) : fits, 1);
    const double least = fmin(0.85 * work / fmax(used, FACT_OF(c, CORES)), 0.7 * left);
    d->gain = (struct gain){ fmax(1 - fmax(1.15 * work, left), 0), 1 - left,
                             1 - least };
}

/* Of a step: less is no gain. */
static const double NOTHING = 0.02;

/* Those who want the cores are a loader's workers and the loop, each one thread, and with
 * fewer of them a step would be faster: a setting of the loader, which has its own rule.
 * Threads of the loop's own that wait for one another then wait for the workers' cores. */
static bool crowd_is_workers(const struct rule_case *c)
{
    const double workers = FACT_OF(c, WORKERS);
    return workers > FACT_OF(c, CORES) && FACT_OF(c, BUSY_THREADS) <= workers + 1 &&
           FACT_OF(c, WORKERS_BEST) < workers &&
           FACT_OF(c, WORKERS_GAIN) >= c->t->workers_help;
}

static bool judge_oversubscribed(const struct rule_case *c, struct draft *d)
{
    const double per_core = FACT_OF(c, BUSY_THREADS) / FACT_OF(c, CORES);
    const bool crowd = per_core >= c->t->busy_threads &&
                       !(FACT_OF(c, RUNNABLE) < c->t->runnable);
    if (!crowd && !is_team(c))
        return false;
    const double threads = crowd ? FACT_OF(c, BUSY_THREADS) : FACT_OF(c, THREADS);
    const double turn = 1 - 1 / sqrt(threads / FACT_OF(c, CORES));
    const double lost = fmin(fmax(team_loss(c), crowd ? turn : 0), 0.8);
    d->stake = lost;
    gain_of_threads(c, d, lost);
    /* A team whose work alone fills the step has lost nothing to one another: it waits
     * for others, a loader's workers say, and they have an illness of their own. */
    d->always_low = crowd_is_workers(c) || (!crowd && d->gain.mid < NOTHING);
    buf_printf(&d->text, "%.0f threads %s %.0f cores", threads,
               crowd ? "want to run on" : "share", FACT_OF(c, CORES));
    if (is_team(c))
        buf_printf(&d->text,
                   "; %.0f %% of their CPU time goes into waiting for one another "
                   "(spinning, switches)",
                   100 * fmin(team_loss(c), 1));
    buf_putc(&d->text, '.');
    buf_printf(&d->advice,
               "Let threads × processes be at most %.0f: OMP_NUM_THREADS, "
               "torch.set_num_threads, threads of pools",
               FACT_OF(c, CORES));
    if (FACT_OF(c, WORKERS) > 0)
        buf_printf(&d->advice, "; num_workers=%.0f", FACT_OF(c, WORKERS));
    put_place(&d->advice, " at ", PLACE_OF(c, LOADER));
    return true;
}

/* ---- gil_contention, gc_pauses ------------------------------------------------------------ */

/* Of a step: what the main thread does itself. Not all waiting for the lock is seen as such:
 * operators and the backward pass give the lock up and want it again inside of C++, where no
 * frame of Python's tells. So it is CPU time, and what it waits for data; of the rest it
 * waited for a core as far as other programs had them, and will again. Never more than all
 * that was not seen to wait. */
static double without_lock(const struct rule_case *c, double share)
{
    const double input = FACT_OF(c, INPUT_SHARE), cpu = FACT_OF(c, MAIN_CPU_SHARE);
    const double others = FACT_OF(c, FOREIGN_CORES) / FACT_OF(c, CORES);
    const double own = cpu + (input > 0 ? input : 0);
    const double rest = fmax(1 - share - own, 0) * fmin(fmax(others, 0), 1);
    return fmin(1 - share, cpu > 0 ? own + (isnan(rest) ? 0 : rest) : 1);
}

/* What the main thread does itself is left. It goes no faster: in a process of its own the
 * other work has a core as before. At best it is gone, and leaves its core. Beyond nine tenths
 * of waiting the rest is mostly waking up for the lock, and nobody can tell how much, unless
 * CPU time does. */
static void gain_without_lock(const struct rule_case *c, struct draft *d, double share)
{
    const double cores = FACT_OF(c, CORES);
    const double alone = cores >= 1 ? cores / (cores + 1) : 0.75;
    const double own = without_lock(c, share);
    const double least = share > 0.9 && !(own < 1 - share) ? 0.05 : 0.7;
    d->gain = (struct gain){ 0.8 * share, 1 - own, 1 - least * own * alone };
}

static bool judge_gil(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, GIL_WAIT_SHARE);
    if (!(share >= c->t->gil_wait))
        return false;
    d->stake = share;
    gain_without_lock(c, d, share);
    buf_printf(&d->text, "The main thread waits for the GIL %.0f %% of its time",
               100 * share);
    put_place(&d->text, "; it is held by ", PLACE_OF(c, GIL));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, GIL);
    buf_puts(&d->advice, "Move that Python work into processes");
    put_place(&d->advice, ": ", PLACE_OF(c, GIL));
    buf_puts(&d->advice, ", or into code that releases the GIL");
    return true;
}

static void gain_without_collector(const struct rule_case *c, struct draft *d,
                                   double share)
{
    const double left = habits_without_collector(c->f);
    d->gain = (struct gain){ fmin(0.9 * share, 1 - left), 1 - left, 1 - 0.6 * left };
}

/* A main thread that makes its own batches most of the time makes most objects there: a
 * collector that takes a small part of that walks over the samples' own, and goes with
 * them. Pauses that are the illness are many times what happens in between. */
static bool is_collector_of_batches(const struct rule_case *c, double share)
{
    const double input = FACT_OF(c, INPUT_SHARE);
    return input >= 0.5 && !(FACT_OF(c, WORKERS) > 0) && share <= 0.25 * input;
}

static bool judge_gc(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, GC_SHARE);
    if (!(share >= c->t->gc))
        return false;
    d->stake = share;
    d->always_low = is_collector_of_batches(c, share);
    gain_without_collector(c, d, share);
    buf_printf(&d->text,
               "Python's garbage collector takes %.0f %% of the main thread's "
               "time.",
               100 * share);
    d->place = PLACE_OF(c, COLLECT);
    /* gc.disable() stops no call of the program's own. */
    if (d->place[0])
        buf_printf(
            &d->advice,
            "The program calls gc.collect() itself: take the call out, or make it "
            "once an epoch: %s; gc.freeze() after setting up makes each call "
            "shorter",
            d->place);
    else if (!fact_known(c->f, FACT_STEPS))
        buf_puts(&d->advice,
                 "gc.disable() while many objects are made and gc.enable() behind it, "
                 "or keep fewer objects");
    else
        buf_puts(&d->advice,
                 "gc.freeze() after setting up, gc.disable() in the loop with "
                 "gc.collect() between epochs, or keep fewer objects");
    return true;
}

/* ---- slow_blas ------------------------------------------------------------------------------ */

/* The reference multiplies and adds about two numbers in three cycles. A tuned library
 * reaches 85 % of what two vector units of eight floats (four doubles) do, 21 (10) times
 * that, on every core. Measured: 184 s against 9.5 s in double on two cores (BUDGETS). */
static void gain_of_blas(const struct rule_case *c, struct draft *d, double share)
{
    const double once = FACT_OF(c, DOUBLE_SHARE) >= 0.5 * share ? 10.5 : 21;
    const double cores = fmax(FACT_OF(c, CORES), 1);
    const double wall = FACT_OF(c, REFERENCE_BLAS_WALL_SHARE);
    /* Only where one thread computes is its CPU time that of the run. */
    const double part = FACT_OF(c, CPU_CORES) < 1.2 ? fmax(wall, share) : share;
    d->gain = (struct gain){ part * (1 - 1 / fmax(once / 2, 4)),
                             part * (1 - 1 / (once * cores)),
                             fmin(fmax(part, 1 - 0.5 * (1 - part)), 0.99) };
}

static bool judge_blas(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, REFERENCE_BLAS_SHARE);
    if (!(share >= c->t->reference_blas))
        return false;
    d->stake = share;
    gain_of_blas(c, d, share);
    buf_printf(&d->text,
               "%.0f %% of CPU time is in the reference BLAS, which uses "
               "neither caches nor vector units well",
               100 * share);
    put_place(&d->text, ": ", PLACE_OF(c, BLAS));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, BLAS);
    buf_puts(&d->advice,
             "Install OpenBLAS (Debian: apt-get install libopenblas0-pthread; "
             "it replaces libblas.so.3 by itself) or a build with MKL");
    return true;
}

/* ---- numa_pcie ------------------------------------------------------------------------------- */

static bool judge_numa(const struct rule_case *c, struct draft *d)
{
    const double remote = FACT_OF(c, NUMA_REMOTE);
    if (!(remote >= c->t->numa_remote))
        return false;
    d->stake = 0.5 * remote;
    d->gain = (struct gain){ 0.05 * remote, 0.15 * remote, 0.4 * remote };
    buf_printf(&d->text,
               "%.0f %% of memory is on another NUMA node than the cores that "
               "use it.",
               100 * remote);
    buf_puts(&d->advice, "Bind the process to the node of its card: numactl "
                         "--cpunodebind=N --membind=N");
    return true;
}

const struct rule rules_host[] = {
    { "cpu_saturated", "CPU-BOUND", RULES_HOST, true, .judge = judge_saturated,
      .needs = { FACT_SYSTEM_BUSY },
      .shows = { FACT_CPU_CORES, FACT_CORES, FACT_FOREIGN_CORES, FACT_RUNNABLE },
      .yields_to = { "preprocessing_bound", "oversubscribed", "slow_blas",
                     "data_loading_bound", "collate_bound", "gil_contention",
                     "too_many_workers", "precision_unused", "allocation_churn" } },
    { "cpu_throttled", "THROTTLED", RULES_HOST, .judge = judge_throttled,
      .needs = { FACT_THROTTLED_SHARE },
      .shows = { FACT_THROTTLED_PERIODS, FACT_CPU_LIMIT, FACT_CORES, FACT_CPU_CORES,
                 FACT_THREADS } },
    { "oversubscribed", "OVERSUBSCRIBED", RULES_HOST, .judge = judge_oversubscribed,
      .needs = { FACT_BUSY_THREADS, FACT_CORES },
      .shows = { FACT_RUNNABLE, FACT_THREADS, FACT_WORKERS, FACT_SLEEPS, FACT_TURNS,
                 FACT_CPU_CORES, FACT_WORK_CORES, FACT_CPU_PRESSURE, FACT_SPIN_SHARE,
                 FACT_FOREIGN_CORES } },
    { "gil_contention", "GIL-BOUND", RULES_HOST, .judge = judge_gil,
      .needs = { FACT_GIL_WAIT_SHARE },
      .shows = { FACT_CPU_CORES, FACT_CORES, FACT_THREADS, FACT_STEP_MS } },
    { "gc_pauses", "GARBAGE COLLECTION", RULES_HOST, .judge = judge_gc,
      .needs = { FACT_GC_SHARE },
      .shows = { FACT_STEP_MS, FACT_ALLOCS_PER_STEP, FACT_RSS_MB } },
    { "slow_blas", "SLOW BLAS", RULES_HOST, .judge = judge_blas,
      .needs = { FACT_REFERENCE_BLAS_SHARE },
      .shows = { FACT_CPU_CORES, FACT_STEP_MS, FACT_CORES } },
    { "numa_pcie", "FAR MEMORY", RULES_HOST, .judge = judge_numa,
      .needs = { FACT_NUMA_REMOTE },
      .shows = { FACT_PCIE_SHARE, FACT_CORES, FACT_GPUS } },
    { 0 },
};
