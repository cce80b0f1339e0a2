/* random.h: a small generator whose whole state is its seed (SplitMix64).
 *
 * Every sample gets a generator of its own, seeded from (run seed, epoch, index), so
 * that the training result does not depend on who prepares which sample when.
 */
#ifndef SONDE_DEMO_RANDOM_H
#define SONDE_DEMO_RANDOM_H

#include <math.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

/* A generator for item `index` of stream `stream`. */
static inline struct rng rng_for(uint64_t seed, uint64_t stream, uint64_t index)
{
    struct rng rng = { seed * 0x2545f4914f6cdd1dULL + stream };
    rng.state = rng_next(&rng) + index;
    rng.state = rng_next(&rng);
    return rng;
}

/* Evenly spread in [low, high). */
static inline float rng_uniform(struct rng *rng, float low, float high)
{
    return low + (high - low) * (float)(rng_next(rng) >> 40) * 0x1p-24F;
}

static inline unsigned rng_below(struct rng *rng, unsigned bound)
{
    return (unsigned)((rng_next(rng) >> 32) * bound >> 32);
}

/* Standard normal (Box–Muller). */
static inline float rng_normal(struct rng *rng)
{
    const float radius = sqrtf(-2.0F * logf(rng_uniform(rng, 1e-7F, 1.0F)));
    return radius * cosf(rng_uniform(rng, 0.0F, 6.2831853F));
}

#endif
