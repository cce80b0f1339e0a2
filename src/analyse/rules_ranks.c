/* rules_ranks.c: rules about several ranks of one job. */
#include <math.h>

#include "analyse/habits.h"
#include "analyse/rules.h"
#include "base/human.h"

static bool judge_straggler(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, STRAGGLER_SHARE);
    if (!(FACT_OF(c, RANKS) >= 2) || !(share >= c->t->straggler) ||
        !(FACT_OF(c, STRAGGLER_STEADY) >= c->t->straggler_same))
        return false;
    draft_time(c, d, share, 0.5, 0.8, 1);
    buf_printf(&d->text, "The others wait %.0f %% of every step for the same rank.",
               100 * share);
    buf_puts(&d->advice,
             "Look at that rank's machine: other programs, clocks, its disk "
             "or network; its part of the data");
    return true;
}

static bool judge_imbalance(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, IMBALANCE_SHARE);
    if (!(FACT_OF(c, RANKS) >= 2) || !(share >= c->t->imbalance))
        return false;
    draft_time(c, d, share, 0.4, 0.7, 1);
    buf_printf(&d->text,
               "Ranks get uneven work: %.0f %% of every step is waiting for "
               "whoever has most, now one, now another.",
               100 * share);
    buf_puts(&d->advice,
             "Batches of equal cost for all ranks: sort or bucket by length, "
             "then deal them out");
    return true;
}

/* Short messages that come one after the other cost their latency each, whatever their
 * size: one of all would take about the time of one. Long ones are long by their bytes. */
static void advise_one_message(const struct rule_case *c, struct draft *d, double share,
                               double calls, double each_ms)
{
    char each[HUMAN_LEN];
    human_duration(each, each_ms * 1e6);
    const double gone = share * (1 - 1 / calls);
    draft_time(c, d, gone, 0.6, 1, 1);
    /* Between two messages each rank begins to compute anew, with cold caches, beside the
     * threads that carry them. */
    d->gain.high = fmin(1 - 0.65 * (1 - gone), 0.99);
    buf_printf(
        &d->text,
        "%.0f %% of every step exchanges data with other ranks, in %.0f calls of "
        "%s one after the other.",
        100 * share, calls, each);
    buf_puts(&d->advice,
             "Exchange everything at once: copy it into one flat tensor and all_reduce "
             "that, or let DistributedDataParallel do it, which also goes on computing "
             "meanwhile; or exchange only every few steps");
}

/* Inside the backward pass, by DistributedDataParallel. A bucket is sent when its last
 * gradient is there: with one or two of them little is left of backward to hide it. */
static void advise_buckets(const struct rule_case *c, struct draft *d, double share)
{
    enum { GOOD_BUCKETS = 4 };
    const double mb = FACT_OF(c, EXCHANGE_MB), buckets = FACT_OF(c, EXCHANGE_BUCKETS);
    draft_time(c, d, share, 0.2, 0.5, 0.9);
    buf_printf(&d->text,
               "%.0f %% of every step waits for the exchange of gradients (%.3g MiB in "
               "%.0f bucket%s); the backward pass hides %.0f %% of it.",
               100 * share, mb, buckets, buckets == 1 ? "" : "s",
               100 * FACT_OF(c, EXCHANGE_HIDDEN));
    if (buckets < GOOD_BUCKETS && mb >= GOOD_BUCKETS)
        buf_printf(&d->advice,
                   "Smaller buckets are sent earlier: DistributedDataParallel(…, "
                   "bucket_cap_mb=%.0f); ",
                   ceil(mb / GOOD_BUCKETS));
    buf_puts(&d->advice,
             d->advice.len ? "send" : "Send"); /* a sentence, or the rest of one */
    buf_puts(&d->advice,
             " half the bytes (register_comm_hook with bf16_compress_hook) or exchange "
             "only every few steps (gradient accumulation under no_sync())");
}

static double or_none(double share)
{
    return share > 0 ? share : 0;
}

static bool judge_communication(const struct rule_case *c, struct draft *d)
{
    const double called = or_none(FACT_OF(c, COMMUNICATION_SHARE));
    const double exchange = or_none(FACT_OF(c, EXCHANGE_SHARE));
    const double share = habits_exchange_share(c->f);
    const double calls = FACT_OF(c, COLLECTIVES);
    const double each_ms = called * FACT_OF(c, STEP_MEAN_MS) / calls;
    if (!(FACT_OF(c, RANKS) >= 2) || !(share >= c->t->communication))
        return false;
    if (exchange >= called) {
        advise_buckets(c, d, share);
        return true;
    }
    if (calls >= c->t->many_collectives && each_ms <= c->t->short_collective_ms) {
        advise_one_message(c, d, share, calls, each_ms);
        return true;
    }
    draft_time(c, d, share, 0.2, 0.5, 0.9);
    buf_printf(&d->text, "%.0f %% of every step exchanges data with other ranks.",
               100 * share);
    buf_puts(&d->advice,
             "Overlap it with the backward pass (DistributedDataParallel does; larger "
             "or smaller buckets: bucket_cap_mb), exchange only every few steps "
             "(gradient accumulation with no_sync()), compress it (bf16 hook)");
    return true;
}

const struct rule rules_ranks[] = {
    { "straggler", "ONE SLOW RANK", RULES_RANKS, .judge = judge_straggler,
      .needs = { FACT_RANKS, FACT_STRAGGLER_SHARE, FACT_STRAGGLER_STEADY },
      .shows = { FACT_STEP_MS, FACT_COMMUNICATION_SHARE } },
    { "rank_imbalance", "UNEVEN RANKS", RULES_RANKS, .judge = judge_imbalance,
      .needs = { FACT_RANKS, FACT_IMBALANCE_SHARE },
      .shows = { FACT_STEP_MS, FACT_COMMUNICATION_SHARE },
      .yields_to = { "straggler" } },
    { "communication_bound", "COMMUNICATION-BOUND", RULES_RANKS,
      .judge = judge_communication, .needs = { FACT_RANKS, FACT_COMMUNICATION_SHARE },
      .shows = { FACT_EXCHANGE_SHARE, FACT_COLLECTIVES, FACT_STEP_MS,
                 FACT_BACKWARD_SHARE },
      .yields_to = { "straggler", "rank_imbalance" } },
    { 0 },
};
