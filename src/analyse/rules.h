/* rules.h: one rule, and the words it is written in. Private to analyse/.
 *
 * A rule is a row of the table in rules.c and a function that looks at facts and either
 * stays silent or says what is at stake. It never reads anything else: whoever writes a
 * test can state the facts. To add one, copy rule_skeleton.c, put the row into the list of
 * rules.c, and its limits into threshold_list.h.
 *
 * `needs`: without all of these the rule is not asked and counts as unchecked. `shows`:
 * further facts that become evidence when they are known. `yields_to`: rules that
 * explain this one: where they fire with something comparable at stake, this one stands
 * behind them and names them in `because`.
 */
#ifndef SONDE_ANALYSE_RULES_H
#define SONDE_ANALYSE_RULES_H

#include <math.h>
#include <stdbool.h>

#include "analyse/facts.h"
#include "analyse/findings.h"
#include "analyse/thresholds.h"
#include "base/buf.h"

enum rule_family {
    RULES_INPUT,
    RULES_HOST,
    RULES_MEMORY,
    RULES_STEP,
    RULES_GPU,
    RULES_RANKS
};
enum { RULE_FACTS = 11, RULE_YIELDS = 14 };

/* What a rule has to say; the engine turns it into a finding. */
struct draft {
    double stake; /* share of run time lost, or nearness to a limit, 0 … 1 */
    struct gain gain;
    struct buf text, advice, because;
    const char *place;
    bool alone_is_low; /* a symptom that says little without a cause */
    bool needs_cause;  /* … or nothing */
    bool always_low;   /* worth a word, never more: not the program's doing */
    bool of_others;    /* other programs do it: no finding about this one explains it */
};

struct rule_case {
    const struct facts *f;
    const struct thresholds *t;
};

struct rule {
    const char *id, *title;
    enum rule_family family;
    bool symptom;
    enum gain_of gain_of; /* whose time its gain is a part of; mostly a step's */
    enum fact needs[RULE_FACTS], shows[RULE_FACTS];
    const char *yields_to[RULE_YIELDS];
    /* False: silent. */
    bool (*judge)(const struct rule_case *c, struct draft *d);
};

/* The families, each ended by a row without id. */
extern const struct rule rules_input[], rules_files[], rules_workers[], rules_host[],
    rules_memory[], rules_step[], rules_gpu[], rules_ranks[];

/* All of them, in one order: index 0 … rule_total() − 1. */
size_t rule_total(void);
const struct rule *rule_at(size_t index);

/* ---- Words for rules ---------------------------------------------------------------- */

#define FACT_OF(c, name)  ((c)->f->v[FACT_##name])
#define PLACE_OF(c, name) ((c)->f->place[PLACE_##name])

/* Share of the run that steady steps are; 1 when nobody knows. */
double rule_steady(const struct rule_case *c);
/* Share of the time in which the main thread waits for what has nothing to do with what
 * it was about to do: the GIL, the CPU quota. Every phase is that much longer. */
double rule_stretched(const struct rule_case *c);
/* What shares of the loop are of, in words: a program without steps has no loop. */
const char *rule_loop_words(const struct rule_case *c);
/* Of a part of step time: what the whole run loses by it, such waits apart. */
double rule_of_run(const struct rule_case *c, double step_share);
/* Work that a team of as many threads as cores does in pieces, in the time it takes. The
 * team meets after every piece: of the CPU time of three that fit their cores
 * (tremor_watch, ultrasound_grader, actor_rollouts, cured) a fifth and more was waiting
 * for the last one. */
double rule_in_pieces(const struct rule_case *c, double work);
/* How near a limit is: 0.1 at `from`, 0.5 when it is reached. */
double rule_nearness(double value, double from, double limit);
/* How bad it is that a batch will not fit (fits.h), and a sentence about it into the
 * draft; 0: nothing. */
struct rule_fit {
    double fits, possible, likely; /* facts of the host, or of the card */
};
double rule_batch_too_large(const struct rule_case *c, struct rule_fit fit,
                            const char *where, struct draft *d);
/* " at train.py:41", or nothing. */
void put_place(struct buf *b, const char *before, const char *place);
/* Sets stake and gain: `share` of a step is lost, of which `low` … `high` can be had. */
void draft_time(const struct rule_case *c, struct draft *d, double share, double low,
                double mid, double high);

#endif
