/* fast.h: how the loops of kernels*.c are compiled. Private to them. */
#ifndef SONDE_MODEL_REF_FAST_H
#define SONDE_MODEL_REF_FAST_H

#include <string.h>

/* The same function compiled for wider vectors, chosen when the program starts. Not under
 * sanitizers: their runtime is not ready when the choice is made. */
#if defined(__x86_64__) && defined(__linux__) && !defined(SONDE_SANITIZED)
#define FAST __attribute__((target_clones("avx2", "default")))
#else
#define FAST
#endif
#define INLINE static inline __attribute__((always_inline))

/* eˣ within 2 units of the last place, without a branch: 2^n by its exponent bits times
 * a polynomial of the rest (Cephes' coefficients). */
INLINE float fast_exp(float x)
{
    const float low = -87.0F, high = 88.0F;
    x = x < low ? low : x > high ? high : x;
    const int n = (int)(x * 1.44269504F + 127.5F) -
                  127; /* rounded: what is cut is > 0 */
    const float whole = (float)n;
    const float r = (x - whole * 0.693359375F) - whole * -2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1;
    const int bits = (n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

#endif
