/* facts_shapes.c: what the shapes of batches tell: their size where no loader knows it,
 * and how much of them is padding (loaders.h). */
#include <math.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/loaders.h"
#include "analyse/report.h"

enum { LEAST_CALLS = 8 };

/* A convolution, attention: of one sample they see as many rows as it has positions. A
 * recurrence goes from one position to the next, with as many rows as there are samples. */
static double layers_over_positions(const struct py_model *m)
{
    static const char *const kinds[] = { "Conv", "Attention", "Transformer" };
    uint64_t count = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            if (strstr(m->layers[i].type, kinds[k])) {
                count += m->layers[i].count;
                break;
            }
    return (double)count;
}

void facts_of_shapes(struct report *r, struct facts *f)
{
    const struct loader_report *l = &r->loaders;
    if (r->layer.model_count > 0)
        f->v[FACT_POSITIONS] = layers_over_positions(&r->layer.models[0]);
    if (l->cells > 0)
        f->v[FACT_PADDING_SHARE] = fmin(fmax(1 - l->filled / l->cells, 0), 1);
    /* A loader that is not trained with says nothing about the batches that are. */
    const bool told = loaders_training(l) && fact_known(f, FACT_BATCH_SIZE);
    if (told || l->rows.count < LEAST_CALLS)
        return;
    f->v[FACT_BATCH_ROWS] = l->rows.mean;
    f->v[FACT_BATCH_SIZE] = l->rows.mean;
    f->source[FACT_BATCH_SIZE] = fact_infos[FACT_BATCH_ROWS].source;
}
