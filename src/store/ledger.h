/* ledger.h: what was predicted, and what came of it.
 *
 * DIR/ledger.jsonl, one line per prediction that was tried: by the next run of the same
 * program that followed the advice (analyse/trials.h), by `compare`, by `tune`. Lines are appended, each
 * by one write, and never changed; a line that cannot be read is skipped.
 *
 *     {"time_ns":…,"kind":"data_loading_bound","program":"train.py","before":"7f3a",
 *      "after":"81bc","predicted":{"low":0.4,"mid":0.6,"high":0.7},"measured":0.55}
 *
 * Gains are fractions saved of the time that was predicted: of a step, of the loop or of
 * the run, as the kind's advice has it. The error of a prediction is that of the time it
 * foretold: (1 − mid) / (1 − measured) − 1.
 */
#ifndef SONDE_STORE_LEDGER_H
#define SONDE_STORE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEDGER_TEXT = 128 };

struct ledger_entry {
    int64_t time_ns;        /* since the epoch */
    char kind[LEDGER_TEXT]; /* id of the finding, or of whoever predicted */
    char program[LEDGER_TEXT];
    char before[LEDGER_TEXT], after[LEDGER_TEXT]; /* ids of runs */
    double low, mid, high;
    double measured;
};

struct ledger_record {
    size_t tries, in_range;
    double median_error; /* |error|; NaN without tries */
};

/* Creates the file (0600). SONDE_E_USAGE for numbers that are no gains. */
int ledger_append(const char *sonde_dir, const struct ledger_entry *entry);

/* What is known of a kind (NULL: of all). Only the newest megabyte counts. A missing
 * file is an empty record. */
int ledger_read(const char *sonde_dir, const char *kind,
                struct ledger_record *ret_record);

/* Whether the comparison of these two runs was entered already. */
bool ledger_has(const char *sonde_dir, const char *before, const char *after);

/* One line; false: it is none. */
bool ledger_parse(const char *line, size_t len, struct ledger_entry *ret_entry);

double ledger_error(const struct ledger_entry *entry);

#endif
