/* habits.c: see habits.h. */
#include "analyse/habits.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "analyse/facts.h"
#include "analyse/report.h"
#include "analyse/threads.h"

/* ---- What is paid by the step, and by the sample ---------------------------------------- */

/* Layers over positions move many numbers a sample: they are gathered, copied and written
 * to fresh pages too, by code whose names do not tell. With it the arithmetic's part was
 * 1.3 (heat_pumps) and 2 times (grid_demand) what it was alone. */
static const double WITH_COPIES = 1.6;

static double arithmetic_of(const struct facts *f)
{
    const double own = f->v[FACT_ARITHMETIC_SHARE], kernels = f->v[FACT_KERNEL_SHARE];
    const double copies = f->v[FACT_POSITIONS] > 0 ? WITH_COPIES : 1;
    return !isnan(own)       ? fmin(copies * own, 1)
           : !isnan(kernels) ? kernels
                             : 1 - f->v[FACT_OVERHEAD_SHARE];
}

static double or_none(double share)
{
    return share > 0 ? fmin(share, 1) : 0;
}

/* Samples of native code do not tell whose it is; a program's own Python functions are the
 * interpreter's and the framework's work above all, and so are taken off both. */
double habits_step_overhead(const struct facts *f)
{
    const double all = f->v[FACT_OVERHEAD_SHARE];
    const double own = or_none(f->v[FACT_OWN_CPU_SHARE]);
    return isnan(all) || own > 0.95 ? NAN : fmax(all - own, 0) / (1 - own);
}

/* All but arithmetic and samples is paid by the step. Arithmetic on few rows waits for the
 * weights to be read, which a larger batch does once for all of them: a quarter of it is
 * left at one row, all of it at 16. Layers over positions (convolutions) have many rows of
 * a single sample. Of a sample that is fetched alone half is the
 * way to the data set, with caches that the step in between has filled with other things. */
struct fixed_share habits_fixed_share(const struct facts *f)
{
    const double batch = f->v[FACT_BATCH_SIZE];
    const double own = or_none(f->v[FACT_OWN_SHARE]);
    const double overhead = habits_step_overhead(f) * (1 - own);
    const double samples = f->v[FACT_SAMPLE_MS] * batch / f->v[FACT_STEP_MS];
    const double few = fmax(1 - batch / 16, 0);
    const double few_rows = f->v[FACT_POSITIONS] > 0 ? 0 : few;
    const double by_sample = arithmetic_of(f) * (1 - 0.75 * few_rows) +
                             (isnan(samples) ? 0 : samples) * (1 - 0.5 * few);
    if (isnan(overhead) || isnan(batch))
        return (struct fixed_share){ NAN, NAN, NAN };
    /* What else the program does in a step is not known to be paid by either. */
    const double fixed = fmax(1 - by_sample - own, overhead);
    /* Code without telling names is most of what is called fixed: some of it computes. */
    const double most = isnan(f->v[FACT_ARITHMETIC_SHARE]) ? 1 : 3 * by_sample + 0.15;
    const double least = fmax(0.7 * fmax(overhead, 0.8 * fixed), 1 - own - most);
    return (struct fixed_share){ fmin(least, fixed), fixed,
                                 fmin(1 - 0.5 * (1 - fixed), 0.99) };
}

/* What the function that logs computes for it goes too. Where all of it is outside of
 * phases, those say more exactly than samples of stacks how much it is. */
double habits_log_share(const struct facts *f)
{
    const double share = fmax(f->v[FACT_LOG_SHARE], f->v[FACT_SYNC_IO_SHARE]);
    const double other = f->v[FACT_OTHER_SHARE];
    const double all = fmax(share, f->v[FACT_LOG_WHOLE_SHARE]);
    return other >= 0.8 * share ? fmin(all, fmax(other, share)) : all;
}

