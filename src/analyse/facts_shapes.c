/* facts_shapes.c: what the shapes of batches tell: their size where no loader knows it,
 * and how much of them is padding (loaders.h). */
#include <math.h>

#include "analyse/fact_parts.h"
#include "analyse/loaders.h"
#include "analyse/report.h"

enum { LEAST_CALLS = 8 };

void facts_of_shapes(struct report *r, struct facts *f)
{
    const struct loader_report *l = &r->loaders;
    if (l->cells > 0)
        f->v[FACT_PADDING_SHARE] = fmin(fmax(1 - l->filled / l->cells, 0), 1);
    if (loaders_training(l) || l->rows.count < LEAST_CALLS)
        return;
    /* A loader that is not trained with says nothing about the batches that are. */
    f->v[FACT_BATCH_ROWS] = l->rows.mean;
    f->v[FACT_BATCH_SIZE] = l->rows.mean;
    f->source[FACT_BATCH_SIZE] = fact_infos[FACT_BATCH_ROWS].source;
}
