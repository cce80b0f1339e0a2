/* uftrace.c: a zone as uftrace has it, a function compiled with -pg.
 *
 *     uftrace record … -- uftrace zones=10000000 passes=11
 */
#include "peer.h"

__attribute__((noinline)) static void zone(void)
{
    OPAQUE();
}

MEASURED static void zone_loop(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        zone();
        OPAQUE();
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    return peer_main(argv, zone_loop);
}
