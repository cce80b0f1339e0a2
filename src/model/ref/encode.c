/* encode.c: see encode.h. */
#include "model/ref/encode.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/model.h>

#include "base/error.h"
#include "model/ref/blas.h"
#include "model/ref/random.h"

/* One graph of the batch. */
struct part {
    const struct graphs *g;
    size_t base, n, k;
    float *out; /* its rows of the result */
};

static size_t degree(const struct part *p, size_t i)
{
    const uint32_t *first = p->g->out_first + p->base;
    return first[i + 1] - first[i];
}

/* ---- Random walks -------------------------------------------------------------------------- */

/* One step of a walk: y_j = Σ x_i / degree(i) over edges i → j. */
static void walk(const struct part *p, const float *x, float *y)
{
    memset(y, 0, p->n * sizeof *y);
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t *first = p->g->out_first + p->base;
        const float share = x[i] / (float)(degree(p, i) ? degree(p, i) : 1);
        for (uint32_t e = first[i]; share != 0 && e < first[i + 1]; e++)
            y[p->g->out_target[e] - p->base] += share;
    }
}

static int walk_sparse(const struct part *p)
{
    float *x = calloc(2 * p->n, sizeof *x);
    if (!x)
        return -ENOMEM;
    float *y = x + p->n;
    for (size_t start = 0; start < p->n; start++) {
        memset(x, 0, p->n * sizeof *x);
        x[start] = 1;
        for (size_t step = 0; step < p->k; step++) {
            walk(p, x, y);
            p->out[start * p->k + step] = y[start];
            memcpy(x, y, p->n * sizeof *x);
        }
    }
    free(x);
    return 0;
}

static void walk_matrix(const struct part *p, float *m)
{
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t *first = p->g->out_first + p->base;
        for (uint32_t e = first[i]; e < first[i + 1]; e++)
            m[i * p->n + p->g->out_target[e] - p->base] += 1 / (float)degree(p, i);
    }
}

static int walk_dense(const struct part *p)
{
    const size_t n = p->n;
    float *once = calloc(3 * n * n, sizeof *once);
    if (!once)
        return -ENOMEM;
    float *power = once + n * n, *next = power + n * n;
    walk_matrix(p, once);
    memcpy(power, once, n * n * sizeof *power);
    for (size_t step = 0; step < p->k; step++) {
        for (size_t i = 0; i < n; i++)
            p->out[i * p->k + step] = power[i * n + i];
        if (step + 1 == p->k)
            break;
        blas_multiply(n, n, n, 1, (struct mat){ power, n, false },
                      (struct mat){ once, n, false }, 0, next, n);
        float *swap = power;
        power = next;
        next = swap;
    }
    free(once);
    return 0;
}

/* ---- The Laplacian ---------------------------------------------------------------------------- */

static float root_degree(const struct part *p, size_t i)
{
    return degree(p, i) ? 1 / sqrtf((float)degree(p, i)) : 0;
}

/* y = (I + D^-½ A D^-½) x: its largest eigenvalues are the Laplacian's smallest, and
 * Lanczos' method finds the largest first. */
static void apply(const struct part *p, const float *x, float *y)
{
    const uint32_t *first = p->g->out_first + p->base;
    for (size_t i = 0; i < p->n; i++) {
        float sum = 0;
        for (uint32_t e = first[i]; e < first[i + 1]; e++) {
            const size_t j = p->g->out_target[e] - p->base;
            sum += root_degree(p, j) * x[j];
        }
        y[i] = x[i] + root_degree(p, i) * sum;
    }
}

/* Column `column` of the result from a vector whose elements are `stride` apart. */
static void put_vector(const struct part *p, const float *v, size_t stride,
                       size_t column)
{
    float sign = 1;
    for (size_t i = 0; i < p->n; i++)
        if (fabsf(v[i * stride]) > 1e-4F) {
            sign = v[i * stride] < 0 ? -1 : 1;
            break;
        }
    for (size_t i = 0; i < p->n; i++)
        p->out[i * p->k + column] = sign * v[i * stride];
}

