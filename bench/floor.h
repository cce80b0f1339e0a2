/* floor.h: the least a recorded zone can cost.
 *
 * Two readings of the tick counter and two aligned 8-byte stores, into a cyclic buffer
 * of 64 KiB. All ratios of `make bench` are to this loop, run in the same process.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include "measure.h"

static inline uint64_t floor_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#else
    return 0; /* nor has Sonde a tick counter here */
#endif
}

enum { FLOOR_WORDS = 65536 / 8 };

MEASURED static void floor_loop(unsigned long n)
{
    static __thread uint64_t buffer[FLOOR_WORDS] __attribute__((aligned(64)));
    volatile uint64_t *words = buffer;
    unsigned at = 0;
    for (unsigned long i = 0; i < n; i++) {
        words[at] = floor_ticks();
        OPAQUE();
        words[at + 1] = floor_ticks();
        OPAQUE();
        at = (at + 2) & (FLOOR_WORDS - 1);
    }
}

#endif
