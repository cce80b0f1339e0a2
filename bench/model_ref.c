// link: all
/* model_ref: training steps of a reference net, timed one by one.
 *
 *     model_ref FAMILY THREADS STEPS hidden layers heads nodes|tokens batch
 *
 * Prints the milliseconds of each step after two that are not counted.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/moment.h"
#include "model/ref/blas.h"
#include "model/ref/data.h"

static double step(struct refnet *net, const struct data *data)
{
    double loss;
    const uint64_t start = moment_ns(CLOCK_MONOTONIC);
    if (refnet_forward(net, &data->batch, &loss) < 0 || refnet_backward(net) < 0)
        exit(3);
    refnet_update(net, 1e-3F);
    return (double)(moment_ns(CLOCK_MONOTONIC) - start) / 1e6;
}

int main(int argc, char **argv)
{
    if (argc != 9 || family_of(argv[1]) < 0)
        return 2;
    struct model_config c = config_default((enum family)family_of(argv[1]));
    c.hidden = strtoull(argv[4], NULL, 10);
    c.layers = strtoull(argv[5], NULL, 10);
    c.heads = strtoull(argv[6], NULL, 10);
    c.nodes = c.tokens = strtoull(argv[7], NULL, 10);
    c.batch = strtoull(argv[8], NULL, 10);
    (void)blas_threads(atoi(argv[2]));
    struct data data;
    struct refnet net;
    if (data_synthetic(&data, &c, 42) < 0 || refnet_init(&net, &c) < 0)
        return 3;
    (void)step(&net, &data);
    (void)step(&net, &data);
    for (int i = 0; i < atoi(argv[3]); i++)
        printf("%.4f\n", step(&net, &data));
    for (int p = 0; p < PART_COUNT; p++)
        fprintf(stderr, "%s %.2f %.2f\n", refpart_name((enum part)p),
                (double)net.times[p].forward_ns / 1e6 / (atoi(argv[3]) + 2),
                (double)net.times[p].backward_ns / 1e6 / (atoi(argv[3]) + 2));
    refnet_release(&net);
    data_release(&data);
    return 0;
}