static int laplacian_dense(const struct part *p)
{
    const size_t n = p->n;
    float *m = calloc(n * n + n, sizeof *m);
    if (!m)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const uint32_t *first = p->g->out_first + p->base;
        m[i * n + i] += 1;
        for (uint32_t e = first[i]; e < first[i + 1]; e++) {
            const size_t j = p->g->out_target[e] - p->base;
            m[i * n + j] -= root_degree(p, i) * root_degree(p, j);
        }
    }
    const int rc = blas_eigen(m, n, m + n * n);
    for (size_t c = 0; rc == 0 && c < p->k && c + 1 < n; c++)
        put_vector(p, m + (c + 1) * n, 1, c); /* the first one is the constant */
    free(m);
    return rc;
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Takes every earlier vector out of w, twice, and makes it one long. False: nothing is
 * left, the space is exhausted. */
static bool orthogonalise(float *w, const float *vectors, size_t count, size_t n)
{
    for (int again = 0; again < 2; again++)
        for (size_t v = 0; v < count; v++) {
            const double along = dot(w, vectors + v * n, n);
            for (size_t i = 0; i < n; i++)
                w[i] -= (float)along * vectors[v * n + i];
        }
    const double length = sqrt(dot(w, w, n));
    if (!(length > 1e-6))
        return false;
    for (size_t i = 0; i < n; i++)
        w[i] = (float)((double)w[i] / length);
    return true;
}

/* m orthonormal vectors and the matrix of `apply` in them. Where the space is exhausted (the
 * graph falls into parts) a random direction starts a new one. */
static size_t krylov(const struct part *p, size_t m, float *vectors, float *small)
{
    struct prng random;
    size_t count = 0;
    float *images = vectors + m * p->n;
    prng_init(&random, 1);
    while (count < m) {
        float *w = vectors + count * p->n;
        if (count > 0)
            memcpy(w, images + (count - 1) * p->n, p->n * sizeof *w);
        if (count == 0 || !orthogonalise(w, vectors, count, p->n)) {
            for (size_t i = 0; i < p->n; i++)
                w[i] = random_normal(&random);
            if (!orthogonalise(w, vectors, count, p->n))
                break;
        }
        apply(p, w, images + count * p->n);
        count++;
    }
    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; b < count; b++)
            small[a * count + b] = (float)dot(vectors + a * p->n, images + b * p->n,
                                              p->n);
    return count;
}

static int laplacian_lanczos(const struct part *p)
{
    size_t m = 2 * p->k + 20;
    if (m > p->n)
        m = p->n;
    float *vectors = calloc(2 * m * p->n + m * m + m + p->n, sizeof *vectors);
    if (!vectors)
        return -ENOMEM;
    float *small = vectors + 2 * m * p->n, *values = small + m * m, *one = values + m;
    const size_t count = krylov(p, m, vectors, small);
    const int rc = blas_eigen(small, count, values);
    /* Ascending: the last is the constant one, those before it are wanted. */
    for (size_t c = 0; rc == 0 && c < p->k && c + 1 < count; c++) {
        memset(one, 0, p->n * sizeof *one);
        for (size_t v = 0; v < count; v++)
            for (size_t i = 0; i < p->n; i++)
                one[i] += small[(count - 2 - c) * count + v] * vectors[v * p->n + i];
        put_vector(p, one, 1, c);
    }
    free(vectors);
    return rc;
}

/* ---- All ---------------------------------------------------------------------------------------- */

int encode_compute(const struct graphs *g, int encoding, size_t k, float *ret)
{
    static int (*const kinds[SONDE_ENCODING_COUNT])(const struct part *) = {
        [SONDE_LAPLACIAN] = laplacian_dense,
        [SONDE_LAPLACIAN_LANCZOS] = laplacian_lanczos,
        [SONDE_RANDOM_WALK] = walk_dense,
        [SONDE_RANDOM_WALK_SPARSE] = walk_sparse,
    };
    int rc = kinds[encoding] ? 0 : -EINVAL;
    memset(ret, 0, g->nodes * k * sizeof *ret);
    for (size_t i = 0; rc == 0 && i < g->count; i++) {
        const size_t base = g->first[i];
        const struct part p = { .g = g,
                                .base = base,
                                .n = g->first[i + 1] - base,
                                .k = k,
                                .out = ret + base * k };
        if (p.n > 0)
            rc = kinds[encoding](&p);
    }
    return rc;
}

int encode_graphs(struct graphs *g, int encoding, size_t k)
{
    float *columns = malloc((g->nodes * k + 1) * sizeof *columns);
    int rc = columns ? encode_compute(g, encoding, k, columns) : -ENOMEM;
    if (rc == 0)
        rc = graphs_append_features(g, columns, k);
    free(columns);
    return rc;
}
