/* moment.h: a clock of the system, in nanoseconds. */
#ifndef SONDE_BASE_MOMENT_H
#define SONDE_BASE_MOMENT_H

#include <stdint.h>
#include <time.h>

static inline uint64_t moment_ns(clockid_t clock)
{
    struct timespec t = { 0, 0 };
    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
