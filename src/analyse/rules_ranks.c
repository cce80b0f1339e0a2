/* rules_ranks.c: rules about several ranks of one job. */
#include "analyse/rules.h"

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

static bool judge_communication(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, COMMUNICATION_SHARE);
    if (!(FACT_OF(c, RANKS) >= 2) || !(share >= c->t->communication))
        return false;
    draft_time(c, d, share, 0.2, 0.5, 0.9);
    buf_printf(&d->text, "%.0f %% of every step exchanges data with other ranks.",
               100 * share);
    buf_puts(&d->advice,
             "Overlap it with the backward pass (larger or smaller buckets: "
             "bucket_cap_mb), gradient accumulation with no_sync(), "
             "compressed gradients (bf16 hook)");
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
      .shows = { FACT_STEP_MS, FACT_BACKWARD_SHARE },
      .yields_to = { "straggler", "rank_imbalance" } },
    { 0 },
};
