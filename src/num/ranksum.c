/* ranksum.c: Mann-Whitney interval and the p values of both rank tests.
 *
 * The number of ways in which nx of nx + ny places give U = u is the coefficient of a
 * Gaussian binomial, found by adding one y after the other: with j of them below, x
 * contributes j. 40 of 80 places are some 1e23 ways: doubles, for their ratio is all
 * that is asked.
 */
#include "num/ranksum.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "num/correlate.h"
#include "num/student.h"

enum { MOST_U = RANKSUM_EXACT * RANKSUM_EXACT };

/* share[u]: P(U = u). Multiplies (1 − q^(ny+1)) … (1 − q^(ny+nx)) / ((1 − q) … (1 −
 * q^nx)), scaled to a sum of 1. */
static void distribution(size_t nx, size_t ny, double share[MOST_U + 1])
{
    const size_t most = nx * ny;
    for (size_t u = 0; u <= most; u++)
        share[u] = u == 0;
    for (size_t i = 1; i <= nx; i++) {
        for (size_t u = most; u >= ny + i && u <= most; u--)
            share[u] -= share[u - ny - i];
        for (size_t u = i; u <= most; u++)
            share[u] += share[u - i];
    }
    double sum = 0;
    for (size_t u = 0; u <= most; u++)
        sum += share[u];
    for (size_t u = 0; u <= most; u++)
        share[u] /= sum;
}

double ranksum_cdf(size_t nx, size_t ny, size_t u)
{
    double share[MOST_U + 1]; /* not thread-local: that space is scarce in libraries */
    assert(nx <= RANKSUM_EXACT && ny <= RANKSUM_EXACT && nx && ny);
    distribution(nx, ny, share);
    double sum = 0;
    for (size_t i = 0; i <= u && i <= nx * ny; i++)
        sum += share[i];
    return sum > 1 ? 1 : sum;
}

/* The largest k with P(U <= k − 1) <= alpha / 2, at least 1. */
static double choose(size_t nx, size_t ny, double alpha, size_t *ret_k)
{
    double share[MOST_U + 1]; /* not thread-local: that space is scarce in libraries */
    if (nx > RANKSUM_EXACT || ny > RANKSUM_EXACT) {
        const double n = (double)nx, m = (double)ny;
        const double z = student_quantile(1 - alpha / 2, INFINITY);
        const double k = floor(n * m / 2 - z * sqrt(n * m * (n + m + 1) / 12));
        *ret_k = k > 1 ? (size_t)k : 1;
        return 1 - alpha;
    }
    distribution(nx, ny, share);
    double tail = share[0];
    size_t k = 1;
    while (k <= nx * ny / 2 && tail + share[k] <= alpha / 2)
        tail += share[k++];
    *ret_k = k;
    return 1 - 2 * tail;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int check(const double *values, size_t n)
{
    if (n == 0)
        return -EINVAL;
    if (n > RANKSUM_MAX)
        return SONDE_E_LIMIT;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return -EINVAL;
    return 0;
}

int ranksum_shift(const double *x, size_t nx, const double *y, size_t ny,
                  double confidence, struct ranktest *ret_result)
{
    int rc = check(x, nx);
    if (rc == 0)
        rc = check(y, ny);
    if (rc == 0 && !(confidence > 0 && confidence < 1))
        rc = -EINVAL;
    if (rc < 0)
        return rc;
    const size_t count = nx * ny;
    double *differences = calloc(count, sizeof *differences);
    if (!differences)
        return -ENOMEM;
    for (size_t i = 0; i < nx; i++)
        for (size_t j = 0; j < ny; j++)
            differences[i * ny + j] = y[j] - x[i];
    qsort(differences, count, sizeof *differences, compare_doubles);
    size_t k;
    const double reached = choose(nx, ny, 1 - confidence, &k);
    *ret_result = (struct ranktest){
        .estimate = (differences[(count - 1) / 2] + differences[count / 2]) / 2,
        .low = differences[k - 1],
        .high = differences[count - k],
        .confidence = reached,
    };
    free(differences);
    return 0;
}

double ranksum_p(const double *x, size_t nx, const double *y, size_t ny)
{
    if (check(x, nx) < 0 || check(y, ny) < 0)
        return NAN;
    double u = 0; /* pairs in which x is the larger: small when y is */
    for (size_t i = 0; i < nx; i++)
        for (size_t j = 0; j < ny; j++)
            u += x[i] > y[j] ? 1 : x[i] == y[j] ? 0.5 : 0;
    if (nx <= RANKSUM_EXACT && ny <= RANKSUM_EXACT)
        return ranksum_cdf(nx, ny, (size_t)ceil(u));
    const double n = (double)nx, m = (double)ny;
    return student_cdf((u + 0.5 - n * m / 2) / sqrt(n * m * (n + m + 1) / 12),
                       INFINITY);
}

double ranktest_p(const double *differences, size_t n)
{
    double *sizes = calloc(n ? n : 1, 2 * sizeof *sizes);
    double *ranks = sizes ? sizes + n : NULL;
    size_t kept = 0;
    double below = 0;
    if (!sizes)
        return NAN;
    for (size_t i = 0; i < n; i++)
        if (differences[i] != 0)
            sizes[kept++] = fabs(differences[i]);
    double p = 1;
    if (kept && rank_values(sizes, kept, ranks) == 0) {
        for (size_t i = 0, k = 0; i < n; i++)
            if (differences[i] != 0) {
                below += differences[i] < 0 ? ranks[k] : 0;
                k++;
            }
        const double m = (double)kept;
        p = kept <= RANKTEST_EXACT_N
                ? ranktest_signed_rank_cdf(kept, (size_t)ceil(below))
                : student_cdf((below + 0.5 - m * (m + 1) / 4) /
                                  sqrt(m * (m + 1) * (2 * m + 1) / 24),
                              INFINITY);
    }
    free(sizes);
    return p;
}
