/* ranktest.c: Hodges-Lehmann estimate and Wilcoxon signed-rank interval.
 *
 * Without effect each rank 1..n counts with probability 1/2, so W, the sum of the
 * counting ranks, is distributed like the sum of a random subset. The number of
 * subsets with sum w is found by adding one rank after the other; 2^40 subsets fit
 * 64 bits, hence the exact limit of 40 pairs.
 *
 * The interval of the test consists of the k-th smallest and k-th largest Walsh
 * average, with k the largest number for which P(W <= k - 1) <= alpha / 2
 * (Hollander & Wolfe, Nonparametric Statistical Methods, 3.3).
 */
#include "num/ranktest.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "num/student.h"

enum { MAX_SUM = RANKTEST_EXACT_N * (RANKTEST_EXACT_N + 1) / 2 };

/* ways[w]: the subsets of {1..n} with sum w. */
static void count_subsets(size_t n, uint64_t ways[MAX_SUM + 1])
{
    for (size_t w = 0; w <= MAX_SUM; w++)
        ways[w] = w == 0;
    size_t largest = 0;
    for (size_t rank = 1; rank <= n; rank++) {
        largest += rank;
        for (size_t w = largest; w >= rank; w--) /* downwards: each rank once */
            ways[w] += ways[w - rank];
    }
}

double ranktest_signed_rank_cdf(size_t n, size_t w)
{
    assert(n <= RANKTEST_EXACT_N);
    uint64_t ways[MAX_SUM + 1];
    count_subsets(n, ways);
    uint64_t sum = 0;
    for (size_t i = 0; i <= w && i <= MAX_SUM; i++)
        sum += ways[i];
    return ldexp((double)sum, -(int)n);
}

/* Sets k >= 1 and returns the confidence of the interval that k gives. */
static double choose_exact(size_t n, double alpha, size_t *ret_k)
{
    uint64_t ways[MAX_SUM + 1];
    count_subsets(n, ways);

    double tail = ldexp((double)ways[0], -(int)n); /* P(W <= k - 1) */
    size_t k = 1;
    for (;;) {
        const double next = tail + ldexp((double)ways[k], -(int)n);
        if (next > alpha / 2 || k >= n * (n + 1) / 4)
            break;
        tail = next;
        k++;
    }
    *ret_k = k;
    return 1 - 2 * tail;
}

static double choose_normal(size_t n, double alpha, size_t *ret_k)
{
    const double m = (double)n;
    const double mean = m * (m + 1) / 4;
    const double sd = sqrt(m * (m + 1) * (2 * m + 1) / 24);
    const double z = student_quantile(1 - alpha / 2, INFINITY);
    const double k = floor(mean - z * sd);
    *ret_k = k > 1 ? (size_t)k : 1;
    return 1 - alpha;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static int walsh_averages(const double *d, size_t n, double **ret_walsh)
{
    const size_t count = n * (n + 1) / 2;
    double *walsh = calloc(count, sizeof(*walsh));
    if (!walsh)
        return -ENOMEM;
    size_t out = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            walsh[out++] = d[i] / 2 + d[j] / 2; /* the sum could overflow */
    qsort(walsh, count, sizeof(*walsh), compare_doubles);
    *ret_walsh = walsh;
    return 0;
}

static int check_input(const double *d, size_t n, double confidence)
{
    if (n == 0 || !(confidence > 0 && confidence < 1))
        return -EINVAL;
    if (n > RANKTEST_MAX_N)
        return SONDE_E_LIMIT;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(d[i]))
            return -EINVAL;
    return 0;
}

int ranktest_paired(const double *differences, size_t n, double confidence,
                    struct ranktest *ret_result)
{
    int rc = check_input(differences, n, confidence);
    if (rc < 0)
        return rc;
    double *walsh;
    rc = walsh_averages(differences, n, &walsh);
    if (rc < 0)
        return rc;

    size_t k;
    const double alpha = 1 - confidence;
    const double reached = n <= RANKTEST_EXACT_N ? choose_exact(n, alpha, &k)
                                                 : choose_normal(n, alpha, &k);
    const size_t count = n * (n + 1) / 2;
    *ret_result = (struct ranktest){
        .estimate = (walsh[(count - 1) / 2] + walsh[count / 2]) / 2,
        .low = walsh[k - 1],
        .high = walsh[count - k],
        .confidence = reached,
    };
    free(walsh);
    return 0;
}
