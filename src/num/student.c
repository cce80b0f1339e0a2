/* student.c: Student's t distribution.
 *
 * The upper tail is Q(t) = I_x(df/2, 1/2) / 2 with x = df / (df + t^2), where I is
 * the regularised incomplete beta function, computed by its continued fraction.
 * The quantile is found by bisection of the tail: slower than Newton, a few
 * microseconds, and it cannot go astray.
 *
 * Past LARGE_DF the fraction converges slowly and the normal distribution with its
 * first correction is exact to rounding: the next term is of the order 1 / df^2.
 */
#include "num/student.h"

#include <math.h>

static const double large_df = 1e7;

/* ln Gamma(a + 1/2) - ln Gamma(a). The difference of two large lgammas loses the
 * digits that the asymptotic series keeps; from a = 50 on its error is below
 * 1e-15. */
static double log_gamma_ratio(double a)
{
    int sign;
    if (a < 50)
        return lgamma_r(a + 0.5, &sign) - lgamma_r(a, &sign);
    const double r = 1 / a;
    return 0.5 * log(a) - r / 8 + r * r * r / 192 - r * r * r * r * r / 640;
}

/* Keeps Lentz's quotients away from zero. */
static double nonzero(double x)
{
    return fabs(x) < 1e-300 ? 1e-300 : x;
}

/* The continued fraction of the incomplete beta function by Lentz's method; it
 * converges in about sqrt(max(a, b)) steps for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double x, double a, double b)
{
    double c = 1;
    double d = 1 / nonzero(1 - (a + b) * x / (a + 1));
    double h = d;

    for (int m = 1; m < 100000; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / nonzero(1 + even * d);
        c = nonzero(1 + even / c);
        h *= c * d;

        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / nonzero(1 + odd * d);
        c = nonzero(1 + odd / c);
        h *= c * d;
        if (fabs(c * d - 1) < 1e-16)
            break;
    }
    return h;
}

static double normal_tail(double z)
{
    return 0.5 * erfc(z / sqrt(2));
}

/* P(T > t) for t >= 0. */
static double upper_tail(double t, double df)
{
    if (df > large_df) /* t = z + (z^3 + z) / (4 df), solved for z */
        return normal_tail(t - (t * t * t + t) / (4 * df));

    const double a = df / 2;
    const double b = 0.5;
    const double t2 = t * t;
    const double x = df / (df + t2);
    const double y = t2 / (df + t2); /* 1 - x without cancellation */
    if (y == 0)
        return 0.5;
    /* x^a y^b / Beta(a, b), with Gamma(1/2) = sqrt(pi) */
    const double front = exp(log_gamma_ratio(a) - a * log1p(t2 / df) + b * log(y)) /
                         sqrt(M_PI);
    if (x < (a + 1) / (a + b + 2))
        return 0.5 * front * beta_fraction(x, a, b) / a;
    return 0.5 * (1 - front * beta_fraction(y, b, a) / b);
}

double student_cdf(double t, double df)
{
    if (isnan(t) || !(df > 0))
        return NAN;
    return t >= 0 ? 1 - upper_tail(t, df) : upper_tail(-t, df);
}

/* The t >= 0 whose upper tail is q. */
static double tail_quantile(double q, double df)
{
    double low = 0;
    double high = 1;
    while (upper_tail(high, df) > q && high < 1e300) {
        low = high;
        high *= 2;
    }
    while (high - low > 4e-16 * high) {
        const double mid = low + (high - low) / 2;
        if (mid <= low || mid >= high)
            break;
        if (upper_tail(mid, df) > q)
            low = mid;
        else
            high = mid;
    }
    return low + (high - low) / 2;
}

double student_quantile(double p, double df)
{
    if (!(p > 0 && p < 1) || !(df > 0))
        return NAN;
    if (p == 0.5)
        return 0;
    return p > 0.5 ? tail_quantile(1 - p, df) : -tail_quantile(p, df);
}
