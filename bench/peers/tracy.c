/* tracy.c: a zone of Tracy, through the C interface of the tracy-client-sys crate.
 *
 *     tracy zones=10000000 passes=3
 *
 * Without a server, as in an unattended run: the client keeps everything in memory.
 */
#define TRACY_ENABLE
#include <tracy/TracyC.h>

#include "peer.h"

MEASURED static void zone_loop(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        TracyCZone(zone, 1);
        OPAQUE();
        TracyCZoneEnd(zone);
        OPAQUE();
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    return peer_main(argv, zone_loop);
}
