// link: a
/* steady: a zone a step, steps of equal length.
 *
 *     steady STEPS MICROSECONDS [fork]
 *
 * Says when it starts each step, in nanoseconds since the epoch: what a window of
 * time must have caught. With `fork` a child does the steps and the parent leaves as
 * soon as the child has done one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

static void step(int number, unsigned microseconds)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    printf("%d %lld\n", number, (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    sonde_step();
    SONDE_ZONE("step", SONDE_FORWARD) {
        (void)usleep(microseconds);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const int steps = atoi(argv[1]);
    const unsigned microseconds = (unsigned)atoi(argv[2]);
    int ready[2];
    if (argc > 3 && strcmp(argv[3], "fork") == 0) {
        char byte;
        if (pipe(ready) != 0)
            return 3;
        if (fork() > 0)
            return read(ready[0], &byte, 1) == 1 ? 0 : 4;
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            return 6; /* a daemon does not hold its starter's pipes */
    }
    for (int i = 1; i <= steps; i++) {
        step(i, microseconds);
        if (i == 2 && argc > 3 && write(ready[1], "x", 1) != 1)
            return 5;
    }
    return 0;
}
