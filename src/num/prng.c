/* prng.c: xoshiro256** 1.0 by Blackman and Vigna, seeded by splitmix64 as they
 * advise (prng.di.unimi.it). */
#include "num/prng.h"

#include <assert.h>

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void prng_init(struct prng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix64(&seed);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t prng_next(struct prng *r)
{
    uint64_t *s = r->s;
    const uint64_t result = rotl(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

/* Lemire's method: the high half of a 128-bit product, rejecting the few low
 * halves that would make some results likelier than others. */
uint64_t prng_below(struct prng *r, uint64_t bound)
{
    assert(bound > 0);
    const uint64_t threshold = -bound % bound;
    for (;;) {
        const unsigned __int128 m = (unsigned __int128)prng_next(r) * bound;
        if ((uint64_t)m >= threshold)
            return (uint64_t)(m >> 64);
    }
}

double prng_double(struct prng *r)
{
    return (double)(prng_next(r) >> 11) * 0x1p-53;
}
