/* fold_test.c: the fold against a slow model of it (fold_model.h), on random streams
 * and on each kind of trouble by itself. */
#include "trace/fold.h"

#include <sonde/sonde.h>

#include "fold_model.h"
#include "num/prng.h"

/* ---- Comparing -------------------------------------------------------------------- */

static unsigned __int128 squares_of(const struct model_node *n)
{
    unsigned __int128 sum = 0;
    for (size_t i = 0; i < n->count; i++)
        sum += (unsigned __int128)n->durations[i] * n->durations[i];
    return sum;
}

static uint64_t smallest(const struct model_node *n)
{
    uint64_t min = UINT64_MAX;
    for (size_t i = 0; i < n->count; i++)
        min = n->durations[i] < min ? n->durations[i] : min;
    return min;
}

static uint64_t largest(const struct model_node *n)
{
    uint64_t max = 0;
    for (size_t i = 0; i < n->count; i++)
        max = n->durations[i] > max ? n->durations[i] : max;
    return max;
}

static uint64_t in_histogram(const struct fold *f, const struct node_stats *s)
{
    uint64_t sum = 0;
    for (unsigned octave = 0; octave < LOGHIST_CHUNKS; octave++)
        for (unsigned i = 0; s->chunk[octave] && i < LOGHIST_SUBS; i++)
            sum += f->chunks[s->chunk[octave] - 1][i];
    return sum;
}

static void same_times(const struct fold *f, const struct node_stats *s,
                       const struct model_node *n)
{
    const unsigned __int128 squares = squares_of(n);
    assert_int_equal(s->total, n->total);
    assert_int_equal(s->max, largest(n));
    assert_int_equal(s->square_lo, (uint64_t)squares);
    assert_int_equal(s->square_hi, (uint64_t)(squares >> 64));
    assert_int_equal(s->truncated, n->truncated);
    assert_int_equal(s->unbalanced, n->unbalanced);
    assert_int_equal(in_histogram(f, s), n->count);
    if (n->count == 0)
        return;
    assert_int_equal(s->first_ticks, n->first);
    assert_int_equal(s->last_ticks, n->last);
}

static void same_node(const struct fold *f, unsigned at, const struct model_node *n)
{
    const struct node_stats *s = &f->nodes[at].stats;
    same_times(f, s, n);
    assert_int_equal(s->count, n->count);
    if (n->count)
        assert_int_equal(s->min, smallest(n));
    assert_int_equal(s->suspended, n->suspended);
    assert_int_equal(s->begun, n->begun);
    assert_int_equal(s->op_count, n->ops);
    assert_int_equal(s->op_cpu_ns, n->op_cpu_ns);
    assert_int_equal(s->mem_before_kb, n->before_kb);
    assert_int_equal(s->mem_after_kb, n->after_kb);
    assert_int_equal(s->mem_peak_kb, n->peak_kb);
}

/* The fold's node for each of the model's, found by path. */
static void match_nodes(const struct fold *f, const struct model *m, unsigned *ret_at)
{
    for (size_t i = 0; i < m->node_count; i++) {
        const int parent = m->nodes[i].parent;
        const unsigned above = parent < 0 ? (unsigned)-(parent + 2) : ret_at[parent];
        unsigned at = FIRST_NODE;
        while (at < f->node_count &&
               (f->nodes[at].parent != above || f->nodes[at].site != m->nodes[i].site))
            at++;
        if (at == f->node_count)
            fail_msg("the fold lacks path %zu (site %u)", i, m->nodes[i].site);
        ret_at[i] = at;
    }
}

static void same_lane(const struct fold *f, unsigned lane, const struct model_lane *l)
{
    const struct lane_carry *c = &f->lanes[lane].carry;
    assert_int_equal(c->depth, l->depth);
    assert_int_equal(c->too_deep, l->too_deep);
    assert_int_equal(c->left_open, l->left_open);
    assert_int_equal(c->tid, l->tid);
    assert_int_equal(c->last_ticks, l->last);
    assert_int_equal(c->events, l->events);
    assert_int_equal(c->orphan_ends, l->orphan_ends);
    assert_int_equal(c->unbalanced, l->unbalanced);
    assert_int_equal(c->deep_zones, l->deep_zones);
    assert_int_equal(c->steps, l->steps);
    assert_int_equal(c->samples, l->samples);
    assert_int_equal(c->last_step, l->last_step);
    assert_int_equal(c->filtered, l->filtered);
}

