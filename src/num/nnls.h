/* nnls.h: non-negative least squares: which mixture of known shapes explains what was
 * measured, when no part may be negative (times are not).
 */
#ifndef SONDE_NUM_NNLS_H
#define SONDE_NUM_NNLS_H

#include <stddef.h>

enum { NNLS_MAX = 8 };

/* x >= 0 that makes Σ weight · (Σ columns · x − y)² smallest; `a` is rows × columns, row by
 * row; `weights` NULL: all 1. Lawson and Hanson's method. −EINVAL without rows, with more
 * than NNLS_MAX columns, or when something is not finite. */
int nnls_solve(const double *a, const double *y, const double *weights, size_t rows,
               size_t columns, double *ret_x);

#endif
