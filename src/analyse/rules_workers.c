/* rules_workers.c: rules about a loader's workers: how many, when they start, where their
 * batches lie. */
#include "analyse/input_words.h"
#include "analyse/rules.h"

/* From the first step to the last; of a program without steps all of its run. */
static double loop_s(const struct rule_case *c)
{
    return FACT_OF(c, LOOP_S) > 0 ? FACT_OF(c, LOOP_S) : FACT_OF(c, RUN_S);
}

/* ---- too_many_workers ------------------------------------------------------------------------ */

/* What the first step waits for the start of those that go, most of the start being over
 * by then; what steps take less comes on top. At best the whole start is saved. */
static void gain_of_fewer(const struct rule_case *c, struct draft *d, double loss,
                          double start)
{
    const double first = FACT_OF(c, FIRST_WAIT_S) / loop_s(c) *
                         (1 - FACT_OF(c, WORKERS_BEST) / FACT_OF(c, WORKERS));
    const double waited = isnan(first) ? 0 : fmin(first, 1);
    const double step = fmax(fmax(-loss, FACT_OF(c, WORKERS_GAIN)), 0);
    const double saved = 1 - (1 - waited) * (1 - step);
    /* Half as much again, but no more than half of what is left. */
    const double much = fmin(1.5 * saved, 1 - 0.5 * (1 - saved));
    d->gain = (struct gain){ 0.5 * saved, saved,
                             fmin(fmax(fmax(much, saved + 0.1), start), 0.95) };
}

/* What a step would lose with half of them, or with as few as are best: where taking
 * batches from other processes is the work, half of these are no better than all. */
static double loss_with_fewer(const struct rule_case *c)
{
    const double half = FACT_OF(c, FEWER_WORKERS_LOSS);
    const double gain = FACT_OF(c, WORKERS_GAIN);
    const bool fewer = FACT_OF(c, WORKERS_BEST) < FACT_OF(c, WORKERS);
    return fewer && -gain < half ? -gain : half;
}

/* Share of a step. As many of them as cores is what people are told to take: there only
 * what is sure counts. */
static double lost_to_workers(const struct rule_case *c)
{
    const bool many = !(FACT_OF(c, WORKERS) <= FACT_OF(c, CORES));
    return fmax(-FACT_OF(c, FEWER_WORKERS_LOSS),
                many ? FACT_OF(c, WORKERS_GAIN) : FACT_OF(c, WORKERS_GAIN_LOW));
}

static bool judge_too_many(const struct rule_case *c, struct draft *d)
{
    const double workers = FACT_OF(c, WORKERS);
    const double loss = loss_with_fewer(c);
    /* Starting them again in every epoch is not a matter of how many they are. */
    const double again = FACT_OF(c, EPOCH_SHARE);
    const double start = FACT_OF(c, WORKER_START_S) /
                             (FACT_OF(c, WORKER_START_S) + loop_s(c)) -
                         (isnan(again) ? 0 : again);
    const double memory = FACT_OF(c, WORKER_PRIVATE_MB) / FACT_OF(c, MEMORY_LIMIT_MB);
    const double best = FACT_OF(c, WORKERS_BEST);
    if (!(workers >= 2) || !(loss <= c->t->worker_excess) || !(best < workers))
        return false;
    /* Idle workers cost nothing worth a word; starting, feeding or housing them may. */
    const double steps = lost_to_workers(c);
    const double besides = fmax(isnan(start) ? 0 : start, memory >= 0.1 ? memory : 0);
    const double at_stake = fmax(steps, besides);
    if (!(at_stake >= c->t->epoch_stall))
        return false;
    d->stake = fmin(fmax(rule_of_run(c, steps), besides), 1);
    gain_of_fewer(c, d, loss, start);
    buf_printf(&d->text, "%.0f workers; %.0f would be %s", workers, best,
               FACT_OF(c, WORKERS_GAIN) >= c->t->workers_help ? "faster" : "as fast");
    if (FACT_OF(c, SEND_MS) > FACT_OF(c, BATCH_MS))
        buf_printf(&d->text,
                   "; a batch takes a worker %.3g ms to make and %.3g ms to send",
                   FACT_OF(c, BATCH_MS), FACT_OF(c, SEND_MS));
    if (start > 0.02)
        buf_printf(&d->text, ", and starting them took %.0f %% of the loop",
                   100 * start);
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, LOADER);
    buf_printf(&d->advice, "num_workers=%.0f → %.0f", workers, best);
    put_place(&d->advice, " at ", PLACE_OF(c, LOADER));
    put_without_workers(c, d);
    return true;
}

/* ---- epoch_boundary_stall ----------------------------------------------------------------- */

