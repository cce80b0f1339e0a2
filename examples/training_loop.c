/* training_loop.c: fits a line to noisy points by gradient descent.
 *
 *     sonde run -- ./training_loop
 */
#include <stdio.h>
#include <stdlib.h>

#include <sonde/sonde.h>

enum { BATCH = 4096, STEPS = 200 };

struct model {
    double slope, offset;
};

static void load_batch(double *x, double *y)
{
    for (int i = 0; i < BATCH; i++) {
        x[i] = rand() / (double)RAND_MAX;
        y[i] = 3.0 * x[i] + 1.0 + 0.1 * (rand() / (double)RAND_MAX - 0.5);
    }
}

static double forward(const struct model *m, const double *x, const double *y,
                      double *error)
{
    double loss = 0;
    for (int i = 0; i < BATCH; i++) {
        error[i] = m->slope * x[i] + m->offset - y[i];
        loss += error[i] * error[i] / BATCH;
    }
    return loss;
}

static struct model backward(const double *x, const double *error)
{
    struct model gradient = { 0, 0 };
    for (int i = 0; i < BATCH; i++) {
        gradient.slope += 2 * error[i] * x[i] / BATCH;
        gradient.offset += 2 * error[i] / BATCH;
    }
    return gradient;
}

int main(void)
{
    static double x[BATCH], y[BATCH], error[BATCH];
    struct model model = { 0, 0 }, gradient = { 0, 0 };
    double loss = 0;

    sonde_param("learning_rate", "0.5");
    for (int step = 0; step < STEPS; step++) {
        sonde_step_samples(BATCH);
        SONDE_ZONE("load", SONDE_DATA_LOADING) {
            load_batch(x, y);
        }
        SONDE_ZONE("forward", SONDE_FORWARD) {
            loss = forward(&model, x, y, error);
        }
        SONDE_ZONE("backward", SONDE_BACKWARD) {
            gradient = backward(x, error);
        }
        SONDE_ZONE("update", SONDE_OPTIMIZER) {
            model.slope -= 0.5 * gradient.slope;
            model.offset -= 0.5 * gradient.offset;
        }
        sonde_metric("loss", loss);
    }
    printf("y = %.2f x + %.2f, loss %.5f\n", model.slope, model.offset, loss);
    return 0;
}
