/* html_test.c: the parts of the page's document: what is cut is counted, nothing else. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

#include "present/html/calltree.h"
#include "present/html/lanes.h"
#include "present/html/sites.h"
#include "present/html/stepwalk.h"
#include "present/html/windows.h"

/* Last: its JSON_STYLE_COMPACT is a macro, that of base/json.h an enum. */
#include <jansson.h>

static const struct calltree_head head = { "id", "title", "s", "note", 0 };

/* A tree as the app will read it. */
static json_t *written(struct calltree *tree)
{
    struct buf text = BUF_INIT;
    struct json_writer w;
    json_init_buf(&w, &text, (enum json_style)0);
    json_array_begin(&w);
    calltree_put(&w, tree, &head);
    json_array_end(&w);
    assert_int_equal(json_finish(&w), 0);
    json_t *root = json_loads(text.data, 0, NULL);
    assert_non_null(root);
    buf_release(&text);
    return root;
}

static double sum(const json_t *list)
{
    double total = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        total += json_number_value(json_array_get(list, i));
    return total;
}

static void the_same_path_is_the_same_node(void **state)
{
    (void)state;
    struct calltree t;
    calltree_init(&t);
    const uint32_t a = calltree_child(&t, 0, 7);
    const uint32_t b = calltree_child(&t, a, 7);
    assert_int_not_equal(a, b);
    assert_int_equal(calltree_child(&t, 0, 7), a);
    assert_int_equal(calltree_child(&t, a, 7), b);
    calltree_add(&t, b, 5);
    calltree_add(&t, b, NAN);
    calltree_add(&t, b, -3);
    json_t *root = written(&t);
    const json_t *tree = json_array_get(root, 0);
    assert_int_equal(json_array_size(json_object_get(tree, "self")), 3);
    assert_true(fabs(sum(json_object_get(tree, "self")) - 5) < 1e-9);
    json_decref(root);
    calltree_release(&t);
}

static void cutting_a_tree_keeps_its_weight_and_its_heaviest_branches(void **state)
{
    (void)state;
    struct calltree t;
    double all = 0;
    calltree_init(&t);
    for (uint32_t i = 0; i < 60000; i++) {
        const uint32_t outer = calltree_child(&t, 0, i % 300);
        const uint32_t inner = calltree_child(&t, outer, i);
        const double weight = i == 4321 ? 1e9 : 100 + i % 50;
        calltree_add(&t, inner, weight);
        all += weight;
    }
    json_t *root = written(&t);
    const json_t *tree = json_array_get(root, 0);
    const json_t *self = json_object_get(tree, "self");
    const json_t *parent = json_object_get(tree, "parent");
    const json_t *site = json_object_get(tree, "site");
    assert_true(json_array_size(self) < 20000);
    assert_true(fabs(sum(self) - all) < 1e-6 * all);
    bool heaviest = false;
    for (size_t i = 1; i < json_array_size(self); i++) {
        assert_true(json_integer_value(json_array_get(parent, i)) < (json_int_t)i);
        heaviest |= json_integer_value(json_array_get(site, i)) == 4321;
    }
    assert_true(heaviest);
    json_decref(root);
    calltree_release(&t);
}

static void an_empty_tree_is_not_written(void **state)
{
    (void)state;
    struct calltree t;
    calltree_init(&t);
    json_t *root = written(&t);
    assert_int_equal(json_array_size(root), 0);
    json_decref(root);
    (void)calltree_child(&t, 0, 1); /* a node without weight */
    root = written(&t);
    assert_int_equal(json_array_size(root), 0);
    json_decref(root);
    calltree_release(&t);
}

static double busy(const struct lane *lane, int phase)
{
    double ns = 0;
    for (unsigned b = 0; lane->busy[phase] && b < lane->buckets; b++)
        ns += (double)lane->busy[phase][b];
    return ns;
}

static void every_moment_belongs_to_the_innermost_phase(void **state)
{
    (void)state;
    struct lane lane = { .buckets = BUCKETS };
    struct lanes l = { .lanes = &lane, .count = 1, .start_ns = 1000, .end_ns = 101000 };
    /* forward 0 … 50,000 around a zone without a phase, 10,000 … 40,000, around
     * transfer, 20,000 … 30,000; then a zone without a phase alone. */
    assert_int_equal(lanes_add_zone(&l, &lane, 2, SONDE_TRANSFER, 21000, 31000), 0);
    assert_int_equal(lanes_add_zone(&l, &lane, 1, SONDE_NO_PHASE, 11000, 41000), 0);
    assert_int_equal(lanes_add_zone(&l, &lane, 0, SONDE_FORWARD, 1000, 51000), 0);
    assert_int_equal(lanes_add_zone(&l, &lane, 0, SONDE_NO_PHASE, 61000, 71000), 0);
    assert_true(fabs(busy(&lane, SONDE_TRANSFER) - 10000) < 1);
    assert_true(fabs(busy(&lane, SONDE_FORWARD) - 40000) < 1);
    assert_true(fabs(busy(&lane, SONDE_OTHER) - 10000) < 1);
    assert_int_equal(lane.depth, 3);
    for (int p = 0; p < SONDE_PHASE_COUNT; p++)
        free(lane.busy[p]);
    for (int d = 0; d < LANE_DEPTHS; d++)
        free(l.claimed[d]);
}

