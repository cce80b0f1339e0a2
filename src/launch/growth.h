/* growth.h: how fast a size grows: the slope of the last seconds. */
#ifndef SONDE_LAUNCH_GROWTH_H
#define SONDE_LAUNCH_GROWTH_H

#include <stdint.h>

enum { GROWTH_POINTS = 64 };

struct growth {
    struct {
        uint64_t at_ns;
        double value;
    } point[GROWTH_POINTS]; /* a ring, oldest overwritten */
    uint64_t count;         /* ever */
};

void growth_add(struct growth *growth, uint64_t now_ns, double value);
/* Units per second by least squares; NaN with fewer than three points or less than a
 * tenth of a second. */
double growth_per_s(const struct growth *growth);

#endif
