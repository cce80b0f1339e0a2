/* blas.h: matrix products, by OpenBLAS where the machine has it.
 *
 * The library is loaded when the first product is asked for, never linked: it starts
 * threads as it is loaded, which no `sonde run` should pay for. Without it a plain loop
 * does the same, some ten times slower; blas_name() tells which one works.
 */
#ifndef SONDE_MODEL_REF_BLAS_H
#define SONDE_MODEL_REF_BLAS_H

#include <stdbool.h>
#include <stddef.h>

/* A row-major matrix; `t` uses it transposed. `stride` is from row to row as stored. */
struct mat {
    const float *data;
    size_t stride;
    bool t;
};

/* C (m × n, rows `stride` apart) = alpha · A (m × k) · B (k × n) + beta · C. */
void blas_multiply(size_t m, size_t n, size_t k, float alpha, struct mat a,
                   struct mat b, float beta, float *c, size_t stride);

/* Eigenvectors of a symmetric n × n matrix, which they replace, row i belonging to
 * ret_values[i], ascending. 0, −ENOMEM, SONDE_E_UNSUPPORTED without LAPACK. */
int blas_eigen(float *matrix, size_t n, float *ret_values);

/* "OpenBLAS 0.3.21 …" or "plain C". */
const char *blas_name(void);
bool blas_is_plain(void);

/* 0: as many as the library likes. Returns how many there are now. */
int blas_threads(int threads);

#endif
