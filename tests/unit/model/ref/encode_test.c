/* Encodings of graphs whose spectrum and walks are known by heart. */
#include "model/ref/encode.h"

#include <math.h>
#include <string.h>

#include <sonde/model.h>

#include "model/ref/blas.h"
#include "unit.h"

enum { RING = 12 };

/* A ring: every node has two neighbours. */
static void make_ring(struct graphs *g)
{
    assert_int_equal(graphs_alloc(g, 1, RING, 2 * RING, 1, 1), 0);
    g->first[1] = RING;
    for (uint32_t i = 0; i < RING; i++) {
        g->source[2 * i] = i;
        g->target[2 * i] = (i + 1) % RING;
        g->source[2 * i + 1] = (i + 1) % RING;
        g->target[2 * i + 1] = i;
    }
    assert_int_equal(graphs_index(g), 0);
}

static void walks_return_as_they_must_on_a_ring(void **state)
{
    (void)state;
    struct graphs g;
    float dense[RING * 4], sparse[RING * 4];
    make_ring(&g);
    assert_int_equal(encode_compute(&g, SONDE_RANDOM_WALK, 4, dense), 0);
    assert_int_equal(encode_compute(&g, SONDE_RANDOM_WALK_SPARSE, 4, sparse), 0);
    for (int i = 0; i < RING; i++) {
        /* Back after 2 steps: 2 of 4 walks; after 4: 6 of 16; never after odd ones. */
        const float known[4] = { 0, 0.5F, 0, 0.375F };
        for (int k = 0; k < 4; k++) {
            assert_near((double)dense[4 * i + k], (double)known[k], 1e-6);
            assert_near((double)sparse[4 * i + k], (double)known[k], 1e-6);
        }
    }
    graphs_release(&g);
}

/* y = D^-½ A D^-½ x on the ring. */
static double quotient(const float *vectors, size_t k, size_t column)
{
    double top = 0, bottom = 0;
    for (size_t i = 0; i < RING; i++) {
        const double x = (double)vectors[i * k + column];
        const double around = (double)vectors[(i + 1) % RING * k + column] +
                              (double)vectors[(i + RING - 1) % RING * k + column];
        top += x * (x - around / 2);
        bottom += x * x;
    }
    assert_near(bottom, 1, 1e-4);
    return top / bottom;
}

static void eigenvectors_of_a_ring_have_its_eigenvalues(void **state)
{
    (void)state;
    struct graphs g;
    float vectors[RING * 4];
    make_ring(&g);
    /* 1 − cos(2π j / n), each twice: j = 1, 1, 2, 2 */
    const double known[4] = { 1 - cos(2 * M_PI / RING), 1 - cos(2 * M_PI / RING),
                              1 - cos(4 * M_PI / RING), 1 - cos(4 * M_PI / RING) };
    if (blas_is_plain()) {
        graphs_release(&g);
        skip(); /* the small eigenproblem is LAPACK's */
    }
    const int kinds[] = { SONDE_LAPLACIAN, SONDE_LAPLACIAN_LANCZOS };
    for (int kind = 0; kind < 2; kind++) {
        assert_int_equal(encode_compute(&g, kinds[kind], 4, vectors), 0);
        for (size_t c = 0; c < 4; c++)
            assert_near(quotient(vectors, 4, c), known[c], 1e-4);
    }
    graphs_release(&g);
}

static void small_graphs_fill_what_they_can(void **state)
{
    (void)state;
    struct graphs g;
    assert_int_equal(graphs_synthetic(&g, 2, 3, 4, 2, 1, 9), 0);
    float out[6 * 8];
    const int kinds[] = { SONDE_RANDOM_WALK_SPARSE, SONDE_LAPLACIAN };
    for (int kind = 0; kind < (blas_is_plain() ? 1 : 2); kind++) {
        assert_int_equal(encode_compute(&g, kinds[kind], 8, out), 0);
        for (size_t i = 0; i < 6 * 8; i++)
            assert_true(isfinite(out[i]));
    }
    assert_int_equal(encode_graphs(&g, SONDE_RANDOM_WALK_SPARSE, 8), 0);
    assert_int_equal(g.features, 10);
    graphs_release(&g);
}

static void lists_hold_every_edge_once(void **state)
{
    (void)state;
    struct graphs g;
    assert_int_equal(graphs_synthetic(&g, 3, 20, 101, 4, 2, 42), 0);
    assert_int_equal(g.in_first[g.nodes], 303);
    assert_int_equal(g.out_first[g.nodes], 303);
    for (size_t e = 0; e < g.edges; e++) { /* no edge leaves its graph */
        assert_int_equal(g.source[e] / 20, e / 101);
        assert_int_equal(g.target[e] / 20, e / 101);
    }
    struct graphs again;
    assert_int_equal(graphs_synthetic(&again, 3, 20, 101, 4, 2, 42), 0);
    assert_memory_equal(g.x, again.x, g.nodes * g.features * sizeof *g.x);
    assert_memory_equal(g.source, again.source, g.edges * sizeof *g.source);
    g.target[5] = 60;
    assert_true(graphs_index(&g) < 0);
    graphs_release(&g);
    graphs_release(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_return_as_they_must_on_a_ring),
        cmocka_unit_test(eigenvectors_of_a_ring_have_its_eigenvalues),
        cmocka_unit_test(small_graphs_fill_what_they_can),
        cmocka_unit_test(lists_hold_every_edge_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
