/* check.h: one `sonde check`, from its options to what was measured. Private to the files
 * of that verb: cmd_check.c (options, what is told), check_baseline.c (what is compared
 * with), check_measure.c (runs, and what they say).
 */
#ifndef SONDE_CLI_CHECK_H
#define SONDE_CLI_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/gatepairs.h"
#include "base/arena.h"
#include "base/buf.h"
#include "cli/gatesamples.h"
#include "cli/gitref.h"
#include "cli/measured.h"
#include "cli/options.h"
#include "store/baselinefile.h"

/* Of a baseline's file, and of given samples. */
enum { CHECK_FILE_MOST = 4 << 20 };

struct check_options {
    const char *baseline, *threshold, *build, *output, *samples;
    struct option_list metrics;
    uint64_t budget_ns, runs, warmup;
    int inconclusive, format;
    bool json, show_output, quiet;
};

/* How the baseline is measured: beside, again, or it was. */
enum check_way { CHECK_GIT, CHECK_RERUN, CHECK_STORED };

struct check {
    const struct check_options *options;
    struct measuring measuring;
    char **argv; /* of the change */
    char *const *base_argv;
    const char *base_dir; /* NULL: here */
    enum check_way way;
    struct gitref git;
    struct arena arena;
    struct baseline_doc doc;
    struct buf title, weaker, line;
    bool other_machine, other_settings;
    double base[GATE_METRICS][GATE_SAMPLES_MOST], now[GATE_METRICS][GATE_SAMPLES_MOST];
    struct gate_pairs runs;
    size_t pairs; /* or runs, compared with stored samples */
    struct gate_metric metrics[GATE_METRICS];
    struct gate_result results[GATE_METRICS];
    uint64_t started_ns, deadline_ns;
    bool late; /* the budget ended in the middle of a run */
};

/* Finds --baseline: fills in way, base_argv, base_dir, git or doc, title and weaker. What
 * failed was told; git.ended_by says when it was a signal. */
bool check_open_baseline(struct check *check);

/* Runs that are not counted. */
enum measured_end check_warm_up(struct check *check);
/* Measures until it is decided or the budget is spent, and judges. */
enum measured_end check_measure(struct check *check);
/* Takes the progress line off the terminal. */
void check_clear_progress(const struct check *check);
/* A metric that no run of either side has told, after two of each: it is not that it
 * varies, it is not recorded. −1: none. */
int check_never_told(const struct check *check);

#endif