/* Calls that talk to other ranks, and what backward does not hide of an exchange inside. */
double habits_exchange_share(const struct facts *f)
{
    const double called = f->v[FACT_COMMUNICATION_SHARE];
    const double inside = f->v[FACT_EXCHANGE_SHARE];
    return isnan(called) ? inside : isnan(inside) ? called : fmin(called + inside, 1);
}

/* What is left is all but the collector, and goes somewhat faster: walking over all objects
 * empties the caches, and filling them again (some MB at some GB/s) is part of what comes
 * behind it. Where it was called between the phases, those are left, and with them what
 * calls them. Of the program's own work that was seen there most is cold code around the
 * phases, unless it is more than they are: a loop that makes its own batches.
 *
 * A collector that comes by itself stops some of the steps. Where the step in the middle
 * is as much shorter than the mean as the collector took, it had no pause, and all become
 * like it. */
double habits_without_collector(const struct facts *f)
{
    const double share = f->v[FACT_GC_SHARE];
    const double middle = f->v[FACT_STEP_MS] / f->v[FACT_STEP_MEAN_MS];
    if (fabs(1 - middle - share) <= 0.25 * share)
        return middle;
    const double known = f->v[FACT_GC_LIKELY_SHARE];
    const double likely = fmax(share, known > 0.99 ? 0.99 : known);
    const double phases = 1 - f->v[FACT_OTHER_SHARE];
    const double refill = 0.7 / f->v[FACT_STEP_MS];
    const double beside = f->v[FACT_GC_BESIDE_SHARE];
    const double around = beside >= phases ? beside : 0.1 * phases;
    if (phases > 0 && phases < 1 - 0.8 * share && refill > 0)
        return fmax(phases - refill, 0.5 * phases) + around;
    return 0.85 * (1 - likely);
}

/* ---- As it was ----------------------------------------------------------------------------- */

void habits_of(const struct report *r, const struct facts *f, struct habits *ret_habits)
{
    const struct step_account *a = &r->account;
    const struct fixed_share fixed = habits_fixed_share(f);
    const double loop = account_loop_ns(a);
    struct habits h = {
        .loop_ns = loop,
        .step_ns = a->known ? a->mean_ns : NAN,
        .steps = (double)a->steps,
        .extras = { (double)a->checkpoints, (double)a->evaluations },
        .extra_ns = { a->checkpoint_ns, a->evaluation_ns },
        .log_ns = habits_log_share(f) * loop,
        .gc_ns = (1 - habits_without_collector(f)) * loop,
        .optimizer_ns = f->v[FACT_OPTIMIZER_SHARE] * a->mean_ns * (double)a->steps,
        .exchange_ns = habits_exchange_share(f) * a->mean_ns * (double)a->steps,
        .fixed = fixed.mid,
        .fixed_low = fixed.low,
        .fixed_high = fixed.high,
        .workers = f->v[FACT_WORKERS],
        .foreign_share = f->v[FACT_FOREIGN_CORES] / f->v[FACT_CORES],
        .facts = f,
    };
    for (int i = 0; i < EXTRAS; i++)
        h.beside_ns[i] = account_beside_ns(a, (enum account_extra)i);
    if (isnan(h.beside_ns[EXTRA_CHECKPOINT]))
        h.beside_ns[EXTRA_CHECKPOINT] = f->v[FACT_CHECKPOINT_BESIDE] * loop;
    *ret_habits = h;
}

/* ---- As it would be ------------------------------------------------------------------------ */

/* Of something that is now done as often as it is: the part that goes. */
static double part_gone(double times)
{
    return times > 1 ? 1 - 1 / times : 0;
}

/* What is paid by the step is paid seldom, and all of it goes slower with the caches full of
 * samples: nine looks at four programs with larger batches took 9 % more in the middle than
 * the shares of their steps promised. */
static const double FULL_CACHES = 0.08;

double habits_left_of_samples(double fixed, double times)
{
    const double gone = part_gone(times);
    return (1 - fixed * gone) * (1 + FULL_CACHES * gone);
}

