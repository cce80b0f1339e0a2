/* rule_skeleton.c: a rule to copy. It is compiled, so that it stays right, and in no list.
 *
 * 1. A limit in threshold_list.h, a fact in fact_list.h if there is none yet (and who
 *    reads it in facts_*.c).
 * 2. This function and row, in the family's file.
 * 3. A row in tests/unit/analyse/rules_*_test.c: fires at its limit, silent below it, and
 *    silent without its facts (that one is tested for all rules at once).
 * 4. A paragraph in docs/guide-diagnosis.md, a row in workloads/README.md, a program in
 *    workloads/sick.
 */
#include "analyse/rules.h"

static bool judge_skeleton(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, OTHER_SHARE);
    if (!(share >= 0.5)) /* a comparison with NaN is false: written so, it is silent */
        return false;
    draft_time(c, d, share, 0.2, 0.5, 0.9);
    buf_printf(&d->text, "%.0f %% of every step is in no phase.", 100 * share);
    d->place = PLACE_OF(c, HOT);
    buf_puts(&d->advice, "What to change, in the program's own words");
    put_place(&d->advice, " at ", PLACE_OF(c, HOT));
    return true;
}

extern const struct rule rule_skeleton;
const struct rule rule_skeleton = {
    "skeleton",
    "IN NO PHASE",
    RULES_STEP,
    .judge = judge_skeleton,
    .needs = { FACT_OTHER_SHARE },
    .shows = { FACT_STEP_MS },
    .yields_to = { "startup_bound" },
};
