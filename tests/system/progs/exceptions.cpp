// link: a
/* exceptions: C++ exceptions leave zones from every depth; the zones end all the same.
 *
 *     exceptions TIMES
 */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <sonde/sonde.h>

static void thrower(int depth)
{
    SONDE_ZONE("deeper", SONDE_FORWARD) {
        if (depth == 0)
            throw std::runtime_error("out");
        thrower(depth - 1);
    }
}

static int early_return(int i)
{
    SONDE_ZONE_EX("returns", SONDE_BACKWARD, "cpp", "category", "a=b") {
        if (i % 2 == 0)
            return i;
    }
    return -i;
}

int main(int argc, char **argv)
{
    const int times = argc > 1 ? std::atoi(argv[1]) : 10;
    int caught = 0;
    for (int i = 0; i < times; i++) {
        try {
            SONDE_ZONE("outer", SONDE_OTHER) {
                thrower(3);
            }
        } catch (const std::runtime_error &) {
            caught++;
        }
        (void)early_return(i);
        SONDE_ZONE("after", SONDE_OTHER) {}
    }
    std::printf("%d\n", caught);
    return 0;
}
