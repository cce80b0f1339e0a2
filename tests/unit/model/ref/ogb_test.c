/* Folders of CSV files: what is read, and what is refused with a reason. */
#include "model/ref/ogb.h"

#include <string.h>

#include "base/error.h"
#include "model/ref/dataset.h"
#include "unit.h"

static struct ogb_text text(const char *data)
{
    return (struct ogb_text){ data, data ? strlen(data) : 0 };
}

static int parse(const char *nodes, const char *counts, const char *edges,
                 const char *features, const char *labels, size_t limit,
                 struct graphs *g, char *error)
{
    const struct ogb_text texts[OGB_FILES] = { text(nodes), text(counts), text(edges),
                                               text(features), text(labels) };
    return ogb_parse(texts, limit, g, error);
}

static void two_graphs_are_laid_end_to_end(void **state)
{
    (void)state;
    struct graphs g;
    char error[OGB_ERROR_LEN];
    assert_int_equal(parse("3\n2\n", "2\n1\n", "0,1\n1,2\n0,1\n",
                           "1,2\n3,4\n5,6\n7,8\n9,1e1\n", "1,0\n0,nan\n", 0, &g, error),
                     0);
    assert_int_equal(g.count, 2);
    assert_int_equal(g.nodes, 5);
    assert_int_equal(g.edges, 6); /* each with its reverse */
    assert_int_equal(g.features, 2);
    assert_int_equal(g.outputs, 2);
    assert_int_equal(g.source[4], 3); /* the second graph's first node */
    assert_int_equal(g.target[4], 4);
    assert_near((double)g.x[9], 10, 0);
    assert_near((double)g.labels[3], 0, 0); /* a missing label */
    graphs_release(&g);
}

static void edges_that_go_both_ways_stay_as_they_are(void **state)
{
    (void)state;
    struct graphs g;
    char error[OGB_ERROR_LEN];
    assert_int_equal(parse("2\n", "2\n", "0,1\n1,0\n", NULL, NULL, 0, &g, error), 0);
    assert_int_equal(g.edges, 2);
    assert_int_equal(g.features, 1); /* no features: one column of 1 */
    assert_near((double)g.x[1], 1, 0);
    graphs_release(&g);
}

static void only_as_many_graphs_as_wanted_are_read(void **state)
{
    (void)state;
    struct graphs g;
    char error[OGB_ERROR_LEN];
    assert_int_equal(
        parse("2\n3\n9\n", "1\n1\n8\n", "0,1\n0,2\n", NULL, NULL, 2, &g, error),
        0); /* the third graph has no edges here, and nobody asked */
    assert_int_equal(g.count, 2);
    assert_int_equal(g.nodes, 5);
    graphs_release(&g);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    const struct {
        const char *nodes, *counts, *edges, *features, *error;
    } wrong[] = {
        { "2\n", "1\n", "0,2\n", NULL, "edge.csv, line 1: node 2 in a graph of 2" },
        { "2\n", "2\n", "0,1\n", NULL, "fewer edges" },
        { "2\n", "1\n", "0\n", NULL, "not an edge" },
        { "2\n", "1\n", "0,1,2\n", NULL, "not an edge" },
        { "-2\n", "1\n", "0,1\n", NULL, "num-node-list.csv, line 1: not a count" },
        { "99999999999\n", "1\n", "0,1\n", NULL, "not a count" },
        { "2\n2\n", "1\n", "0,1\n", NULL, "2 graphs expected" },
        { "", "1\n", "0,1\n", NULL, "holds no graph" },
        { "2\n", "1\n", NULL, NULL, "edge.csv(.gz) is missing" },
        { "2\n", "1\n", "0,1\n", "1,2\n3\n", "value 2 is no number" },
        { "2\n", "1\n", "0,1\n", "1\n2,3\n", "more than 1 values" },
        { "2\n", "1\n", "0,1\n", "1\n", "fewer nodes" },
        { "2\n", "1\n", "0,1\n", "a\nb\n", "is no number" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct graphs g;
        char error[OGB_ERROR_LEN];
        assert_int_equal(parse(wrong[i].nodes, wrong[i].counts, wrong[i].edges,
                               wrong[i].features, NULL, 0, &g, error),
                         SONDE_E_FORMAT);
        if (!strstr(error, wrong[i].error))
            fail_msg("'%s' does not say '%s'", error, wrong[i].error);
    }
}

static void the_sample_has_the_shape_of_peptides(void **state)
{
    (void)state;
    struct graphs g;
    enum { COUNT = 400 };
    assert_int_equal(dataset_sample(COUNT, 42, &g), 0);
    /* Long Range Graph Benchmark: 150.94 nodes and 307.30 edges on average. */
    assert_near((double)g.nodes / COUNT, 150.94, 10);
    assert_near((double)g.edges / (double)g.nodes, 307.30 / 150.94, 0.06);
    assert_int_equal(g.features, 9);
    assert_int_equal(g.outputs, 10);
    graphs_release(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_graphs_are_laid_end_to_end),
        cmocka_unit_test(edges_that_go_both_ways_stay_as_they_are),
        cmocka_unit_test(only_as_many_graphs_as_wanted_are_read),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(the_sample_has_the_shape_of_peptides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
