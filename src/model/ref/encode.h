/* encode.h: positional encodings of graphs, computed once before training.
 *
 *   lap          the k eigenvectors of the normalised Laplacian with the smallest
 *                eigenvalues, the constant one left out, by a dense solver (LAPACK)
 *   lap_lanczos  the same by Lanczos' method with full reorthogonalisation
 *   rwse         the probability to be back at the start after 1 … k random steps, by
 *                powers of the dense matrix
 *   rwse_sparse  the same by walking along edges
 *
 * Signs of eigenvectors are fixed: the first element that is not nearly 0 is positive.
 * Graphs with fewer than k + 1 nodes get zeros in the columns they cannot fill.
 */
#ifndef SONDE_MODEL_REF_ENCODE_H
#define SONDE_MODEL_REF_ENCODE_H

#include "model/ref/graphs.h"

/* nodes × k floats into `ret`. −ENOMEM; SONDE_E_UNSUPPORTED without a dense solver. */
int encode_compute(const struct graphs *g, int encoding, size_t k, float *ret);

/* Computes and appends them to the features. */
int encode_graphs(struct graphs *g, int encoding, size_t k);

#endif
