/* findings.h: what is wrong with a run, in order, with evidence and advice.
 *
 * Made from facts by the rules (rules.h). Sorted by score: causes before the symptoms
 * they explain. A healthy run has none.
 */
#ifndef SONDE_ANALYSE_FINDINGS_H
#define SONDE_ANALYSE_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct facts;
struct thresholds;

enum severity { SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH, SEVERITY_CRITICAL };

enum { EVIDENCE_MAX = 12, BECAUSE_MAX = 4 };

struct finding_evidence {
    const char *metric, *unit, *source;
    double value;
};

/* What a gain is a share of. The loop is the run from its first step to its last. */
enum gain_of { GAIN_OF_STEP, GAIN_OF_LOOP, GAIN_OF_RUN };

/* As a share of that time saved; NaN when time is not what is at stake. */
struct gain {
    double low, mid, high;
};

struct finding {
    const char *id, *title; /* title: "INPUT-BOUND" */
    const char *bound_by;   /* "input", "memory" … of enum rule_family */
    bool symptom;
    enum severity severity;
    double score; /* 0 … 1 */
    double stake; /* share of run time, or nearness to a limit, before causes count */
    const char *description, *recommendation;
    const char *place;                /* "train.py:41", or "" */
    const char *because[BECAUSE_MAX]; /* ids of findings, or what else lies behind it */
    size_t because_count;
    struct finding_evidence evidence[EVIDENCE_MAX];
    size_t evidence_count;
    struct gain gain;
    enum gain_of gain_of;
    /* What the tool's own predictions of this kind were off by (store/ledger.h). */
    size_t tries;
    double past_error; /* median, relative; NaN without tries */
};

/* A rule that could not be asked here. */
struct unchecked {
    const char *id, *missing; /* the first metric it lacks */
};

struct diagnosis {
    bool made;
    struct finding *findings;
    size_t finding_count;
    size_t rules, quiet, off;
    struct unchecked *unchecked;
    size_t unchecked_count;
    bool reference; /* judged by the set `reference` */
};

const char *severity_name(enum severity severity);

/* Texts go into the arena. Fails only for want of memory. */
int findings_make(const struct facts *facts, const struct thresholds *thresholds,
                  struct arena *arena, struct diagnosis *ret_diagnosis);

/* NULL: not found. */
const struct finding *finding_by_id(const struct diagnosis *diagnosis, const char *id);

#endif
