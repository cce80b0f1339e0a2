/* cells_test.c: statistics go into the file and come back, whole or not at all. */
#include "trace/cells.h"

#include <errno.h>

#include "base/error.h"
#include "handmade.h"
#include "num/prng.h"

struct bench {
    struct handmade t;
    struct fold *fold;
    struct prng random;
    uint64_t now;
};

static int make(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    *state = b;
    handmade_init(&b->t, 64);
    prng_init(&b->random, 11);
    b->now = 1000;
    return fold_new(&b->fold);
}

static int clear(void **state)
{
    struct bench *b = *state;
    fold_free(b->fold);
    handmade_release(&b->t);
    free(b);
    return 0;
}

/* More events of every kind, on a few lanes; zones stay open in between. */
static void fold_more(struct bench *b, unsigned events)
{
    struct words w = { 0 };
    for (unsigned i = 0; i < events; i++) {
        const unsigned site = SITE(prng_below(&b->random, 8));
        b->now += prng_below(&b->random, 1ULL << (1 + i % 30));
        switch (prng_below(&b->random, 8)) {
        case 0:
            words_step(&w, 8, b->now);
            break;
        case 1:
            words_value(&w, site, VALUE_ZONE, (double)i, b->now);
            break;
        case 2:
            words_value(&w, site, VALUE_COUNTER, -(double)i, b->now);
            break;
        case 3:
            words_op(&w, i, i, i, i, b->now);
            break;
        case 4:
            words_span(&w, site, SPAN_END, 1, 5, 9, b->now);
            break;
        case 5:
            words_end(&w, site, b->now);
            break;
        default:
            words_begin(&w, site, b->now);
            break;
        }
        if (prng_below(&b->random, 20) == 0) {
            fold_words(b->fold, (unsigned)prng_below(&b->random, 40), w.data, w.count,
                       b->now);
            w.count = 0;
        }
    }
    words_release(&w);
}

static const uint8_t *get_block(void *arg, uint32_t block)
{
    return tracefile_block(arg, block);
}

/* What the file says as of its commit. Counts cells that could not be right. */
static struct fold *load(struct bench *b, unsigned *ret_bad)
{
    struct fold *f;
    const struct blockview view = { get_block, &b->t.file };
    assert_int_equal(fold_new(&f), 0);
    const unsigned bad = cells_load(f, tracefile_head(&b->t.file), &view,
                                    tracefile_live(&b->t.file)->commit);
    if (ret_bad)
        *ret_bad = bad;
    else
        assert_int_equal(bad, 0);
    return f;
}

static void the_file_says(struct bench *b, const struct fold *expected)
{
    struct fold *f = load(b, NULL);
    assert_same_fold(f, expected);
    fold_free(f);
}

static struct fold *copy_of(const struct fold *f)
{
    struct fold *copy;
    assert_int_equal(fold_new(&copy), 0);
    memcpy(copy, f, sizeof *copy);
    return copy;
}

/* The state of the file when a publisher is killed just before its last store. */
static void undo_commit(struct bench *b)
{
    tracefile_live(&b->t.file)->commit--;
}

/* ---- There and back --------------------------------------------------------------- */

static void what_is_published_is_what_is_loaded(void **state)
{
    struct bench *b = *state;
    for (unsigned round = 1; round <= 8; round++) {
        fold_more(b, 400);
        assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);
        assert_int_equal(tracefile_live(&b->t.file)->commit, round);
        the_file_says(b, b->fold);
    }
    assert_true(b->fold->node_count > FIRST_NODE + 100);
    assert_true(b->fold->value_count > 10);
}

static void a_publish_writes_only_what_changed(void **state)
{
    struct bench *b = *state;
    fold_more(b, 400);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);
    struct words w = { 0 };
    words_zone(&w, SITE(100), b->now, b->now + 5);
    fold_words(b->fold, 3, w.data, w.count, b->now);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);
    unsigned written = 0;
    for (unsigned i = 0; i < b->fold->node_count; i++) {
        const struct node_cell *cell = tracefile_node(&b->t.file, i);
        written += cell && (cell->seq[0] == 2 || cell->seq[1] == 2);
    }
    assert_true(written >= 1 && written <= 1 + MAX_DEPTH);
    the_file_says(b, b->fold);
    words_release(&w);
}

static void a_reader_at_work_sees_the_old_state_until_the_commit(void **state)
{
    struct bench *b = *state;
    fold_more(b, 400);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);
    struct fold *before = copy_of(b->fold);
    fold_more(b, 400);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);
    undo_commit(b);
    the_file_says(b, before);
    fold_free(before);
}

/* ---- Killed in between ------------------------------------------------------------ */

/* A new folder loads, counts on from there and publishes. */
static void go_on_from_the_file(struct bench *b)
{
    cells_repair(&b->t.file);
    fold_free(b->fold);
    b->fold = load(b, NULL);
    fold_more(b, 300);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 2), 0);
    the_file_says(b, b->fold);
}

static void copies_that_were_never_committed_are_ignored_and_repaired(void **state)
{
    struct bench *b = *state;
    fold_more(b, 400);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);
    for (unsigned round = 0; round < 6; round++) {
        struct fold *before = load(b, NULL);
        fold_more(b, 300);
        assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);
        undo_commit(b);
        the_file_says(b, before);
        cells_repair(&b->t.file);
        the_file_says(b, before);
        fold_free(before);
        go_on_from_the_file(b);
    }
}