static void same_values(const struct fold *f, const struct model *m, const unsigned *at)
{
    assert_int_equal(f->value_count, m->value_count);
    for (size_t i = 0; i < m->value_count; i++) {
        const struct model_value *v = &m->values[i];
        const unsigned node = v->node == MODEL_NO_NODE ? 0xffff
                              : v->node == MODEL_OTHER ? NODE_OTHER
                              : v->node < 0            ? (unsigned)-(v->node + 2)
                                                       : at[v->node];
        unsigned k = 0;
        while (k < f->value_count &&
               (f->values[k].node != node || f->values[k].name != v->name ||
                f->values[k].kind != v->kind))
            k++;
        assert_true(k < f->value_count);
        const struct value_stats *s = &f->values[k].stats;
        assert_int_equal(s->count, v->count);
        assert_true(s->sum == v->sum && s->min == v->min && s->max == v->max);
        assert_true(s->last == v->last);
        assert_int_equal(s->last_ticks, v->last_ticks);
    }
}

/* Self time as the model attributed it, against total less children. */
static void self_and_children_make_the_total(const struct fold *f,
                                             const struct model *m, const unsigned *at)
{
    uint64_t *children = calloc(MAX_NODES, sizeof *children);
    for (unsigned i = FIRST_NODE; i < f->node_count; i++)
        children[f->nodes[i].parent] += f->nodes[i].stats.total;
    for (size_t i = 0; i < m->node_count; i++) {
        if (f->nodes[at[i]].parent == NODE_SPANS)
            continue;
        assert_int_equal(f->nodes[at[i]].stats.total,
                         children[at[i]] + m->nodes[i].self);
    }
    free(children);
}

static void same(const struct fold *f, const struct model *m)
{
    unsigned *at = calloc(MODEL_NODES, sizeof *at);
    assert_int_equal(f->node_count, FIRST_NODE + m->node_count);
    match_nodes(f, m, at);
    for (size_t i = 0; i < m->node_count; i++)
        same_node(f, at[i], &m->nodes[i]);
    same_node(f, NODE_STEP, &m->steps);
    same_times(f, &f->nodes[NODE_OTHER].stats, &m->other);
    assert_int_equal(f->nodes[NODE_OTHER].stats.count, m->other_count);
    if (m->other_count)
        assert_int_equal(f->nodes[NODE_OTHER].stats.min, m->other_min);
    for (unsigned i = 0; i < MAX_LANES; i++)
        if (f->lanes[i].used || m->lanes[i].events)
            same_lane(f, i, &m->lanes[i]);
    same_values(f, m, at);
    free(at);
}

/* Also ends all that is open, when self times are final. */
static void same_to_the_end(struct fold *f, struct model *m)
{
    same(f, m);
    for (unsigned i = 0; i < MAX_LANES; i++) {
        if (!f->lanes[i].used)
            continue;
        fold_truncate_lane(f, i);
        model_cut(m, &m->lanes[i]);
    }
    same(f, m);
    unsigned *at = calloc(MODEL_NODES, sizeof *at);
    match_nodes(f, m, at);
    self_and_children_make_the_total(f, m, at);
    free(at);
}

/* ---- Random streams --------------------------------------------------------------- */

/* One lane's words, and where it may be cut: between records, not inside. */
struct stream {
    struct words words;
    size_t *cuts;
    size_t cut_count;
    uint64_t start;
};

struct generator {
    struct prng random;
    struct words *w;
    uint64_t now;
    unsigned stack[2 * MAX_DEPTH], depth, lane;
    unsigned trouble; /* in 1,000 words: malformed ones */
    bool many_paths;  /* more than there is room for */
};

static uint64_t chance(struct generator *g, uint64_t bound)
{
    return prng_below(&g->random, bound);
}

static uint64_t later(struct generator *g)
{
    static const uint64_t lengths[] = { 1, 30, 900, 70000, 5000000 };
    g->now += chance(g, lengths[chance(g, 5)]);
    return g->now;
}

static unsigned any_site(struct generator *g)
{
    return g->many_paths ? SITE(chance(g, 6)) : SITE(g->depth < 2 ? chance(g, 2) : 2);
}

static void put_edge(struct generator *g)
{
    const unsigned limit = chance(g, 50) == 0 ? 2 * MAX_DEPTH : 12;
    if (g->depth < limit && (g->depth == 0 || chance(g, 2))) {
        g->stack[g->depth] = any_site(g);
        words_begin(g->w, g->stack[g->depth++], later(g));
    } else {
        words_end(g->w, g->stack[--g->depth], later(g));
    }
}

