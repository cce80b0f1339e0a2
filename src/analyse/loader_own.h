/* loader_own.h: words about one loader that facts and the model of its pipeline share.
 * Private to analyse/. NaN: not known. */
#ifndef SONDE_ANALYSE_LOADER_OWN_H
#define SONDE_ANALYSE_LOADER_OWN_H

#include <stdbool.h>
#include <stdint.h>

#include "analyse/loaders.h"

struct report;

/* The one whose fetches are the steps; else the one that was fetched from most; NULL
 * without loaders. */
const struct loader *loader_of_steps(const struct loader_report *loaders);

double loader_mean_ns(const struct loader_times *times);
/* Mean of its `make` or `make_cpu`, without what workers do once, with their first batch. */
double loader_usual_ns(const struct loader *loader, const struct loader_times *times);
/* Of the time to make samples: what the listed transforms take. */
double loader_transform_share(const struct loader *loader);
double loader_batch_mb(const struct loader *loader);
/* Kept workers make most of an epoch's batches while its first is waited for. */
bool loader_ahead_is_epoch(const struct loader *loader);
/* Its workers make batches for more than half of their lives. */
bool loader_is_busy(const struct loader *loader);
/* What taking a batch from a worker with nothing else to do costs at most. */
double loader_usual_receive_ns(const struct loader *loader);
/* How long a batch that was ready waited, on average, for its worker to answer, because
 * that one was making another: a slow sample holds up the batches before it, too. */
double loader_answer_ns(const struct loader *loader);

/* How many times as long as it computes a process would like to run; 1: it never waits
 * for a core, or nobody knows. */
double loader_wants_cpu(const struct report *report, uint32_t pid);
/* … of those who make its samples, on average. */
double loader_starvation(const struct report *report, const struct loader *loader);

#endif
