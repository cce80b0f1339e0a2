/* matmul.h: C = A · B, or C += A · B, for matrices in any order.
 *
 * A transposed matrix is one whose strides are swapped, so that forward and both
 * halves of backward are the same call.
 */
#ifndef SONDE_DEMO_MATMUL_H
#define SONDE_DEMO_MATMUL_H

#include <stdbool.h>
#include <stddef.h>

struct matrix {
    const float *at;
    size_t row, column; /* distance in floats to the next row, next column */
};

/* m × n from m × k and k × n. C is row by row, `c_row` apart, and no part of A or B. */
void matmul(size_t m, size_t n, size_t k, struct matrix a, struct matrix b, float *c,
            size_t c_row, bool add);

#endif
