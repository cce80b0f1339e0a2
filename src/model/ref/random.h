/* random.h: numbers for weights and synthetic data. The same seed gives the same bits. */
#ifndef SONDE_MODEL_REF_RANDOM_H
#define SONDE_MODEL_REF_RANDOM_H

#include <math.h>

#include "num/prng.h"

static inline float random_uniform(struct prng *r, float low, float high)
{
    return low + (high - low) * (float)prng_double(r);
}

/* Box and Muller's, one of the pair: enough for what is drawn once. */
static inline float random_normal(struct prng *r)
{
    const double u = 1 - prng_double(r), v = prng_double(r);
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

#endif