static void put_record(struct generator *g)
{
    const unsigned name = SITE(100 + g->lane); /* of this lane: sums in any order */
    uint64_t wall;
    switch (chance(g, 7)) {
    case 0:
        words_value(g->w, name, VALUE_ZONE, (double)chance(g, 99), later(g));
        break;
    case 1:
        words_value(g->w, name, VALUE_METRIC, (double)chance(g, 9), later(g));
        break;
    case 2:
        words_step(g->w, chance(g, 64), later(g));
        break;
    case 3:
        if (g->lane < ROOT_NODES - 1) /* "before" and "after" are the last ones' */
            words_op(g->w, chance(g, 1000), 5, (uint32_t)chance(g, 100),
                     (uint32_t)chance(g, 1000), later(g));
        break;
    case 4:
        words_span(g->w, SITE(chance(g, 3)), SPAN_BEGIN, 1, 0, 0, later(g));
        break;
    case 5:
        wall = chance(g, 1000);
        words_span(g->w, SITE(chance(g, 3)), SPAN_END, 1, chance(g, wall + 1), wall,
                   later(g));
        break;
    default:
        words_record(g->w, TAG_FILTERED, later(g), (const uint64_t[]){ chance(g, 9) },
                     1);
    }
}

static void put_trouble(struct generator *g)
{
    switch (chance(g, 10)) {
    case 0:
        words_end(g->w, SITE(50), later(g));
        break; /* orphan */
    case 1:
        g->depth -= chance(g, g->depth + 1);
        break; /* ends lost */
    case 2:
        words_begin(g->w, any_site(g), g->now - 40);
        break; /* a handler */
    case 3:
        words_put(g->w, chance(g, 1 << 20) << 16 | TAG_CONT);
        break;
    case 4:
        words_tag(g->w, TAG_SPAN, later(g));
        break; /* no payload */
    case 5:
        words_tag(g->w, 11 + (unsigned)chance(g, 5), later(g));
        break; /* unknown */
    case 6:
        words_put(g->w, 0);
        break;
    case 7:
        words_put(g->w, TAG_PAD);
        break;
    case 8:
        words_thread(g->w, (uint32_t)chance(g, 9999), later(g));
        g->depth = 0;
        break;
    default:
        g->now += 1ULL << 44;
        break; /* asleep for hours */
    }
}

static struct stream make_stream(uint64_t seed, unsigned lane, unsigned trouble,
                                 unsigned items, bool many_paths)
{
    struct stream s = { .cuts = calloc(items + 1, sizeof *s.cuts) };
    struct generator g = {
        .w = &s.words, .lane = lane, .trouble = trouble, .many_paths = many_paths
    };
    prng_init(&g.random, seed * 1000 + lane);
    /* Some lanes begin just before the counter's low 48 bits run over. */
    g.now = chance(&g, 3) ? 1ULL << 40 : (3ULL << 48) - 100000;
    s.start = g.now;
    for (unsigned i = 0; i < items; i++) {
        s.cuts[s.cut_count++] = s.words.count;
        const uint64_t dice = chance(&g, 1000);
        if (dice < g.trouble)
            put_trouble(&g);
        else if (dice < 900)
            put_edge(&g);
        else
            put_record(&g);
    }
    return s;
}

static void release_stream(struct stream *s)
{
    words_release(&s->words);
    free(s->cuts);
}

/* Feeds the stream from item `from` to item `to` as one block whose base is anywhere
 * between the event before it and a little after its first. */
static void fold_piece(struct fold *f, unsigned lane, const struct stream *s,
                       size_t from, size_t to, struct prng *random)
{
    const size_t a = from < s->cut_count ? s->cuts[from] : s->words.count;
    const size_t b = to < s->cut_count ? s->cuts[to] : s->words.count;
    uint64_t base = f->lanes[lane].carry.last_ticks;
    if (base == 0)
        base = s->start;
    base += prng_below(random, 2000);
    fold_words(f, lane, s->words.data + a, b - a, base);
}

enum { LANES = 36 }; /* past ROOT_NODES: some share a root */

static void fold_in_random_pieces(struct fold *f, const struct stream *streams,
                                  unsigned lanes, uint64_t seed)
{
    struct prng random;
    size_t at[LANES] = { 0 };
    prng_init(&random, seed);
    for (unsigned left = lanes; left > 0;) {
        const unsigned lane = (unsigned)prng_below(&random, lanes);
        if (at[lane] > streams[lane].cut_count)
            continue;
        const size_t to = at[lane] + 1 + prng_below(&random, 60);
        fold_piece(f, lane, &streams[lane], at[lane], to, &random);
        at[lane] = to;
        left -= to > streams[lane].cut_count;
    }
}

