// link: all
/* model_ref: training steps of a reference net, timed one by one.
 *
 *     model_ref FAMILY THREADS STEPS hidden layers heads nodes|tokens batch [message]
 *
 * Prints wall and processor milliseconds of each step after two that are not counted.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/moment.h"
#include "model/ref/blas.h"
#include "model/ref/data.h"

static double step(struct refnet *net, const struct data *data, double *ret_cpu_ms)
{
    double loss;
    const uint64_t start = moment_ns(CLOCK_MONOTONIC);
    const uint64_t cpu = moment_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (refnet_forward(net, &data->batch, &loss) < 0 || refnet_backward(net) < 0)
        exit(3);
    refnet_update(net, 1e-3F);
    *ret_cpu_ms = (double)(moment_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e6;
    return (double)(moment_ns(CLOCK_MONOTONIC) - start) / 1e6;
}

int main(int argc, char **argv)
{
    if (argc < 9 || argc > 10 || family_of(argv[1]) < 0)
        return 2;
    struct model_config c = config_default((enum family)family_of(argv[1]));
    c.hidden = strtoull(argv[4], NULL, 10);
    c.layers = strtoull(argv[5], NULL, 10);
    c.heads = strtoull(argv[6], NULL, 10);
    c.nodes = c.tokens = strtoull(argv[7], NULL, 10);
    c.batch = strtoull(argv[8], NULL, 10);
    if (argc > 9)
        c.message = sonde_message_of(argv[9]);
    (void)blas_threads(atoi(argv[2]));
    struct data data;
    struct refnet net;
    if (data_synthetic(&data, &c, 42) < 0 || refnet_init(&net, &c) < 0)
        return 3;
    for (int i = -2; i < atoi(argv[3]); i++) {
        double cpu;
        const double wall = step(&net, &data, &cpu);
        if (i >= 0)
            printf("%.4f %.4f\n", wall, cpu);
    }
    refnet_release(&net);
    data_release(&data);
    return 0;
}
