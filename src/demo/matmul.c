/* matmul.c: see matmul.h.
 *
 * The usual scheme of BLAS libraries, in little: blocks of A and B that fit the first
 * and second cache are copied ("packed") into strips in the order in which the inner
 * kernel reads them, and the kernel keeps a TILE_M × TILE_N tile of C in registers.
 * Packing pads with zeros, so the kernel knows only full tiles.
 */
#include "demo/matmul.h"

#include <string.h>

enum {
    LANES = 4, /* floats in a vector of every x86-64 and aarch64 machine */
    TILE_M = 4,
    TILE_N = 2 * LANES,
    BLOCK_M = 64,
    BLOCK_N = 64,
    BLOCK_K = 256,
};

typedef float vec __attribute__((vector_size(LANES * sizeof(float))));

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Strips of `tile` rows, k by k; a row beyond `rows` is zero. */
static void pack(struct matrix from, size_t rows, size_t depth, size_t tile,
                 float *strips)
{
    for (size_t start = 0; start < rows; start += tile) {
        for (size_t p = 0; p < depth; p++) {
            for (size_t i = 0; i < tile; i++) {
                const size_t r = start + i;
                *strips++ = r < rows ? from.at[r * from.row + p * from.column] : 0;
            }
        }
    }
}

/* tile = A strip · B strip. */
static void tile_multiply(const float *a, const float *b, size_t depth,
                          float tile[TILE_M][TILE_N])
{
    vec sum[TILE_M][2] = { 0 };
    for (size_t p = 0; p < depth; p++) {
        vec b0, b1;
        memcpy(&b0, b, sizeof b0);
        memcpy(&b1, b + LANES, sizeof b1);
        for (int i = 0; i < TILE_M; i++) {
            sum[i][0] += a[i] * b0;
            sum[i][1] += a[i] * b1;
        }
        a += TILE_M;
        b += TILE_N;
    }
    memcpy(tile, sum, sizeof sum);
}

static void tile_add(float tile[TILE_M][TILE_N], size_t rows, size_t columns, float *c,
                     size_t c_row)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            c[i * c_row + j] += tile[i][j];
}

static void block_multiply(const float *a, const float *b, size_t m, size_t n,
                           size_t depth, float *c, size_t c_row)
{
    for (size_t j = 0; j < n; j += TILE_N) {
        for (size_t i = 0; i < m; i += TILE_M) {
            float tile[TILE_M][TILE_N];
            tile_multiply(a + i * depth, b + j * depth, depth, tile);
            tile_add(tile, smaller(TILE_M, m - i), smaller(TILE_N, n - j),
                     c + i * c_row + j, c_row);
        }
    }
}

void matmul(size_t m, size_t n, size_t k, struct matrix a, struct matrix b, float *c,
            size_t c_row, bool add)
{
    float packed_a[BLOCK_M * BLOCK_K], packed_b[BLOCK_N * BLOCK_K];
    for (size_t i = 0; i < m && !add; i++)
        memset(c + i * c_row, 0, n * sizeof *c);

    for (size_t j = 0; j < n; j += BLOCK_N) {
        const size_t columns = smaller(BLOCK_N, n - j);
        for (size_t p = 0; p < k; p += BLOCK_K) {
            const size_t depth = smaller(BLOCK_K, k - p);
            const struct matrix b_block = { b.at + p * b.row + j * b.column, b.column,
                                            b.row };
            pack(b_block, columns, depth, TILE_N, packed_b);
            for (size_t i = 0; i < m; i += BLOCK_M) {
                const size_t rows = smaller(BLOCK_M, m - i);
                const struct matrix a_block = { a.at + i * a.row + p * a.column, a.row,
                                                a.column };
                pack(a_block, rows, depth, TILE_M, packed_a);
                block_multiply(packed_a, packed_b, rows, columns, depth,
                               c + i * c_row + j, c_row);
            }
        }
    }
}
