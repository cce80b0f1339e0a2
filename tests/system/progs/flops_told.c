/* flops_told STEPS PER_STEP [TOTAL]: tells the floating-point operations of a step, and of
 * everything when TOTAL is given; 0 steps or 0 operations: tells none. */
#include <stdlib.h>

#include <sonde/sonde.h>

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 0;
    const double per_step = argc > 2 ? atof(argv[2]) : 0;
    for (int i = 0; i < steps; i++) {
        sonde_step();
        SONDE_ZONE("forward", SONDE_FORWARD) {
            SONDE_ZONE("inner", SONDE_FORWARD) {}
        }
        if (per_step > 0)
            sonde_metric("flops_per_step", per_step);
    }
    if (argc > 3)
        sonde_metric("flops", atof(argv[3]));
    return 0;
}
