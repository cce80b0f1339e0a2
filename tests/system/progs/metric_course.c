/* metric_course.c: metrics whose course is known: loss of N steps is 1/step but for one
 * peak (99 at N/3) and one dip (−5 at N/2); a counter every 100 steps; NaN once. */
#include <math.h>
#include <stdlib.h>

#include <sonde/sonde.h>

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 30000;
    for (int i = 1; i <= steps; i++) {
        sonde_step();
        sonde_metric("loss", i == steps / 3 ? 99.0 : i == steps / 2 ? -5.0 : 1.0 / i);
        if (i % 100 == 0)
            sonde_counter("queue", (double)(i / 100 % 7));
    }
    sonde_metric("odd", NAN);
    sonde_metric("accuracy", 0.93);
    return 0;
}
