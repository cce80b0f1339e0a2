// link: a
/* unbalanced: begins and ends that do not match, then work that does.
 *
 *     unbalanced missing|extra|crossed|deep [TIMES]
 *
 * missing  begin A, begin B, end A: B is closed by A          (TIMES × 1)
 * extra    end C, which was never begun                       (TIMES × 1)
 * crossed  begin A, begin B, end A, end B: the second is an end without a begin
 * deep     RECURSION levels of zone "down", deeper than anybody keeps
 * After each, and at the end 100 times: zone "good" with "inner" inside.
 */
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

enum { RECURSION = 1000 };

static struct sonde_site *site(const char *name)
{
    return sonde_site_named(name, SONDE_FORWARD, NULL, NULL, NULL);
}

static void good(void)
{
    SONDE_ZONE("good", SONDE_FORWARD) {
        SONDE_ZONE("inner", SONDE_NO_PHASE) {}
    }
}

static void down(int levels)
{
    SONDE_ZONE("down", SONDE_BACKWARD) {
        if (levels > 1)
            down(levels - 1);
    }
}

static void bad(const char *mode)
{
    if (strcmp(mode, "missing") == 0) {
        sonde_begin(site("A"));
        sonde_begin(site("B"));
        sonde_end(site("A"));
    } else if (strcmp(mode, "extra") == 0) {
        sonde_end(site("C"));
    } else if (strcmp(mode, "crossed") == 0) {
        sonde_begin(site("A"));
        sonde_begin(site("B"));
        sonde_end(site("A"));
        sonde_end(site("B"));
    } else {
        down(RECURSION);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const int times = argc > 2 ? atoi(argv[2]) : 1;
    for (int i = 0; i < times; i++) {
        bad(argv[1]);
        good();
    }
    for (int i = 0; i < 100; i++)
        good();
    return 0;
}
