/* lttng.c: a zone as two LTTng-UST tracepoints.
 *
 *     lttng state=recorded|off zones=10000000 passes=11
 *
 * Recorded when an LTTng session with bench:* enabled is running (bench/peers.py).
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_provider.h"

#include "peer.h"

MEASURED static void zone_loop(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        lttng_ust_tracepoint(bench, begin, 16);
        OPAQUE();
        lttng_ust_tracepoint(bench, end, 16);
        OPAQUE();
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    return peer_main(argv, zone_loop);
}
