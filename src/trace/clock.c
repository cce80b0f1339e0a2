/* clock.c: reading the clocks together, and turning ticks into time.
 *
 * The four clocks cannot be read at one instant; they are read between two reads of
 * the tick counter, several times, and the tightest attempt is kept. The width of
 * that window is the reading's error.
 */
#include "trace/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <sonde/sonde.h>

static uint64_t gettime_ns(clockid_t id)
{
    struct timespec ts;
    if (clock_gettime(id, &ts) != 0)
        return 0;
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static enum tick_source find_source(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    /* Invariant TSC: constant rate, runs in every power state, in step over cores. */
    if (__get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8))
        return TICKS_TSC;
    return TICKS_CLOCK_NS;
#elif defined(__aarch64__)
    return TICKS_CNTVCT;
#else
    return TICKS_CLOCK_NS;
#endif
}

enum tick_source ticks_source(void)
{
    static int cached;
    int source = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (source == 0) {
        source = (int)find_source();
        __atomic_store_n(&cached, source, __ATOMIC_RELAXED);
    }
    return (enum tick_source)source;
}

uint64_t ticks_now(void)
{
    if (ticks_source() == TICKS_CLOCK_NS)
        return gettime_ns(CLOCK_MONOTONIC_RAW);
    return sonde_ticks_();
}

void clock_read(struct clock_reading *ret_reading)
{
    struct clock_reading best = { .error_ticks = UINT64_MAX };
    for (int attempt = 0; attempt < 5; attempt++) {
        uint64_t before = ticks_now();
        struct clock_reading now = {
            .mono_raw_ns = gettime_ns(CLOCK_MONOTONIC_RAW),
            .mono_ns = gettime_ns(CLOCK_MONOTONIC),
            .real_ns = gettime_ns(CLOCK_REALTIME),
        };
        uint64_t after = ticks_now();
        now.ticks = before + (after - before) / 2;
        now.error_ticks = after - before;
        if (now.error_ticks < best.error_ticks)
            best = now;
    }
    *ret_reading = best;
}

double ticks_per_ns(void)
{
    static double cached; /* written by racing threads with about the same value */
    double rate;
    __atomic_load(&cached, &rate, __ATOMIC_RELAXED);
    if (rate > 0)
        return rate;
    if (ticks_source() == TICKS_CLOCK_NS) {
        rate = 1;
    } else {
        struct clock_reading a, b;
        clock_read(&a);
        do {
            clock_read(&b);
        } while (b.mono_raw_ns - a.mono_raw_ns < 1000000u);
        rate = (double)(b.ticks - a.ticks) / (double)(b.mono_raw_ns - a.mono_raw_ns);
    }
    __atomic_store(&cached, &rate, __ATOMIC_RELAXED);
    return rate;
}

/* ---- The table --------------------------------------------------------------- */

static int by_ticks(const void *a, const void *b)
{
    const struct clock_reading *x = a, *y = b;
    return (x->ticks > y->ticks) - (x->ticks < y->ticks);
}

/* A reading that goes back in time, or claims a rate no counter has, is damage. */
static bool plausible(const struct clock_reading *prev,
                      const struct clock_reading *next)
{
    if (next->ticks <= prev->ticks || next->mono_raw_ns <= prev->mono_raw_ns)
        return false;
    double rate = (double)(next->mono_raw_ns - prev->mono_raw_ns) /
                  (double)(next->ticks - prev->ticks);
    return rate > 0.05 && rate < 2000; /* 20 GHz … 0.5 MHz */
}

/* How far the readings stray from a straight line, plus the width of the worst:
 * two processes' events are ordered right when they are further apart. */
static double table_error(const struct clock_table *t)
{
    double widest = 0;
    for (size_t i = 0; i < t->count; i++)
        widest = fmax(widest, (double)t->readings[i].error_ticks * t->ns_per_tick);
    double bend = 0;
    for (size_t i = 2; i < t->count; i++) {
        const struct clock_reading *a = &t->readings[i - 2], *b = a + 1, *c = a + 2;
        double slope = (double)(c->mono_raw_ns - a->mono_raw_ns) /
                       (double)(c->ticks - a->ticks);
        double expected = (double)a->mono_raw_ns +
                          slope * (double)(b->ticks - a->ticks);
        bend = fmax(bend, fabs((double)b->mono_raw_ns - expected));
    }
    return widest + bend;
}

/* Whether the readings are far enough apart for a rate: 100 ns in half a second. */
static bool fixes_rate(const struct clock_reading *readings, size_t count)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t at = readings[i].mono_raw_ns;
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    return count >= 2 && last - first >= 500000000;
}

int clock_table_build(const struct clock_reading *readings, size_t count,
                      bool same_boot, enum tick_source source,
                      struct clock_table *ret_table)
{
    struct clock_reading *sorted = calloc(count + 1, sizeof *sorted);
    if (!sorted)
        return -12; /* ENOMEM */
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (readings[i].ticks && readings[i].mono_raw_ns)
            sorted[n++] = readings[i];
    /* The present fixes the rate of a short table. Never of another: the report of a run
     * must be the same whenever it is made. */
    if (n > 0 && !fixes_rate(sorted, n) && same_boot && source == ticks_source())
        clock_read(&sorted[n++]);
    qsort(sorted, n, sizeof *sorted, by_ticks);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || plausible(&sorted[kept - 1], &sorted[i]))
            sorted[kept++] = sorted[i];

    struct clock_table table = { .readings = sorted, .count = kept, .ns_per_tick = 1 };
    if (kept >= 2) {
        const struct clock_reading *a = &sorted[0], *b = &sorted[kept - 1];
        table.ns_per_tick = (double)(b->mono_raw_ns - a->mono_raw_ns) /
                            (double)(b->ticks - a->ticks);
    } else if (source == TICKS_TSC) {
        table.ns_per_tick = 1 / ticks_per_ns(); /* another boot: this machine's rate */
    }
    table.error_ns = kept ? table_error(&table) : NAN;
    *ret_table = table;
    return 0;
}

void clock_table_release(struct clock_table *table)
{
    free(table->readings);
    *table = (struct clock_table){ 0 };
}

/* A file may claim any time: what does not fit is the end of time. */
static int64_t whole_ns(double ns)
{
    return ns >= 0x1p63 ? INT64_MAX : ns > -0x1p63 ? (int64_t)ns : INT64_MIN;
}

int64_t clock_real_ns(const struct clock_table *table, uint64_t ticks)
{
    if (table->count == 0)
        return whole_ns((double)ticks * table->ns_per_tick);
    size_t low = 0, high = table->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (table->readings[middle].ticks <= ticks)
            low = middle;
        else
            high = middle;
    }
    const struct clock_reading *a = &table->readings[low];
    double slope = table->ns_per_tick;
    if (low + 1 < table->count) {
        const struct clock_reading *b = a + 1;
        /* Real time may be stepped between readings; then keep the raw rate. */
        double real = (double)(int64_t)(b->real_ns - a->real_ns);
        double raw = (double)(b->mono_raw_ns - a->mono_raw_ns);
        double ticks_apart = (double)(b->ticks - a->ticks);
        slope = (fabs(real - raw) < 1e-3 * raw ? real : raw) / ticks_apart;
    }
    int64_t offset = whole_ns((double)(int64_t)(ticks - a->ticks) * slope);
    return (int64_t)(a->real_ns + (uint64_t)offset);
}
