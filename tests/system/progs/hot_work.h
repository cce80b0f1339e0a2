/* hot_work.h: three functions that take 60, 30 and 10 % of the CPU time.
 *
 * Each has all its work on one line, so that the hot line is known too. The truth, printed
 * as JSON at the end, is the CPU time of all rounds, divided as their work is: the loops
 * are the same. Not measured around the calls: asking for a thread's CPU time has Linux
 * look whether its time slice is used up (since 6.6), so that a thread with rivals is
 * interrupted there, begins its next slice there, at a tick of the clock mostly, and the
 * timers, which are looked at in ticks, find it in some places more often than it is there.
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
static NOINLINE void hot_round(void)
{
    /* Of changing length: rounds that beat with the samples would be seen distorted. */
    static _Thread_local uint32_t seed = 12345;
    seed = seed * 1664525 + 1013904223;
    const uint64_t unit = 100000 + (seed >> 8) % 200000;
    hot_sixty(6 * unit);
    hot_thirty(3 * unit);
    hot_ten(1 * unit);
    __asm__ volatile(""); /* no tail call: it is to be in the stack */
}

/* Works for about that much CPU time. */
static NOINLINE void hot_work(double seconds, struct hot_truth *truth)
{
    enum { ROUNDS = 16 };
    const double start = hot_cpu_s();
    double used = 0;
    while (used < seconds) {
        for (int i = 0; i < ROUNDS; i++)
            hot_round();
        used = hot_cpu_s() - start;
    }
    truth->sixty += 0.6 * used;
    truth->thirty += 0.3 * used;
    truth->ten += 0.1 * used;
}

static inline void hot_print(const struct hot_truth *t)
{
    printf("{\"hot_sixty\": %.6f, \"hot_thirty\": %.6f, \"hot_ten\": %.6f}\n", t->sixty,
           t->thirty, t->ten);
    (void)fflush(stdout);
}

#endif
