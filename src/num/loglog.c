/* loglog.c: see loglog.h. */
#include "num/loglog.h"

#include <errno.h>
#include <math.h>

#include "num/student.h"

size_t loglog_sizes(const double *x, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        size_t before = 0;
        while (before < i && x[before] != x[i])
            before++;
        count += before == i;
    }
    return count;
}

int loglog_fit(const double *x, const double *y, size_t n, struct exponent *ret)
{
    double mean_x = 0, mean_y = 0, sxx = 0, sxy = 0, residual = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] > 0 && y[i] > 0 && isfinite(x[i]) && isfinite(y[i])))
            return -EINVAL;
        mean_x += log(x[i]) / (double)n;
        mean_y += log(y[i]) / (double)n;
    }
    const size_t points = loglog_sizes(x, n);
    if (points < 2)
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        sxx += (log(x[i]) - mean_x) * (log(x[i]) - mean_x);
        sxy += (log(x[i]) - mean_x) * (log(y[i]) - mean_y);
    }
    const double slope = sxy / sxx;
    for (size_t i = 0; i < n; i++) {
        const double off = log(y[i]) - mean_y - slope * (log(x[i]) - mean_x);
        residual += off * off;
    }
    *ret = (struct exponent){
        .value = slope, .low = NAN, .high = NAN, .points = points
    };
    if (n < 3)
        return 0;
    /* Repeats at one size share its distance from the line: the degrees of freedom are
     * those of the sizes, unless there are only two of them. */
    const double df = points > 2 ? (double)points - 2 : (double)n - 2;
    const double half = student_quantile(0.975, df) *
                        sqrt(residual / ((double)n - 2) / sxx *
                             (points > 2 ? (double)n / (double)points : 1));
    ret->low = slope - half;
    ret->high = slope + half;
    return 0;
}