static void compare_random(uint64_t seed, unsigned trouble, unsigned lanes,
                           unsigned items)
{
    struct stream streams[LANES];
    struct model *m = model_new();
    struct fold *f;
    assert_int_equal(fold_new(&f), 0);
    for (unsigned i = 0; i < lanes; i++) {
        streams[i] = make_stream(seed, i, trouble, items, lanes == 1);
        model_words(m, i, streams[i].words.data, streams[i].words.count,
                    streams[i].start);
    }
    fold_in_random_pieces(f, streams, lanes, seed);
    same_to_the_end(f, m);
    fold_free(f);
    model_free(m);
    for (unsigned i = 0; i < lanes; i++)
        release_stream(&streams[i]);
}

static void well_formed_streams_give_what_the_model_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++)
        compare_random(seed, 0, LANES, 400);
}

static void malformed_streams_give_what_the_model_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++)
        compare_random(100 + seed, 10 + 20 * (unsigned)(seed % 5), LANES, 400);
}

/* Which paths are beyond the limit depends on the order; one lane has only one. */
static void streams_with_too_many_paths_give_what_the_model_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++)
        compare_random(200 + seed, 20, 1, 30000);
}

/* ---- One kind of trouble at a time ------------------------------------------------ */

struct pair {
    struct fold *fold;
    struct model *model;
    struct words words;
};

static int make_pair(void **state)
{
    struct pair *p = calloc(1, sizeof *p);
    *state = p;
    p->model = model_new();
    return fold_new(&p->fold);
}

static int free_pair(void **state)
{
    struct pair *p = *state;
    fold_free(p->fold);
    model_free(p->model);
    words_release(&p->words);
    free(p);
    return 0;
}

static void feed(struct pair *p, unsigned lane, uint64_t base)
{
    fold_words(p->fold, lane, p->words.data, p->words.count, base);
    model_words(p->model, lane, p->words.data, p->words.count, base);
    p->words.count = 0;
}

static void a_zone_has_its_exact_statistics(void **state)
{
    struct pair *p = *state;
    const uint64_t durations[] = { 5, 1, 1ULL << 46, 3 };
    uint64_t now = 1000;
    for (unsigned i = 0; i < 4; i++) {
        words_zone(&p->words, SITE(0), now, now + durations[i]);
        now += durations[i] + 7;
    }
    feed(p, 0, 1000);
    const struct node_stats *s = path_stats(p->fold, 0, PATH(SITE(0)));
    assert_non_null(s);
    assert_int_equal(s->count, 4);
    assert_int_equal(s->total, (1ULL << 46) + 9);
    assert_int_equal(s->min, 1);
    assert_int_equal(s->max, 1ULL << 46);
    assert_int_equal(s->square_hi, 1ULL << 28); /* (2^46)^2 is beyond 64 bits */
    assert_int_equal(s->square_lo, 25 + 1 + 9);
    assert_int_equal(s->first_ticks, 1000);
    assert_int_equal(s->last_ticks, now - 7);
    same_to_the_end(p->fold, p->model);
}

static void zones_beyond_the_depth_limit_are_counted_not_timed(void **state)
{
    struct pair *p = *state;
    enum { DEEP = MAX_DEPTH + 60 };
    uint64_t now = 1000;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < DEEP; i++)
            words_begin(&p->words, SITE(i % 7), now += 10);
        for (unsigned i = DEEP; i-- > 0;)
            words_end(&p->words, SITE(i % 7), now += 10);
    }
    feed(p, 0, 1000);
    assert_int_equal(p->fold->lanes[0].carry.deep_zones, 180);
    assert_int_equal(p->fold->lanes[0].carry.depth, 0);
    assert_int_equal(p->fold->lanes[0].carry.orphan_ends, 0);
    const struct node_stats *s = path_stats(p->fold, 0, PATH(SITE(0)));
    assert_int_equal(s->count, 3);
    same_to_the_end(p->fold, p->model);
}

