/* student.h: Student's t distribution, for confidence intervals of means.
 *
 * df is the degrees of freedom, any positive number (Welch's need not be whole).
 * Quantiles are right to 1e-9 relative or better for df from 1 to infinity.
 */
#ifndef SONDE_NUM_STUDENT_H
#define SONDE_NUM_STUDENT_H

/* P(T <= t). */
double student_cdf(double t, double df);

/* The t with P(T <= t) = p, 0 < p < 1. NaN outside, or for df <= 0. */
double student_quantile(double p, double df);

#endif
