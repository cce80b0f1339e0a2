/* nnls.c: see nnls.h. Columns are few: the normal equations, scaled, are good enough. */
#include "num/nnls.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

struct problem {
    size_t n;
    double ata[NNLS_MAX][NNLS_MAX], aty[NNLS_MAX], scale[NNLS_MAX];
};

static int prepare(struct problem *p, const double *a, const double *y,
                   const double *weights, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        const double w = weights ? weights[r] : 1;
        if (!isfinite(y[r]) || !isfinite(w))
            return -EINVAL;
        for (size_t i = 0; i < p->n; i++) {
            if (!isfinite(a[r * p->n + i]))
                return -EINVAL;
            p->aty[i] += w * a[r * p->n + i] * y[r];
            for (size_t j = 0; j < p->n; j++)
                p->ata[i][j] += w * a[r * p->n + i] * a[r * p->n + j];
        }
    }
    /* Columns of 1 and N³ differ by many orders: make every diagonal 1. */
    for (size_t i = 0; i < p->n; i++)
        p->scale[i] = p->ata[i][i] > 0 ? 1 / sqrt(p->ata[i][i]) : 0;
    for (size_t i = 0; i < p->n; i++) {
        p->aty[i] *= p->scale[i];
        for (size_t j = 0; j < p->n; j++)
            p->ata[i][j] *= p->scale[i] * p->scale[j];
    }
    return 0;
}

/* The least squares solution over the columns in `free`; zeros elsewhere. Gauss with
 * pivoting; a column that depends on the others stays 0. */
static void solve_free(const struct problem *p, const bool *free, double *x)
{
    double m[NNLS_MAX][NNLS_MAX + 1];
    size_t index[NNLS_MAX], k = 0;
    memset(x, 0, p->n * sizeof *x);
    for (size_t i = 0; i < p->n; i++)
        if (free[i])
            index[k++] = i;
    for (size_t i = 0; i < k; i++) {
        for (size_t j = 0; j < k; j++)
            m[i][j] = p->ata[index[i]][index[j]];
        m[i][k] = p->aty[index[i]];
    }
    for (size_t c = 0; c < k; c++) {
        size_t best = c;
        for (size_t r = c + 1; r < k; r++)
            best = fabs(m[r][c]) > fabs(m[best][c]) ? r : best;
        for (size_t j = 0; j <= k; j++) {
            const double swap = m[c][j];
            m[c][j] = m[best][j];
            m[best][j] = swap;
        }
        if (fabs(m[c][c]) < 1e-12)
            continue;
        for (size_t r = 0; r < k; r++) {
            const double factor = r == c ? 0 : m[r][c] / m[c][c];
            for (size_t j = c; factor != 0 && j <= k; j++)
                m[r][j] -= factor * m[c][j];
        }
    }
    for (size_t c = 0; c < k; c++)
        x[index[c]] = fabs(m[c][c]) < 1e-12 ? 0 : m[c][k] / m[c][c];
}

/* The bound column that would lower the error most; n when none would. */
static size_t most_wanted(const struct problem *p, const bool *free, const double *x)
{
    size_t best = p->n;
    double steepest = 1e-10;
    for (size_t i = 0; i < p->n; i++) {
        double slope = p->aty[i];
        for (size_t j = 0; j < p->n; j++)
            slope -= p->ata[i][j] * x[j];
        if (!free[i] && p->scale[i] > 0 && slope > steepest) {
            steepest = slope;
            best = i;
        }
    }
    return best;
}

/* Towards `wanted` as far as nothing turns negative; what reaches 0 is bound again.
 * False when `wanted` was reached. */
static bool step_back(const struct problem *p, bool *free, double *x,
                      const double *wanted)
{
    double part = 1;
    for (size_t i = 0; i < p->n; i++)
        if (free[i] && wanted[i] <= 0)
            part = fmin(part, x[i] / (x[i] - wanted[i]));
    bool bound = false;
    for (size_t i = 0; i < p->n; i++) {
        x[i] += part * (wanted[i] - x[i]);
        if (free[i] && part < 1 && x[i] <= 1e-14) {
            x[i] = 0;
            free[i] = false;
            bound = true;
        }
    }
    return part < 1 && bound;
}

int nnls_solve(const double *a, const double *y, const double *weights, size_t rows,
               size_t columns, double *ret_x)
{
    struct problem p = { .n = columns };
    bool free[NNLS_MAX] = { false };
    double x[NNLS_MAX] = { 0 }, wanted[NNLS_MAX];
    if (rows == 0 || columns == 0 || columns > NNLS_MAX ||
        prepare(&p, a, y, weights, rows) < 0)
        return -EINVAL;
    for (size_t round = 0; round < 3 * columns; round++) {
        const size_t next = most_wanted(&p, free, x);
        if (next == columns)
            break;
        free[next] = true;
        do
            solve_free(&p, free, wanted);
        while (step_back(&p, free, x, wanted));
    }
    for (size_t i = 0; i < columns; i++)
        ret_x[i] = x[i] > 0 ? x[i] * p.scale[i] : 0;
    return 0;
}