static void paths_beyond_the_limit_are_counted_as_others(void **state)
{
    struct pair *p = *state;
    enum { PAIRS = (MODEL_NODES - 2) / 2, MORE = 100 };
    uint64_t now = 1000;
    words_zone(&p->words, SITE(0), now, now + 1);
    words_begin(&p->words, SITE(1), now += 10); /* a parent that has a node */
    for (unsigned i = 1; i <= PAIRS + MORE; i++) {
        words_begin(&p->words, SITE(i), now += 10);
        words_zone(&p->words, SITE(i), now + 5, now + 8);
        words_end(&p->words, SITE(i), now += 20);
    }
    words_end(&p->words, SITE(1), now += 10);
    feed(p, 0, 1000);
    const struct node_stats *s = &p->fold->nodes[NODE_OTHER].stats;
    assert_int_equal(p->fold->node_count, MAX_NODES - BEYOND_NODES);
    assert_int_equal(s->count, 2 * MORE);
    assert_int_equal(s->total, 20 * MORE); /* the inner ones' time is in the outer's */
    assert_int_equal(s->min, 3);
    assert_int_equal(s->first_ticks, 1010 + 30 * PAIRS + 10);
    same_to_the_end(p->fold, p->model);
}

static void the_tick_counter_may_run_over(void **state)
{
    struct pair *p = *state;
    const uint64_t edge = 5ULL << 48;
    words_begin(&p->words, SITE(0), edge - 100);
    words_zone(&p->words, SITE(1), edge - 1, edge + 1);
    words_end(&p->words, SITE(0), edge + 100);
    feed(p, 0, edge - 150);
    assert_int_equal(path_stats(p->fold, 0, PATH(SITE(0)))->total, 200);
    assert_int_equal(path_stats(p->fold, 0, PATH(SITE(0), SITE(1)))->total, 2);
    /* A block opened days later: only its base tells how many times it ran over. */
    words_zone(&p->words, SITE(0), edge * 3 + 7, edge * 3 + 8);
    feed(p, 0, edge * 3);
    assert_int_equal(path_stats(p->fold, 0, PATH(SITE(0)))->last_ticks, edge * 3 + 8);
    same_to_the_end(p->fold, p->model);
}

static void a_signal_handler_s_step_back_in_time_costs_nothing(void **state)
{
    struct pair *p = *state;
    words_begin(&p->words, SITE(0), 1000);
    words_end(&p->words, SITE(0), 1200); /* reserved before the handler, written … */
    words_zone(&p->words, SITE(1), 1150, 1180); /* … after it */
    words_zone(&p->words, SITE(0), 1300, 1400);
    feed(p, 0, 1000);
    assert_int_equal(path_stats(p->fold, 0, PATH(SITE(0)))->total, 300);
    assert_int_equal(path_stats(p->fold, 0, PATH(SITE(1)))->count, 1);
    assert_int_equal(path_stats(p->fold, 0, PATH(SITE(1)))->total, 0);
    same_to_the_end(p->fold, p->model);
}

static void a_lost_end_closes_its_zone_with_the_one_around_it(void **state)
{
    struct pair *p = *state;
    words_begin(&p->words, SITE(0), 1000);
    words_begin(&p->words, SITE(1), 1100);
    words_zone(&p->words, SITE(2), 1200, 1300);
    words_end(&p->words, SITE(0), 2000);
    words_end(&p->words, SITE(1), 2100);
    feed(p, 0, 1000);
    const struct node_stats *lost = path_stats(p->fold, 0, PATH(SITE(0), SITE(1)));
    assert_int_equal(lost->total, 900);
    assert_int_equal(lost->unbalanced, 1);
    assert_int_equal(path_stats(p->fold, 0, PATH(SITE(0)))->total, 1000);
    assert_int_equal(p->fold->lanes[0].carry.unbalanced, 1);
    assert_int_equal(p->fold->lanes[0].carry.orphan_ends, 1);
    same_to_the_end(p->fold, p->model);
}

static void zones_that_cross_keep_what_they_share(void **state)
{
    struct pair *p = *state;
    words_begin(&p->words, SITE(0), 1000);
    words_begin(&p->words, SITE(1), 1100);
    words_end(&p->words, SITE(0), 1400);
    words_end(&p->words, SITE(1), 1900);
    feed(p, 0, 1000);
    assert_int_equal(path_stats(p->fold, 0, PATH(SITE(0)))->total, 400);
    const struct node_stats *inner = path_stats(p->fold, 0, PATH(SITE(0), SITE(1)));
    assert_int_equal(inner->total, 300);
    assert_int_equal(inner->unbalanced, 1);
    assert_int_equal(p->fold->lanes[0].carry.unbalanced, 1);
    assert_int_equal(p->fold->lanes[0].carry.orphan_ends, 1);
    same_to_the_end(p->fold, p->model);
}