static void the_very_first_publish_may_be_lost(void **state)
{
    struct bench *b = *state;
    struct fold *nothing;
    assert_int_equal(fold_new(&nothing), 0);
    fold_more(b, 300);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);
    undo_commit(b);
    the_file_says(b, nothing);
    fold_free(nothing);
    go_on_from_the_file(b);
}

/* The token must change before the first copy does: whoever committed last and still
 * has its cache learns from it that a stranger may have left copies. */
static void a_publisher_makes_itself_known_before_it_writes(void **state)
{
    struct bench *b = *state;
    struct trace_live *live = tracefile_live(&b->t.file);
    fold_more(b, 300);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);
    assert_int_equal(live->fold_token, 1);
    /* A publish that fails for want of space has written nothing, and is known. */
    assert_true(control_take(b->t.control, 64 - b->t.control->used_blocks));
    struct words w = { 0 };
    for (unsigned i = 0; i < 500; i++)
        words_zone(&w, SITE(200 + i), b->now + i, b->now + i);
    fold_words(b->fold, 0, w.data, w.count, b->now);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 7), -EDQUOT);
    assert_int_equal(live->fold_token, 7);
    words_release(&w);
}

static void a_publish_without_space_changes_nothing(void **state)
{
    struct bench *b = *state;
    fold_more(b, 300);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);
    struct fold *before = copy_of(b->fold);
    assert_true(control_take(b->t.control, 64 - b->t.control->used_blocks));
    struct words w = { 0 };
    for (unsigned i = 0; i < 1500; i++) /* needs more blocks of nodes and chunks */
        words_zone(&w, SITE(200 + i), b->now + i, b->now + i);
    fold_words(b->fold, 0, w.data, w.count, b->now);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 1), -EDQUOT);
    assert_int_equal(tracefile_live(&b->t.file)->commit, 1);
    the_file_says(b, before);
    /* With space again, a fresh start succeeds. */
    control_give(b->t.control, 40);
    fold_free(before);
    go_on_from_the_file(b);
    words_release(&w);
}

/* ---- Damage ----------------------------------------------------------------------- */

static void cells_that_cannot_be_right_are_left_out(void **state)
{
    struct bench *b = *state;
    unsigned bad;
    fold_more(b, 600);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);

    struct node_cell *node = tracefile_node(&b->t.file, FIRST_NODE + 3);
    const uint16_t parent = node->parent;
    node->parent = FIRST_NODE + 3; /* its own parent */
    struct fold *f = load(b, &bad);
    assert_true(bad >= 1);
    assert_false(f->nodes[FIRST_NODE + 3].used);
    fold_free(f);
    node->parent = parent;

    struct chunk_cell *chunk = tracefile_chunk(&b->t.file, 0);
    chunk->owner ^= 0xff00;
    f = load(b, &bad);
    assert_int_equal(bad, 1);
    assert_int_equal(f->nodes[FIRST_NODE].stats.count,
                     b->fold->nodes[FIRST_NODE].stats.count);
    fold_free(f);
    chunk->owner ^= 0xff00;

    struct lane_cell *lane = NULL;
    for (unsigned i = 0; i < 40; i++)
        if (b->fold->lanes[i].used)
            lane = tracefile_lane(&b->t.file, i);
    assert_non_null(lane);
    lane->carry[0].depth = MAX_DEPTH + 1;
    lane->carry[1].depth = MAX_DEPTH + 1;
    f = load(b, &bad);
    assert_int_equal(bad, 1);
    fold_free(f);
}

/* Reserved numbers and numbers already taken must not let in what stands there. */
static void a_refused_node_leaves_no_trace_of_itself(void **state)
{
    struct bench *b = *state;
    unsigned bad;
    fold_more(b, 100);
    assert_int_equal(cells_publish(b->fold, &b->t.file, 1), 0);
    for (unsigned i = NODE_LOSSES + 1; i < FIRST_NODE; i++) {
        struct node_cell *cell = tracefile_node(&b->t.file, i);
        cell->seq[0] = 1;
        memset(&cell->copy[0], 0xff, sizeof cell->copy[0]);
    }
    struct fold *f = load(b, &bad);
    assert_int_equal(bad, FIRST_NODE - NODE_LOSSES - 1);
    for (unsigned i = NODE_LOSSES + 1; i < FIRST_NODE; i++)
        for (unsigned k = 0; k < LOGHIST_CHUNKS; k++)
            assert_int_equal(f->nodes[i].stats.chunk[k], 0);
    fold_free(f);
}

int main(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, make, clear)
    const struct CMUnitTest tests[] = {
        ONE(what_is_published_is_what_is_loaded),
        ONE(a_publish_writes_only_what_changed),
        ONE(a_reader_at_work_sees_the_old_state_until_the_commit),
        ONE(copies_that_were_never_committed_are_ignored_and_repaired),
        ONE(the_very_first_publish_may_be_lost),
        ONE(a_publisher_makes_itself_known_before_it_writes),
        ONE(a_publish_without_space_changes_nothing),
        ONE(cells_that_cannot_be_right_are_left_out),
        ONE(a_refused_node_leaves_no_trace_of_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
