/* triallog.h: cures of a run that were measured before anybody wrote them.
 *
 * RUN/trials.jsonl, one line per trial of `sonde report RUN --measure` (tune/trial.h).
 * Lines are appended, each by one write, and never changed; of several of the same
 * question the last counts. Read as hostile input: a line that is not of this form, or
 * whose numbers are no times, is skipped.
 *
 *     {"time_ns":…,"asked":"gc=40","finding":"","step_ns":…,"low_ns":…,"high_ns":…,
 *      "loop_ns":null,"loop_low_ns":null,"loop_high_ns":null,"steps":60,"median_of":3,
 *      "note":""}
 */
#ifndef SONDE_STORE_TRIALLOG_H
#define SONDE_STORE_TRIALLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRIAL_TEXT = 128, TRIAL_NOTE = 512, TRIALS_MAX = 64 };

struct trial_entry {
    int64_t time_ns;
    char asked[TRIAL_TEXT];   /* "gc=40": the settings, or what the finding's cure is */
    char finding[TRIAL_TEXT]; /* whose own cure it was; "" it was asked for */
    double step_ns, low_ns, high_ns;
    double loop_ns, loop_low_ns, loop_high_ns; /* NaN: not measured by the loop */
    uint64_t steps;                            /* of one */
    uint64_t median_of;    /* so many trials; a line that does not say was one */
    char note[TRIAL_NOTE]; /* what a reader should know; "" nothing */
};

/* Creates the file (0600). SONDE_E_USAGE for numbers that are no times. */
int triallog_append(const char *run_dir, const struct trial_entry *entry);

/* The newest of each question, at most TRIALS_MAX, in the order they were first asked. A
 * missing file has none. */
int triallog_read(const char *run_dir, struct trial_entry *ret_entries,
                  size_t *ret_count);

/* One line; false: it is none. */
bool triallog_parse(const char *line, size_t len, struct trial_entry *ret_entry);

#endif