/* ---- Beyond the limit, with phases ------------------------------------------------ */

enum { NONE_AT = 5000, FORWARD_AT, BACKWARD_AT, EVALUATION_AT, LOADING_AT, SYNC_AT };

static unsigned known_phase(const void *arg, unsigned site)
{
    (void)arg;
    switch (site) {
    case FORWARD_AT:
        return SONDE_FORWARD;
    case BACKWARD_AT:
        return SONDE_BACKWARD;
    case EVALUATION_AT:
        return SONDE_EVALUATION;
    case LOADING_AT:
        return SONDE_DATA_LOADING;
    case SYNC_AT:
        return SONDE_SYNC;
    default:
        return 0;
    }
}

/* Total less what is counted elsewhere: such nodes have no children. 0: none. */
static uint64_t beyond_self(const struct fold *f, unsigned root, unsigned phase)
{
    for (unsigned i = FIRST_NODE; i < f->node_count; i++)
        if (f->nodes[i].parent == NODE_OTHER &&
            f->nodes[i].site == (BEYOND_SITE | root << 5 | phase))
            return f->nodes[i].stats.total - f->nodes[i].stats.suspended;
    return 0;
}

static void time_beyond_the_limit_is_that_of_its_phase(void **state)
{
    struct pair *p = *state;
    uint64_t now = 1000;
    p->fold->phase_of = known_phase;
    words_begin(&p->words, SITE(0), now); /* a zone without a phase, all around */
    for (unsigned i = 1; i <= MODEL_NODES; i++, now += 10)
        words_zone(&p->words, SITE(i), now + 1, now + 2);
    const uint64_t full = now;
    words_begin(&p->words, FORWARD_AT, now += 100); /* 400 less 100 */
    words_begin(&p->words, NONE_AT, now + 50);      /* no phase: part of it */
    words_begin(&p->words, BACKWARD_AT, now + 100); /* 100 less 30 */
    words_zone(&p->words, FORWARD_AT, now + 110, now + 140);
    words_end(&p->words, BACKWARD_AT, now + 200);
    words_end(&p->words, NONE_AT, now + 300);
    words_end(&p->words, FORWARD_AT, now += 400);
    words_begin(&p->words, EVALUATION_AT, now += 100); /* with what it fetches: 200 */
    words_zone(&p->words, LOADING_AT, now + 10, now + 60);
    words_end(&p->words, EVALUATION_AT, now += 200);
    words_begin(&p->words, NONE_AT, now += 10); /* 60 are its own: they stay outside */
    words_zone(&p->words, SYNC_AT, now + 20, now + 60);
    words_end(&p->words, NONE_AT, now += 100);
    words_end(&p->words, SITE(0), now += 10);
    feed(p, 3, 1000);
    assert_int_equal(beyond_self(p->fold, 3, SONDE_FORWARD), 400 - 100 + 30);
    assert_int_equal(beyond_self(p->fold, 3, SONDE_BACKWARD), 100 - 30);
    assert_int_equal(beyond_self(p->fold, 3, SONDE_EVALUATION), 200);
    assert_int_equal(beyond_self(p->fold, 3, SONDE_DATA_LOADING), 0);
    assert_int_equal(beyond_self(p->fold, 3, SONDE_SYNC), 40);
    /* What is around all of it has the rest, and nothing is counted twice. */
    const struct node_stats *outer = path_stats(p->fold, 3, PATH(SITE(0)));
    assert_int_equal(outer->total, now - 1000);
    assert_int_equal(outer->suspended, 400 + 200 + 40);
    assert_true(outer->total - outer->suspended > full - 1000);
    /* Without phases: NONE_AT twice, of which one is inside of another node's. */
    assert_int_equal(p->fold->nodes[NODE_OTHER].stats.total, 100 + 1);
}

static void payload_without_its_head_and_heads_without_payload_are_skipped(void **state)
{
    struct pair *p = *state;
    static const unsigned tags[] = { TAG_VALUE, TAG_STEP, TAG_THREAD, TAG_OP,
                                     TAG_SPAN,  TAG_MARK, TAG_LOST,   TAG_FILTERED };
    words_begin(&p->words, SITE(0), 1000);
    words_put(&p->words, 77ULL << 16 | TAG_CONT);
    for (unsigned i = 0; i < 8; i++)
        words_tag(&p->words, tags[i], 1001 + i);
    for (unsigned tag = 11; tag < 16; tag++)
        words_record(&p->words, tag, 1020 + tag, (const uint64_t[]){ 1, 2 }, 2);
    words_end(&p->words, SITE(0), 1100);
    words_tag(&p->words, TAG_OP, 1200); /* its payload would be past the end */
    feed(p, 0, 1000);
    assert_int_equal(path_stats(p->fold, 0, PATH(SITE(0)))->total, 100);
    assert_int_equal(p->fold->lanes[0].carry.depth, 0);
    assert_int_equal(p->fold->lanes[0].carry.steps, 0);
    assert_int_equal(p->fold->value_count, 0);
    same_to_the_end(p->fold, p->model);
}

