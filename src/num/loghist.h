/* loghist.h: where a duration goes in a logarithmic histogram.
 *
 * Values below 64 have a bucket each; above, every octave is cut into 64 equal
 * buckets, so a bucket is never wider than 1/64 of its lower edge and its middle is
 * within 1/128 = 0.78 % of any value in it: p50, p95 and p99 are right to 1 %.
 * An octave is one chunk of 64 counters, allocated when first touched: a zone that
 * takes 3–9 µs needs three chunks, not the 2,752 buckets of the full range.
 *
 * Pure arithmetic; no state, callable from anywhere.
 */
#ifndef SONDE_NUM_LOGHIST_H
#define SONDE_NUM_LOGHIST_H

#include <stdint.h>

enum {
    LOGHIST_SUB_BITS = 6,
    LOGHIST_SUBS = 1 << LOGHIST_SUB_BITS,
    LOGHIST_VALUE_BITS = 48,
    LOGHIST_CHUNKS = LOGHIST_VALUE_BITS - LOGHIST_SUB_BITS + 1, /* 43 */
};

struct loghist_slot {
    unsigned chunk, sub;
};

static inline struct loghist_slot loghist_slot(uint64_t value)
{
    if (value < LOGHIST_SUBS)
        return (struct loghist_slot){ 0, (unsigned)value };
    if (value >> LOGHIST_VALUE_BITS)
        return (struct loghist_slot){ LOGHIST_CHUNKS - 1, LOGHIST_SUBS - 1 };
    unsigned top = 63u - (unsigned)__builtin_clzll(value);
    return (struct loghist_slot){ top - LOGHIST_SUB_BITS + 1,
                                  (unsigned)(value >> (top - LOGHIST_SUB_BITS)) &
                                      (LOGHIST_SUBS - 1) };
}

/* The middle of a bucket, the value that stands for all in it. */
static inline double loghist_middle(unsigned chunk, unsigned sub)
{
    if (chunk == 0)
        return sub;
    uint64_t width = 1ULL << (chunk - 1);
    uint64_t low = (uint64_t)(LOGHIST_SUBS + sub) << (chunk - 1);
    return (double)low + (double)(width - 1) / 2;
}

#endif
