/* peer.h: the main program of a peer: the same passes as zone.c. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "../floor.h"

MEASURED static void empty_loop(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        OPAQUE();
        OPAQUE();
    }
}

static inline int peer_main(char **argv, loop_fn *zone_loop)
{
    const unsigned passes = (unsigned)argument_number(argv, "passes", 11);
    const unsigned long zones = argument_number(argv, "zones", 10000000);
    const bool off = strcmp(argument(argv, "state", "recorded"), "off") == 0;
    pin(0, 0);
    zone_loop(1000); /* first use: maps, registers, starts threads */
    settle();
    const struct resident before = resident_now();
    static struct passes result;
    alternate(&result, passes, zones, off ? empty_loop : floor_loop, zone_loop);
    put_passes(&result);
    put_growth(before);
    put_number("zones", off ? 0 : (double)zones * result.count + 1000);
    put_end();
    return 0;
}

#endif