static void a_thread_s_open_zones_end_at_its_own_last_event(void **state)
{
    struct pair *p = *state;
    words_thread(&p->words, 100, 1000);
    words_begin(&p->words, SITE(0), 1000);
    words_step(&p->words, 1, 1500);
    feed(p, 0, 1000);
    words_thread(&p->words, 200, 900000); /* much later, in a block of its own */
    words_zone(&p->words, SITE(0), 900001, 900002);
    words_step(&p->words, 1, 900003);
    feed(p, 0, 899000);
    const struct node_stats *s = path_stats(p->fold, 0, PATH(SITE(0)));
    assert_int_equal(s->count, 2);
    assert_int_equal(s->truncated, 1);
    assert_int_equal(s->max, 500);
    assert_int_equal(p->fold->lanes[0].carry.tid, 200);
    /* Nor is the time between the threads a step. */
    assert_int_equal(p->fold->nodes[NODE_STEP].stats.count, 0);
    assert_int_equal(p->fold->lanes[0].carry.steps, 2);
    same_to_the_end(p->fold, p->model);
}

/* A slow path reads the clock, then may wait for a block to write the event into. */
static void an_event_older_than_its_block_keeps_its_tick(void **state)
{
    struct pair *p = *state;
    words_begin(&p->words, SITE(0), 1000);
    feed(p, 0, 1000);
    words_end(&p->words, SITE(0), 1500);
    words_zone(&p->words, SITE(1), 70000, 70010);
    feed(p, 0, 60000);
    assert_int_equal(path_stats(p->fold, 0, PATH(SITE(0)))->total, 500);
    same_to_the_end(p->fold, p->model);
}

static void steps_values_and_operations_add_up(void **state)
{
    struct pair *p = *state;
    words_begin(&p->words, SITE(0), 1000);
    for (unsigned i = 0; i < 5; i++) {
        words_step(&p->words, 32, 1100 + 100 * i + i);
        words_value(&p->words, SITE(9), VALUE_ZONE, 1.5 * i, 1101 + 100 * i + i);
        words_value(&p->words, SITE(9), VALUE_METRIC, -2.0 * i, 1102 + 100 * i + i);
        words_op(&p->words, 1000, 10 + i, 20 + i, 50 - i, 1103 + 100 * i + i);
    }
    words_end(&p->words, SITE(0), 2000);
    feed(p, 0, 1000);
    assert_int_equal(p->fold->nodes[NODE_STEP].stats.count, 4);
    assert_int_equal(p->fold->nodes[NODE_STEP].stats.total, 404);
    assert_int_equal(p->fold->lanes[0].carry.samples, 160);
    const struct node_stats *s = path_stats(p->fold, 0, PATH(SITE(0)));
    assert_int_equal(s->op_count, 5);
    assert_int_equal(s->op_cpu_ns, 5000);
    assert_int_equal(s->mem_before_kb, 14);
    assert_int_equal(s->mem_after_kb, 24);
    assert_int_equal(s->mem_peak_kb, 50);
    assert_int_equal(p->fold->value_count, 2);
    assert_true(p->fold->values[0].stats.sum == 15);
    assert_true(p->fold->values[1].stats.last == -8);
    same_to_the_end(p->fold, p->model);
}

static void values_beyond_the_limit_are_counted_as_lost(void **state)
{
    struct pair *p = *state;
    for (unsigned i = 0; i < MAX_VALUES + 10; i++)
        words_value(&p->words, SITE(i), VALUE_METRIC, 1, 1000 + i);
    feed(p, 0, 1000);
    assert_int_equal(p->fold->value_count, MAX_VALUES);
    assert_int_equal(p->fold->nodes[NODE_LOSSES].stats.total, 10);
}

/* ---- Order ------------------------------------------------------------------------ */

