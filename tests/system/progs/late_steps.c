/* Sleeps for so long as imports of large libraries may take, then works in steps:
 *     late_steps SLEEP_S WORK_S */
#include <stdlib.h>
#include <time.h>

#include <sonde/sonde.h>

static double now_s(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    const double sleep_s = argc > 1 ? atof(argv[1]) : 11,
                 work_s = argc > 2 ? atof(argv[2]) : 4;
    const struct timespec pause = { (time_t)sleep_s,
                                    (long)(1e9 * (sleep_s - (double)(time_t)sleep_s)) };
    (void)nanosleep(&pause, NULL);
    const double until = now_s(CLOCK_PROCESS_CPUTIME_ID) + work_s;
    volatile unsigned sum = 0;
    while (now_s(CLOCK_PROCESS_CPUTIME_ID) < until) {
        sonde_step();
        for (unsigned i = 0; i < 2000000; i++)
            sum += i;
    }
    return 0;
}