bool habits_asked(const struct settings *s)
{
    return s->threads > 0 || s->evaluation > 0 || s->checkpoint > 0 || s->logging > 0 ||
           s->gc > 0 || s->optimizer > 0 || s->batch > 0 || s->exchange > 0;
}

/* Behind a long optimizer's step the next one begins with cold caches (whatif_cold_ns):
 * behind a shorter one it is that much faster. */
static double faster_optimizer(const struct habits *h, double times)
{
    const double now = h->optimizer_ns / h->steps;
    const double gone = now * part_gone(times), rest = h->step_ns - now;
    if (!(gone > 0) || !(rest > 0))
        return 0;
    return gone + whatif_cold_ns(rest, now) - whatif_cold_ns(rest, now - gone);
}

/* The step behind a long report begins with cold caches too: only every so manieth does
 * then. */
static double fewer_logs(const struct habits *h, double times)
{
    const double now = h->log_ns / h->steps, rest = h->step_ns - now;
    if (!(now > 0) || !(rest > 0))
        return now * part_gone(times);
    return (now + whatif_cold_ns(rest, now)) * part_gone(times);
}

/* A rank that waited for others begins to compute with cold caches. */
static double fewer_exchanges(const struct habits *h, double times)
{
    const double now = h->exchange_ns / h->steps, rest = h->step_ns - now;
    if (!(now > 0) || !(rest > 0))
        return 0;
    return (now + whatif_cold_ns(rest, now)) * part_gone(times);
}

/* Of a step: what goes with things that are known from sampled stacks. */
static double sampled_less(const struct habits *h, const struct settings *s)
{
    const double logs = fewer_logs(h, s->logging);
    const double collects = h->gc_ns / h->steps * part_gone(s->gc);
    return (logs > 0 ? logs : 0) + (collects > 0 ? collects : 0);
}

double habits_less_ns(const struct habits *h, const struct settings *s)
{
    return sampled_less(h, s) + faster_optimizer(h, s->optimizer) +
           fewer_exchanges(h, s->exchange);
}

static int refuse(char error[WHATIF_ERROR_LEN], const char *why)
{
    (void)snprintf(error, WHATIF_ERROR_LEN, "%s", why);
    return -EINVAL;
}

static double threads_part(const struct habits *h, const struct settings *s)
{
    return s->threads > 0 && h->facts ? threads_left(h->facts, s->threads) : 1;
}

static int check_threads(const struct habits *h, const struct settings *s,
                         char error[WHATIF_ERROR_LEN])
{
    if (s->threads > 0 && isnan(h->facts ? threads_left(h->facts, s->threads) : NAN))
        return refuse(error, "what of its CPU time is work and what is waiting for "
                             "other threads is not known: it takes native stacks");
    /* Processes with one thread each are as many as they are. */
    if (s->threads > 0 && s->threads > threads_that_fit(h->facts))
        return refuse(error,
                      "more threads than cores, all processes together: what they "
                      "would take from one another was not measured");
    if (s->threads > 0 && s->loader)
        return refuse(error, "threads= goes with no setting of the loader: how workers "
                             "and threads share the cores then was not measured");
    return 0;
}

