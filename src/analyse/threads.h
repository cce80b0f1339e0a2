/* threads.h: how long would a step take if each process computed with so many threads? */
#ifndef SONDE_ANALYSE_THREADS_H
#define SONDE_ANALYSE_THREADS_H

#include <stdbool.h>

struct facts;

/* The main process is in its own phases all the time: it hands out no jobs and waits for
 * none, and processes that compute do so beside it. */
bool threads_train_beside(const struct facts *facts);
/* Of each process, so that all of them together want no more than the cores. */
double threads_that_fit(const struct facts *facts);

/* Share of a step in which the main thread is asleep for its next batch, where that is no
 * wait for a core: no number of threads makes it shorter. 0 where nobody knows. */
double threads_asleep(const struct facts *facts);

/* In steps of now. NaN: what is work and what is waiting is not known. */
double threads_left(const struct facts *facts, double threads);
/* … with as many threads as cores: of the main process, and of all that it waits for
 * together, or of all that compute at once; at least one each. */
double threads_left_fitting(const struct facts *facts);

#endif