/* What the first batch of an epoch takes from workers that are there already: all of them
 * begin at once, and each sends its batch from a second thread while it makes what is
 * ahead of it, so that the first comes when that is made. 2.2 ms are the indices on their
 * way, waking up and taking it; NaN unknown. */
static double first_batch_ms(const struct rule_case *c)
{
    const double cpu = FACT_OF(c, BATCH_CPU_MS);
    const double make = isnan(cpu) ? FACT_OF(c, BATCH_MS) : cpu;
    const double ahead = FACT_OF(c, PREFETCH) >= 1 ? FACT_OF(c, PREFETCH) : 2;
    const double turns = FACT_OF(c, WORKERS) / FACT_OF(c, CORES);
    return make * ahead * (turns > 1 ? turns : 1) + 2.2;
}

/* All that passes there goes, but for that batch. */
static void gain_of_kept_workers(const struct rule_case *c, struct draft *d,
                                 double share)
{
    const double batch = first_batch_ms(c) * (FACT_OF(c, EPOCHS) - 1) / 1e3 / loop_s(c);
    const double mid = fmax(share - (batch > 0 ? batch : 0), 0.85 * share);
    d->gain = (struct gain){ 0.7 * share, mid, fmin(1.1 * share, 0.98) };
}

/* A loader prepares nothing across the end of an epoch, however long its workers live. */
static void advise_epoch(const struct rule_case *c, struct draft *d)
{
    const double workers = FACT_OF(c, WORKERS);
    if (!(workers > 0)) {
        buf_puts(&d->advice, "Keep what is prepared at the start of an epoch");
    } else if (FACT_OF(c, PERSISTENT) == 0) {
        buf_puts(&d->advice, "persistent_workers=True");
    } else {
        buf_puts(&d->advice,
                 "Nothing is loaded ahead across the end of an epoch: let a pass of "
                 "the loader be longer (a sampler that goes over the data several "
                 "times, an epoch counted by steps)");
        if (workers > FACT_OF(c, CORES))
            buf_printf(&d->advice, ", and let fewer workers begin at once than %.0f",
                       workers);
    }
}

static bool judge_epoch(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, EPOCH_SHARE);
    if (!(share >= c->t->epoch_stall) || !(FACT_OF(c, EPOCHS) >= 2))
        return false;
    d->stake = share;
    gain_of_kept_workers(c, d, share);
    buf_printf(&d->text, "%.0f %% of %s passes at the change of epochs", 100 * share,
               rule_loop_words(c));
    if (FACT_OF(c, PERSISTENT) == 0 && FACT_OF(c, WORKERS) > 0)
        buf_puts(&d->text, ": workers are started anew each time");
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, LOADER);
    advise_epoch(c, d);
    put_place(&d->advice, " at ", PLACE_OF(c, LOADER));
    return true;
}

/* ---- shm_pressure ------------------------------------------------------------ */

static bool judge_shm(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, SHM_SHARE);
    if (!(share >= c->t->shm))
        return false;
    d->stake = rule_nearness(share, c->t->shm, 1) + 0.1;
    buf_printf(&d->text, "/dev/shm was %.0f %% full; when it is full, workers die.",
               100 * share);
    d->place = PLACE_OF(c, LOADER);
    buf_puts(&d->advice, "Give the container more (--shm-size), or lower "
                         "num_workers × prefetch_factor × batch size");
    put_place(&d->advice, " at ", PLACE_OF(c, LOADER));
    return true;
}

/* ---- The rows ----------------------------------------------------------------------------------- */

const struct rule rules_workers[] = {
    { "too_many_workers", "TOO MANY WORKERS", RULES_INPUT, .judge = judge_too_many,
      .needs = { FACT_WORKERS, FACT_FEWER_WORKERS_LOSS, FACT_WORKERS_BEST },
      .shows = { FACT_CORES, FACT_WORKER_START_S, FACT_WORKER_PRIVATE_MB, FACT_BATCH_MB,
                 FACT_STEP_MS } },
    { "epoch_boundary_stall", "STALLS BETWEEN EPOCHS", RULES_INPUT,
      .gain_of = GAIN_OF_LOOP, .judge = judge_epoch,
      .needs = { FACT_EPOCH_SHARE, FACT_EPOCHS },
      .shows = { FACT_WORKERS, FACT_PERSISTENT, FACT_WORKER_START_S },
      .yields_to = { "too_many_workers" } },
    { "shm_pressure", "SHARED MEMORY NEARLY FULL", RULES_INPUT, .judge = judge_shm,
      .needs = { FACT_SHM_SHARE },
      .shows = { FACT_SHM_MB, FACT_WORKERS, FACT_PREFETCH, FACT_BATCH_MB } },
    { 0 },
};
