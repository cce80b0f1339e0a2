/* plan.h: what a trial leaves out of the program.
 *
 * From a question (`--what-if gc=40`) or from a finding's own cure to the list of
 * ablations that the Python layer carries out (python/sonde/_trial). A plan is handed over
 * as a small JSON file. What no ablation can stand for (another BLAS, a leak that is mended) has
 * no plan, and the reason is told.
 */
#ifndef SONDE_TUNE_PLAN_H
#define SONDE_TUNE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/facts.h"
#include "analyse/report.h"
#include "base/buf.h"

enum { PLAN_RARE = 4, PLAN_WHY = 256, PLAN_ASKED = 96 };

/* Done so many times more seldom. */
struct plan_rare {
    const char *what;  /* "logging", "checkpoint", "evaluation", "sync" */
    const char *place; /* "weir_gates.py:27 in step"; "" where the layer finds it */
    double times;
};

struct plan {
    char asked[PLAN_ASKED]; /* in words of --what-if as far as there are any */
    const char *finding;    /* whose own cure; "" asked for */
    int workers, prefetch;  /* −1: as they are */
    bool persistent;
    double batch; /* times as large; 0: as it is */
    double rows;  /* of a batch that the loop makes without a loader; 0: the loader's */
    /* Of a sample (a batch's collating): the part of its time that is left, and the least
     * that is; NaN: as it is. */
    double sample_left, sample_least_us;
    double collate_left, collate_least_us, collate_us_per_mb;
    bool even; /* slow samples become like the others */
    bool data_free;
    double optimizer; /* times as fast; 0: as it is */
    bool foreach;     /* torch's own, for all parameters at once, does its work */
    double gc;        /* times more seldom; 0: as it is */
    bool gc_freeze;
    int threads;    /* 0: as they are */
    double keep_mb; /* freed blocks that a process keeps and uses again; 0: none */
    struct plan_rare rare[PLAN_RARE];
    size_t rare_count;
    const char *memo_place; /* a function whose results are kept; "" none */
    double memo_left, memo_least_us;
    const char *apart;  /* where the thread is that becomes a process; "" not known;
                           NULL: none does */
    bool single;        /* doubles become floats */
    bool alike;         /* batches of samples of about one length */
    bool by_loop;       /* measured from the first step to the last */
    const char *loader; /* "train.py:41", where the loader that trains is made; "" */
};

/* −ENOTSUP: ret_why says what cannot be left out. Texts are borrowed from the report. */
int plan_of_settings(struct report *report, const struct report_forecast *asked,
                     struct plan *ret_plan, char ret_why[PLAN_WHY]);
int plan_of_finding(struct report *report, const struct finding *finding,
                    struct plan *ret_plan, char ret_why[PLAN_WHY]);

/* Whether all that is left out are calls of the program's log: what it computes for them
 * stays. */
bool plan_leaves_out_calls(const struct plan *plan);

/* The same from facts that somebody states. `loader`: where it is made, or "". */
struct plan_known {
    const struct facts *facts;
    const struct pipeline *pipeline;
    const char *loader;
};
int plan_asked(const struct plan_known *known, const char *text,
               const struct settings *settings, struct plan *ret_plan,
               char ret_why[PLAN_WHY]);
int plan_cure(const struct plan_known *known, const struct finding *finding,
              struct plan *ret_plan, char ret_why[PLAN_WHY]);

/* What the layer reads. `whole`: all steps are measured, from the first on. */
struct plan_course {
    const char *scratch, *outcome;
    uint64_t steps, warmup;
    uint64_t last;  /* steps that the program has; 0: not known */
    double seconds; /* at most */
    double least_s; /* that are measured, as far as there are steps */
    bool whole;
};
void plan_write(const struct plan *plan, const struct plan_course *course,
                struct buf *out);

#endif
