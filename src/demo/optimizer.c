/* optimizer.c: see optimizer.h. AdamW as in Loshchilov and Hutter, 2019. */
#include "demo/optimizer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const float keep_mean = 0.9F, keep_square = 0.999F, tiny = 1e-8F;

double gradients_clip(float *gradients, size_t count, double limit)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (double)gradients[i] * (double)gradients[i];
    const double length = sqrt(squares);
    if (length > limit) {
        const float scale = (float)(limit / length);
        for (size_t i = 0; i < count; i++)
            gradients[i] *= scale;
    }
    return length;
}

int adamw_init(struct adamw *adamw, size_t count, float weight_decay)
{
    *adamw = (struct adamw){ .count = count, .weight_decay = weight_decay };
    adamw->mean = calloc(count, sizeof *adamw->mean);
    adamw->square = calloc(count, sizeof *adamw->square);
    if (adamw->mean && adamw->square)
        return 0;
    adamw_release(adamw);
    return -ENOMEM;
}

void adamw_release(struct adamw *adamw)
{
    free(adamw->mean);
    free(adamw->square);
    *adamw = (struct adamw){ 0 };
}

void adamw_step(struct adamw *adamw, float *parameters, const float *gradients,
                float learning_rate)
{
    adamw->step++;
    /* The averages start at zero; these undo that bias. */
    const float mean_scale = 1 / (1 - powf(keep_mean, (float)adamw->step));
    const float square_scale = 1 / (1 - powf(keep_square, (float)adamw->step));
    for (size_t i = 0; i < adamw->count; i++) {
        const float g = gradients[i];
        adamw->mean[i] = keep_mean * adamw->mean[i] + (1 - keep_mean) * g;
        adamw->square[i] = keep_square * adamw->square[i] + (1 - keep_square) * g * g;
        const float direction = adamw->mean[i] * mean_scale /
                                (sqrtf(adamw->square[i] * square_scale) + tiny);
        parameters[i] -= learning_rate *
                         (direction + adamw->weight_decay * parameters[i]);
    }
}
