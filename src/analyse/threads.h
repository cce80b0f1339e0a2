/* threads.h: how long would a step take if each process computed with so many threads? */
#ifndef SONDE_ANALYSE_THREADS_H
#define SONDE_ANALYSE_THREADS_H

struct facts;

/* In steps of now. NaN: what is work and what is waiting is not known. */
double threads_left(const struct facts *facts, double threads);
/* … with as many threads as cores: of the main process, and of all that it waits for
 * together, at least one each. */
double threads_left_fitting(const struct facts *facts);

#endif