static void steps_keep_their_longest_however_many_there_are(void **state)
{
    (void)state;
    struct stepwalk *walk = malloc(sizeof(*walk));
    assert_non_null(walk);
    stepwalk_init(walk, 0, 100000 * 10, 10);
    int64_t at = 0;
    for (int i = 0; i < 100000; i++) {
        const int64_t length = i == 77777 ? 5000 : 10;
        stepwalk_add(walk, at, at + length);
        at += length;
    }
    assert_int_equal(walk->steps, 100000);
    assert_true(walk->count <= STEPWALK_POINTS && walk->count > STEPWALK_POINTS / 4);
    assert_int_equal(walk->slow[0].number, 77778);
    assert_int_equal(walk->slow[0].end_ns - walk->slow[0].begin_ns, 5000);
    double longest = 0;
    for (size_t i = 0; i < walk->count; i++)
        longest = fmax(longest, walk->points[i].max_ns);
    assert_true(longest == 5000);
    for (int i = 0; i < TYPICAL_STEPS; i++)
        assert_int_equal(walk->typical[i].end_ns - walk->typical[i].begin_ns, 10);
    free(walk);
}

static void a_full_window_keeps_the_longest_zones(void **state)
{
    (void)state;
    struct window window;
    assert_int_equal(window_init(&window, "whole", 0, 1000000, 100), 0);
    for (int i = 0; i < 1000; i++) {
        const struct window_zone z = { .begin_ns = i * 1000,
                                       .end_ns = i * 1000 + (i % 10 == 3 ? 900 : 5) };
        window_add(&window, &z);
    }
    const struct window_zone outside = { .begin_ns = 2000000, .end_ns = 3000000 };
    window_add(&window, &outside);

    struct buf text = BUF_INIT;
    struct json_writer w;
    json_init_buf(&w, &text, (enum json_style)0);
    window_put(&w, &window, 0);
    assert_int_equal(json_finish(&w), 0);
    json_t *root = json_loads(text.data, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(root, "left_out")), 900);
    const json_t *lengths = json_object_get(root, "ns");
    assert_int_equal(json_array_size(lengths), 100);
    assert_true(sum(lengths) == 100 * 900);
    json_decref(root);
    buf_release(&text);
    window_release(&window);
}

static void names_are_kept_once_and_cut(void **state)
{
    (void)state;
    struct site_names names;
    site_names_init(&names);
    const struct site_name a = { "step", "train.py", 3, SONDE_FORWARD };
    const struct site_name b = { "step", "train.py", 4, SONDE_FORWARD };
    assert_int_equal(site_number(&names, &a), 0);
    assert_int_equal(site_number(&names, &b), 1);
    assert_int_equal(site_number(&names, &a), 0);
    char *name = calloc(1, 100001);
    memset(name, 'x', 100000);
    const struct site_name c = { name, "", 0, 0 };
    (void)site_number(&names, &c);
    struct buf text = BUF_INIT;
    struct json_writer w;
    json_init_buf(&w, &text, (enum json_style)0);
    json_object_begin(&w);
    site_names_put(&w, &names);
    json_object_end(&w);
    assert_int_equal(json_finish(&w), 0);
    assert_true(text.len < 1000);
    assert_non_null(strstr(text.data, "[\"step\",\"forward\",\"train.py\",3]"));
    buf_release(&text);
    site_names_release(&names);
    free(name);
}

static void a_writer_for_pages_ends_no_element(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    struct json_writer w;
    json_init_buf(&w, &text, (enum json_style)0);
    w.html = true;
    json_object_begin(&w);
    json_key(&w, "</script><!--");
    json_put_string(&w, "a<b>c&d");
    json_object_end(&w);
    assert_int_equal(json_finish(&w), 0);
    assert_null(strpbrk(text.data, "<>&"));
    json_t *root = json_loads(text.data, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(root, "</script><!--")),
                        "a<b>c&d");
    json_decref(root);
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_path_is_the_same_node),
        cmocka_unit_test(cutting_a_tree_keeps_its_weight_and_its_heaviest_branches),
        cmocka_unit_test(an_empty_tree_is_not_written),
        cmocka_unit_test(every_moment_belongs_to_the_innermost_phase),
        cmocka_unit_test(steps_keep_their_longest_however_many_there_are),
        cmocka_unit_test(a_full_window_keeps_the_longest_zones),
        cmocka_unit_test(names_are_kept_once_and_cut),
        cmocka_unit_test(a_writer_for_pages_ends_no_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