/* 0, or what the run cannot tell. */
static int check(const struct habits *h, const struct settings *s,
                 char error[WHATIF_ERROR_LEN])
{
    if (isnan(h->loop_ns) || isnan(h->step_ns) || !(h->steps > 0))
        return refuse(error, "no steps were recorded");
    if (s->evaluation > 0 && !(h->extras[EXTRA_EVALUATION] > 0))
        return refuse(error, "no evaluation was recorded between its steps");
    if (s->checkpoint > 0 && !(h->extras[EXTRA_CHECKPOINT] > 0))
        return refuse(error, "no checkpoint was recorded between its steps");
    if (s->logging > 0 && !(h->log_ns > 0))
        return refuse(error, "no time in logging was recorded");
    if (s->gc > 0 && !(h->gc_ns > 0))
        return refuse(error,
                      h->facts && fact_known(h->facts, FACT_GC_LIKELY_SHARE)
                          ? "the garbage collector took no time in its steps that "
                            "imports, the start and the end do not explain (the "
                            "report's share is of the whole run)"
                          : "no time in Python's garbage collector was recorded");
    if (s->optimizer > 0 && !(h->optimizer_ns > 0))
        return refuse(error, "no steps of an optimizer were recorded");
    if (s->exchange > 0 && !(h->exchange_ns > 0))
        return refuse(error, "no exchange with other ranks was recorded");
    if (s->batch > 0 && s->loader)
        return refuse(error, "batch= goes with no setting of the loader: how long a "
                             "larger batch takes to make was not measured");
    if (s->batch > 0 && h->workers > 0)
        return refuse(error, "what of a step is paid by the sample is not known: "
                             "workers make its batches beside it");
    if (s->batch > 0 && isnan(h->fixed))
        return refuse(error, "what of a step is paid by the sample is not known: it "
                             "takes native stacks and the batch's size");
    return check_threads(h, s, error);
}

/* What an extra does to the steps around it: seen by comparing them with others. Where every
 * step has one, each begins as cold as behind any other work of that length. */
static double beside_extra(const struct habits *h, int extra)
{
    const double seen = h->beside_ns[extra], count = h->extras[extra];
    if (!isnan(seen))
        return fmax(seen, 0);
    return count >= 0.5 * h->steps
               ? fmin(count, h->steps) *
                     whatif_cold_ns(h->step_ns, h->extra_ns[extra] / count)
               : 0;
}

/* Steady steps alone: the mean one, and what it does to the loop. */
struct parts {
    double step_ns; /* one, after it */
    double gone_ns; /* of the loop, all steps together */
};

static struct parts steps_after(const struct habits *h, const struct settings *s,
                                const struct forecast *loader, double loader_now_ns)
{
    const double times[EXTRAS] = {
        [EXTRA_CHECKPOINT] = s->checkpoint, [EXTRA_EVALUATION] = s->evaluation
    };
    const double now = loader ? loader_now_ns : h->step_ns;
    double step = loader ? loader->step_ns : h->step_ns - habits_less_ns(h, s);
    for (int i = 0; i < EXTRAS; i++)
        step -= beside_extra(h, i) / h->steps * part_gone(times[i]);
    step = fmax(step * threads_part(h, s), 0);
    return (struct parts){ step, h->steps * (now - step) };
}

static double larger_batch(double steps_ns, double fixed, double times)
{
    return steps_ns * habits_left_of_samples(fixed, times);
}

static double larger_step(double step_ns, double fixed, double times)
{
    return times > 1 ? times * larger_batch(step_ns, fixed, times) : step_ns;
}

/* Run to run it moves by some percent, with other programs on the machine by more: they may
 * be gone by then, and all that waited for a core goes faster; and of what goes a little may
 * be felt elsewhere. */
static void widen(const struct habits *h, struct habits_forecast *f)
{
    const double others = h->foreign_share > 0 ? fmin(h->foreign_share, 1) : 0;
    const double by = 0.15 + 0.15 * others, less = 0.15 + 0.4 * others;
    const double gone = fmax(h->loop_ns - f->loop_ns, 0);
    const double loop = forecast_unsure(gone / h->loop_ns);
    const double step = forecast_unsure(1 - f->step_ns / h->step_ns);
    f->loop_low_ns = fmin(fmin(f->loop_low_ns, f->loop_ns) * (1 - less),
                          f->loop_ns / loop);
    f->loop_high_ns = fmax(fmax(f->loop_high_ns, f->loop_ns) * (1 + by) + 0.05 * gone,
                           f->loop_ns * loop);
    f->step_low_ns = fmin(fmin(f->step_low_ns, f->step_ns) * (1 - less),
                          f->step_ns / step);
    f->step_high_ns = fmax(fmax(f->step_high_ns, f->step_ns) * (1 + by),
                           f->step_ns * step);
}

