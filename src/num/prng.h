/* prng.h: xoshiro256**, small, fast and the same on every machine.
 *
 * For resampling and tests. Results depend on the seed alone, so that a report
 * computed twice says the same. Not for secrets.
 */
#ifndef SONDE_NUM_PRNG_H
#define SONDE_NUM_PRNG_H

#include <stdint.h>

struct prng {
    uint64_t s[4];
};

void prng_init(struct prng *r, uint64_t seed);
uint64_t prng_next(struct prng *r);

/* Uniform in [0, bound); bound > 0. */
uint64_t prng_below(struct prng *r, uint64_t bound);

/* Uniform in [0, 1). */
double prng_double(struct prng *r);

#endif