static void the_last_value_is_the_latest_whichever_lane_is_folded_first(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        struct fold *f;
        struct words lanes[2] = { { 0 }, { 0 } };
        assert_int_equal(fold_new(&f), 0);
        words_value(&lanes[0], SITE(1), VALUE_METRIC, 7, 2000);
        words_value(&lanes[1], SITE(1), VALUE_METRIC, 9, 3000);
        for (unsigned i = 0; i < 2; i++)
            fold_words(f, i ^ first, lanes[i ^ first].data, lanes[i ^ first].count,
                       1000);
        assert_true(f->values[0].stats.last == 9);
        words_release(&lanes[0]);
        words_release(&lanes[1]);
        fold_free(f);
    }
}

/* Spans, steps and lanes that share a root put two lanes' times into one node. */
static void first_and_last_do_not_depend_on_which_lane_is_folded_first(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        struct fold *f;
        struct words lanes[2] = { { 0 }, { 0 } };
        assert_int_equal(fold_new(&f), 0);
        words_span(&lanes[0], SITE(1), SPAN_END, 1, 10, 100, 2000);
        words_span(&lanes[1], SITE(1), SPAN_END, 2, 10, 100, 9000);
        words_zone(&lanes[0], SITE(2), 3000, 4000);
        words_zone(&lanes[1], SITE(2), 9500, 9600);
        for (unsigned i = 0; i < 2; i++)
            fold_words(f, 100 + (i ^ first), lanes[i ^ first].data,
                       lanes[i ^ first].count, 1000);
        const struct node_stats *zone = path_stats(f, 100, PATH(SITE(2)));
        assert_int_equal(zone->first_ticks, 3000);
        assert_int_equal(zone->last_ticks, 9600);
        unsigned span = FIRST_NODE;
        while (f->nodes[span].parent != NODE_SPANS)
            span++;
        assert_int_equal(f->nodes[span].stats.first_ticks, 1900);
        assert_int_equal(f->nodes[span].stats.last_ticks, 9000);
        words_release(&lanes[0]);
        words_release(&lanes[1]);
        fold_free(f);
    }
}

static void pure_noise_never_breaks_the_sums(void **state)
{
    (void)state;
    struct prng random;
    struct fold *f;
    uint64_t words[EVENTS_WORDS];
    assert_int_equal(fold_new(&f), 0);
    prng_init(&random, 7);
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i < EVENTS_WORDS; i++) {
            words[i] = prng_next(&random);
            if (round & 1) /* few sites and all the tags: frames match at times */
                words[i] = (words[i] & ~0xffffULL) | prng_below(&random, 48);
        }
        fold_words(f, round % 3, words, EVENTS_WORDS, prng_next(&random));
    }
    for (unsigned i = 0; i < 3; i++)
        fold_truncate_lane(f, i);
    uint64_t *children = calloc(MAX_NODES, sizeof *children);
    for (unsigned i = FIRST_NODE; i < f->node_count; i++)
        if (f->nodes[i].parent < MAX_NODES)
            children[f->nodes[i].parent] += f->nodes[i].stats.total;
    for (unsigned i = FIRST_NODE; i < f->node_count; i++)
        assert_true(children[i] <= f->nodes[i].stats.total);
    free(children);
    fold_free(f);
}

int main(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, make_pair, free_pair)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_streams_give_what_the_model_says),
        cmocka_unit_test(malformed_streams_give_what_the_model_says),
        cmocka_unit_test(streams_with_too_many_paths_give_what_the_model_says),
        ONE(a_zone_has_its_exact_statistics),
        ONE(zones_beyond_the_depth_limit_are_counted_not_timed),
        ONE(paths_beyond_the_limit_are_counted_as_others),
        ONE(the_tick_counter_may_run_over),
        ONE(a_signal_handler_s_step_back_in_time_costs_nothing),
        ONE(a_lost_end_closes_its_zone_with_the_one_around_it),
        ONE(zones_that_cross_keep_what_they_share),
        ONE(time_beyond_the_limit_is_that_of_its_phase),
        ONE(payload_without_its_head_and_heads_without_payload_are_skipped),
        ONE(a_thread_s_open_zones_end_at_its_own_last_event),
        ONE(an_event_older_than_its_block_keeps_its_tick),
        ONE(steps_values_and_operations_add_up),
        ONE(values_beyond_the_limit_are_counted_as_lost),
        cmocka_unit_test(the_last_value_is_the_latest_whichever_lane_is_folded_first),
        cmocka_unit_test(first_and_last_do_not_depend_on_which_lane_is_folded_first),
        cmocka_unit_test(pure_noise_never_breaks_the_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
