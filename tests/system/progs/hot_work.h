/* hot_work.h: three functions that take 60, 30 and 10 % of the CPU time.
 *
 * Each has all its work on one line, so that the hot line is known too. The truth is the
 * CPU time measured around the calls, printed as JSON at the end.
 */
#ifndef HOT_WORK_H
#define HOT_WORK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static double hot_cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static volatile uint64_t hot_sink;

static NOINLINE void hot_sixty(uint64_t n)
{
    uint64_t x = n;
    /* clang-format off */
    for (uint64_t i = 0; i < n; i++) { x = x * 6364136223846793005ULL + 1; __asm__ volatile("" : "+r"(x)); } /* LINE 60 */
    /* clang-format on */
    hot_sink += x;
}

static NOINLINE void hot_thirty(uint64_t n)
{
    uint64_t x = n;
    /* clang-format off */
    for (uint64_t i = 0; i < n; i++) { x = x * 6364136223846793005ULL + 3; __asm__ volatile("" : "+r"(x)); } /* LINE 30 */
    /* clang-format on */
    hot_sink += x;
}

static NOINLINE void hot_ten(uint64_t n)
{
    uint64_t x = n;
    /* clang-format off */
    for (uint64_t i = 0; i < n; i++) { x = x * 6364136223846793005ULL + 5; __asm__ volatile("" : "+r"(x)); } /* LINE 10 */
    /* clang-format on */
    hot_sink += x;
}

struct hot_truth {
    double sixty, thirty, ten;
};

/* A caller in between, for total times. */
static NOINLINE void hot_round(struct hot_truth *truth)
{
    /* Of changing length: rounds that beat with the samples would be seen distorted. */
    static _Thread_local uint32_t seed = 12345;
    seed = seed * 1664525 + 1013904223;
    const uint64_t unit = 100000 + (seed >> 8) % 200000;
    const double a = hot_cpu_s();
    hot_sixty(6 * unit);
    const double b = hot_cpu_s();
    hot_thirty(3 * unit);
    const double c = hot_cpu_s();
    hot_ten(1 * unit);
    const double d = hot_cpu_s();
    truth->sixty += b - a;
    truth->thirty += c - b;
    truth->ten += d - c;
}

/* Works for that much CPU time. */
static NOINLINE void hot_work(double seconds, struct hot_truth *truth)
{
    const double end = hot_cpu_s() + seconds;
    while (hot_cpu_s() < end)
        hot_round(truth);
}

static inline void hot_print(const struct hot_truth *t)
{
    printf("{\"hot_sixty\": %.6f, \"hot_thirty\": %.6f, \"hot_ten\": %.6f}\n", t->sixty,
           t->thirty, t->ten);
    (void)fflush(stdout);
}

#endif
