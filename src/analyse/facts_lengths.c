/* facts_lengths.c: what steps would take if batches held samples of one length.
 *
 * A padded batch is as long as the longest of its samples, and what its step takes need not
 * go with its length: attention and the pages of its matrices go with the square. Both are
 * recorded batch by batch (their bytes; from one batch to the next fetch), so the time of a
 * length is fitted: T(L) = a + bL + cL², nothing negative.
 *
 * How long samples are nobody recorded, but batches are drawn at random: the longest of B
 * samples is below x with the B-th power of one sample's probability. So the root of the
 * batches' distribution is that of the samples, down to the shortest batch; below it
 * lies what is left of the mean, which is known from how much is no padding. Sorted by
 * length, batches have the samples' distribution: their mean time follows.
 */
#include <math.h>
#include <stdlib.h>

#include "analyse/fact_parts.h"
#include "analyse/loaders.h"
#include "analyse/report.h"
#include "num/nnls.h"

enum { LEAST_BATCHES = 10, MOST_BATCHES = 4096, TERMS = 3 };

struct batch_point {
    double length; /* bytes of a sample, padded */
    double ns;     /* from the batch to the next fetch */
};

struct length_fit {
    double x[TERMS];
};

static double time_of(const struct length_fit *f, double length)
{
    return f->x[0] + length * (f->x[1] + length * f->x[2]);
}

static int by_length(const void *a, const void *b)
{
    const struct batch_point *x = a, *y = b;
    return (x->length > y->length) - (x->length < y->length);
}

/* Whole batches whose successor was asked for; the very first warms up. In quick loops
 * batches are weighed now and then, and have the last weight in between. */
static size_t collect(const struct loader *l, struct batch_point *points, size_t most)
{
    size_t n = 0;
    for (size_t i = 1; i + 1 < l->recent_count && n < most; i++) {
        const struct loader_batch *b = &l->recent[i], *next = b + 1;
        if (next->epoch != b->epoch || next->number != b->number + 1 ||
            (int)b->samples != l->batch_size || !b->bytes || b->bytes == b[-1].bytes ||
            !b->given_ns || next->asked_ns <= b->given_ns)
            continue;
        points[n++] = (struct batch_point){ (double)b->bytes / b->samples,
                                            (double)(next->asked_ns - b->given_ns) };
    }
    return n;
}

/* By relative errors: short batches are many and say what short samples take. */
static int fit(const struct batch_point *points, size_t n, struct length_fit *ret_fit)
{
    double *a = calloc(n * (TERMS + 2), sizeof *a);
    if (!a)
        return -1;
    double *y = a + n * TERMS, *weights = y + n;
    const double scale = points[n - 1].length; /* terms of like size */
    for (size_t i = 0; i < n; i++) {
        const double length = points[i].length / scale;
        a[i * TERMS] = 1;
        a[i * TERMS + 1] = length;
        a[i * TERMS + 2] = length * length;
        y[i] = points[i].ns;
        weights[i] = 1 / (points[i].ns * points[i].ns);
    }
    double x[TERMS];
    const int rc = nnls_solve(a, y, weights, n, TERMS, x);
    free(a);
    if (rc < 0)
        return rc;
    *ret_fit = (struct length_fit){ { x[0], x[1] / scale, x[2] / (scale * scale) } };
    return 0;
}

/* Of mean step time now: what is left with batches of one length each. NaN: the lengths
 * are not those of batches drawn at random. */
static double left_by_length(const struct batch_point *points, size_t n, double samples,
                             double filled, const struct length_fit *f)
{
    const double root = 1 / samples, stretch = 1 / (1 - STILL_PADDED);
    double now = 0, longer = 0, after = 0, mean = 0;
    for (size_t i = 0; i < n; i++) {
        const double below = pow((double)i / (double)n, root);
        const double part = pow((double)(i + 1) / (double)n, root) - below;
        now += time_of(f, points[i].length) / (double)n;
        mean += points[i].length / (double)n;
        if (i == 0)
            continue;
        longer += part * points[i].length;
        after += part * time_of(f, points[i].length);
    }
    const double shortest = pow(1 / (double)n, root);
    const double rest = (mean * filled - longer) / shortest;
    if (!(rest > 0) || rest > points[0].length || !(now > 0))
        return NAN;
    return (after + shortest * time_of(f, rest * stretch)) / now;
}

void facts_of_lengths(const struct report *r, struct facts *f)
{
    const struct loader *l = loaders_training(&r->loaders);
    const double padding = f->v[FACT_PADDING_SHARE], input = f->v[FACT_INPUT_SHARE];
    struct length_fit of_length;
    if (!l || l->batch_size < 2 || !(padding > 0) || !(padding < 1))
        return;
    struct batch_point *points = calloc(MOST_BATCHES, sizeof *points);
    const size_t n = points ? collect(l, points, MOST_BATCHES) : 0;
    if (n >= LEAST_BATCHES) {
        qsort(points, n, sizeof *points, by_length);
        if (points[n - 1].length > points[0].length &&
            fit(points, n, &of_length) == 0) {
            const double left = left_by_length(points, n, l->batch_size, 1 - padding,
                                               &of_length);
            if (left > 0 && left < 1)
                f->v[FACT_LENGTHS_GAIN] = (1 - left) * (input > 0 ? 1 - input : 1);
        }
    }
    free(points);
}