/* Logging and collecting are known from sampled stacks, and both empty caches that the
 * steps fill again: it may be a seventh more, or less, but not many times what is left. An
 * optimizer's time is known, what it does to the rest of the step is not: one that fills
 * memory with temporaries made forward and backward take a third longer. */
static void widen_sampled(const struct habits *h, const struct settings *s,
                          struct habits_forecast *f)
{
    const double by = fmin(0.15 * sampled_less(h, s), 0.5 * f->step_ns) +
                      fmin(0.15 * faster_optimizer(h, s->optimizer), 0.25 * f->step_ns);
    f->step_low_ns = fmax(f->step_low_ns - by, 0.4 * f->step_low_ns);
    f->step_high_ns = fmin(f->step_high_ns + by, fmax(f->step_high_ns, h->step_ns));
    f->loop_low_ns = fmax(f->loop_low_ns - by * h->steps, 0.4 * f->loop_low_ns);
    f->loop_high_ns = fmin(f->loop_high_ns + by * h->steps,
                           fmax(f->loop_high_ns, h->loop_ns));
}

/* CPU time of threads that pushed each other off their cores has cold caches in it; how
 * even the pieces are is not known. */
static void widen_threads(const struct settings *s, struct habits_forecast *f)
{
    if (s->threads <= 0)
        return;
    f->step_low_ns *= 0.8;
    f->step_high_ns *= 1.1;
    f->loop_low_ns *= 0.8;
    f->loop_high_ns *= 1.1;
}

/* Sleep stays, however uncertain the rest is. */
static void bound_threads(const struct habits *h, const struct settings *s,
                          struct habits_forecast *f)
{
    if (s->threads <= 0 || s->batch > 0)
        return;
    const double asleep_ns = 0.95 * threads_asleep(h->facts) * h->step_ns;
    f->step_low_ns = fmin(fmax(f->step_low_ns, asleep_ns), f->step_ns);
    f->loop_low_ns = fmin(fmax(f->loop_low_ns, asleep_ns * h->steps), f->loop_ns);
}

int habits_predict(const struct habits *h, const struct settings *s,
                   const struct forecast *loader, double loader_now_ns,
                   struct habits_forecast *ret_forecast,
                   char ret_error[WHATIF_ERROR_LEN])
{
    const int rc = check(h, s, ret_error);
    if (rc < 0)
        return rc;
    const struct parts after = steps_after(h, s, loader, loader_now_ns);
    const double extras_gone = h->extra_ns[EXTRA_CHECKPOINT] *
                                   part_gone(s->checkpoint) +
                               h->extra_ns[EXTRA_EVALUATION] * part_gone(s->evaluation);
    const double steps_ns = fmin(h->steps * after.step_ns, h->loop_ns);
    const double rest = fmax(h->loop_ns - after.gone_ns - extras_gone - steps_ns, 0);
    struct habits_forecast f = {
        .loop_ns = rest + larger_batch(steps_ns, h->fixed, s->batch),
        .loop_low_ns = rest + larger_batch(steps_ns, h->fixed_high, s->batch),
        .loop_high_ns = rest + larger_batch(steps_ns, h->fixed_low, s->batch),
        .step_ns = larger_step(after.step_ns, h->fixed, s->batch),
        .step_low_ns = larger_step(after.step_ns, h->fixed_high, s->batch),
        .step_high_ns = larger_step(after.step_ns, h->fixed_low, s->batch),
    };
    if (loader) {
        f.step_low_ns *= loader->low_ns / loader->step_ns;
        f.step_high_ns *= loader->high_ns / loader->step_ns;
        f.loop_low_ns -= h->steps * (f.step_ns - f.step_low_ns);
        f.loop_high_ns += h->steps * (f.step_high_ns - f.step_ns);
    }
    widen_sampled(h, s, &f);
    widen_threads(s, &f);
    widen(h, &f);
    bound_threads(h, s, &f);
    *ret_forecast = f;
    return 0;
}
