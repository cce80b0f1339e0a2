/* encoding.c: positional encodings of graphs: work once per graph, and storage.
 *
 * `rows` nodes in all, in `sequences` graphs of equal size; `out` dimensions k.
 *
 *   laplacian           all eigenvectors of a dense symmetric matrix: 9 N³ FLOPs
 *                       (Golub & Van Loan, 4th ed., §8.3: tridiagonal form and QR with
 *                       vectors), whatever k is
 *   laplacian_lanczos   m steps, m = 2k + 20 but at most N: a sparse product and full
 *                       reorthogonalisation each; then m² · k for the k vectors
 *   random_walk         the diagonals of P, P², … Pᵏ: k − 1 dense products
 *   random_walk_sparse  the same with P sparse on one side: E · N each
 */
#include <errno.h>

#include "model/cost.h"

static double lanczos_macs(double nodes, double edges, double k)
{
    double steps = 2 * k + 20;
    if (steps > nodes)
        steps = nodes;
    return steps * (edges + nodes)       /* sparse matrix times vector */
           + steps * (steps + 1) * nodes /* against all vectors before it */
           + 4.5 * steps * steps * steps /* the small eigenproblem */
           + steps * nodes * k;          /* back to vectors of the graph */
}

static double macs_of(int encoding, double nodes, double edges, double k)
{
    switch (encoding) {
    case SONDE_LAPLACIAN:
        return 4.5 * nodes * nodes * nodes;
    case SONDE_LAPLACIAN_LANCZOS:
        return lanczos_macs(nodes, edges, k);
    case SONDE_RANDOM_WALK:
        return (k - 1) * nodes * nodes * nodes;
    case SONDE_RANDOM_WALK_SPARSE:
        return (k - 1) * edges * nodes;
    default:
        return 0;
    }
}

/* The matrices that an encoding works on, read or written once each time. */
static double elements_of(int encoding, double nodes, double edges, double k)
{
    switch (encoding) {
    case SONDE_LAPLACIAN:
        return 2 * nodes * nodes;
    case SONDE_LAPLACIAN_LANCZOS:
        return (2 * k + 20) * (2 * edges + nodes * (2 * k + 20));
    case SONDE_RANDOM_WALK:
        return (k - 1) * 3 * nodes * nodes;
    case SONDE_RANDOM_WALK_SPARSE:
        return (k - 1) * (2 * edges + 2 * nodes * nodes);
    default:
        return 0;
    }
}

void encoding_cost(struct costing *c)
{
    const struct sonde_layer *l = c->layer;
    const double graphs = l->sequences ? (double)l->sequences : 1;
    const double nodes = (double)l->rows / graphs, edges = (double)l->edges / graphs;
    const double k = (double)l->out;
    c->cost.forward.macs += graphs * macs_of(l->encoding, nodes, edges, k);
    cost_move(
        c, graphs * elements_of(l->encoding, nodes, edges, k) + (double)l->rows * k, 0);
}

static double index_bytes(uint64_t buckets)
{
    return buckets <= 1 << 8 ? 1 : buckets <= 1 << 16 ? 2 : 4;
}

int sonde_encoding_storage(uint64_t nodes, uint64_t dimensions, uint64_t buckets,
                           double sparse_ratio,
                           struct sonde_encoding_storage *ret_storage)
{
    const double pairs = (double)nodes * (double)nodes, size = sizeof(float);
    const double ratio = sparse_ratio > 0 ? sparse_ratio : 1;
    const double indices = 2 * sizeof(int32_t);
    if (nodes == 0 || !(sparse_ratio >= 0 && sparse_ratio <= 1))
        return -EINVAL;
    *ret_storage = (struct sonde_encoding_storage){
        .size = ret_storage->size,
        .node = (double)nodes * (double)dimensions * size,
        .relative_dense = pairs * (double)buckets * size,
        .relative_sparse = ratio * pairs * ((double)buckets * size + indices),
        .index_dense = buckets ? pairs * index_bytes(buckets) : 0,
        .index_sparse = buckets ? ratio * pairs * (index_bytes(buckets) + indices) : 0,
    };
    if (buckets == 0)
        ret_storage->relative_sparse = 0;
    return 0;
}
