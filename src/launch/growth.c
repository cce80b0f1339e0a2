/* growth.c: how fast a size grows. */
#include "launch/growth.h"

#include <math.h>

static const double SHORTEST_S = 0.1;

void growth_add(struct growth *growth, uint64_t now_ns, double value)
{
    const uint64_t at = growth->count++ % GROWTH_POINTS;
    growth->point[at].at_ns = now_ns;
    growth->point[at].value = value;
}

double growth_per_s(const struct growth *g)
{
    const uint64_t n = g->count < GROWTH_POINTS ? g->count : GROWTH_POINTS;
    const uint64_t first = g->point[(g->count - n) % GROWTH_POINTS].at_ns;
    double mean_t = 0, mean_v = 0, tt = 0, tv = 0, longest = 0;
    if (n < 3)
        return NAN;
    for (uint64_t i = 0; i < n; i++) {
        const double t = (double)(g->point[i].at_ns - first) / 1e9;
        longest = fmax(longest, t);
        mean_t += t / (double)n;
        mean_v += g->point[i].value / (double)n;
    }
    for (uint64_t i = 0; i < n; i++) {
        const double t = (double)(g->point[i].at_ns - first) / 1e9 - mean_t;
        tt += t * t;
        tv += t * (g->point[i].value - mean_v);
    }
    return longest >= SHORTEST_S ? tv / tt : NAN;
}
