/* fold.c: the loop that turns words into statistics. See fold.h.
 *
 * This loop must keep up with threads that record a zone every 20 ns, so begin and
 * end are handled inline with the state of the lane in registers, and everything
 * else is out of line. The words come from a profiled program: a site number is only
 * ever a label, node numbers never come from words, depths are bounded here.
 */
#include "trace/fold.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "trace/phases.h"

int fold_new(struct fold **ret_fold)
{
    struct fold *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f == MAP_FAILED)
        return -ENOMEM;
    f->node_count = FIRST_NODE;
    for (unsigned i = 0; i < FIRST_NODE; i++) {
        bool real = i < ROOT_NODES || i == NODE_STEP || i == NODE_OTHER ||
                    i == NODE_SPANS || i == NODE_LOSSES;
        f->nodes[i].used = real;
        f->nodes[i].parent = 0xffff;
    }
    *ret_fold = f;
    return 0;
}

void fold_free(struct fold *fold)
{
    if (fold)
        (void)munmap(fold, sizeof *fold);
}

/* ---- Paths ---------------------------------------------------------------------- */

static inline uint32_t path_hash(unsigned parent, unsigned site)
{
    uint32_t key = (uint32_t)parent << 16 | site;
    return (key * 2654435761u) >> 16 & (FOLD_HASH - 1);
}

static void touch_node(struct fold *f, unsigned number)
{
    f->nodes[number].dirty = 1;
    f->dirty_nodes[f->dirty_node_count++] = (uint16_t)number;
}

bool fold_insert_node(struct fold *f, unsigned number, unsigned parent, unsigned site,
                      const struct node_stats *stats)
{
    if (number >= MAX_NODES)
        return false;
    struct fold_node *n = &f->nodes[number];
    bool fits = number < FIRST_NODE
                    ? n->used
                    : !n->used && parent < MAX_NODES && f->nodes[parent].used;
    if (!fits)
        return false;
    if (stats)
        n->stats = *stats;
    if (number < FIRST_NODE)
        return true;
    if (parent == NODE_OTHER)
        site |= BEYOND_SITE;
    n->used = 1;
    n->parent = (uint16_t)parent;
    n->site = (uint16_t)site;
    if (number >= f->node_count)
        f->node_count = number + 1;
    uint32_t at = path_hash(parent, site);
    while (f->hash[at])
        at = (at + 1) & (FOLD_HASH - 1);
    f->hash[at] = (uint16_t)number;
    return true;
}

/* Also grows the tree; NODE_OTHER when it has `most` nodes. */
static unsigned find_or_add(struct fold *f, unsigned parent, unsigned site,
                            unsigned most)
{
    uint32_t at = path_hash(parent, site);
    for (; f->hash[at]; at = (at + 1) & (FOLD_HASH - 1)) {
        unsigned n = f->hash[at];
        if (f->nodes[n].parent == parent && f->nodes[n].site == site) {
            f->nodes[parent].last_child = (uint16_t)n;
            return n;
        }
    }
    if (f->node_count >= most)
        return NODE_OTHER;
    unsigned number = f->node_count;
    (void)fold_insert_node(f, number, parent, site, NULL);
    f->nodes[parent].last_child = (uint16_t)number;
    return number;
}

static unsigned find_child(struct fold *f, unsigned parent, unsigned site)
{
    if (parent == NODE_OTHER || fold_is_beyond(f, parent))
        return NODE_OTHER;
    return find_or_add(f, parent, site, MAX_NODES - BEYOND_NODES);
}

/* ---- Beyond the limit ------------------------------------------------------------ */

static unsigned phase_of(const struct fold *f, unsigned site)
{
    const unsigned phase = f->phase_of ? f->phase_of(f->phase_arg, site) : 0;
    return phase < BEYOND_PHASES ? phase : 0;
}

/* Where a zone is counted whose path has no node. One that is another phase than what is
 * around it has a node with all others of its thread and phase; else its time is well
 * where it is: in the self time of the last zone that has a node. */
static unsigned find_beyond(struct fold *f, const struct fold_lane *l, unsigned depth,
                            unsigned root, unsigned site)
{
    unsigned above = 0;
    for (unsigned i = 0; i < depth; i++)
        above = phase_below(phase_of(f, l->frames[i].site), above);
    const unsigned phase = phase_below(phase_of(f, site), above);
    const unsigned parent = depth ? l->frames[depth - 1].node : root;
    if (phase == above)
        return fold_is_beyond(f, parent) ? parent : NODE_OTHER;
    return find_or_add(f, NODE_OTHER, BEYOND_SITE | root << 5 | phase, MAX_NODES);
}

static __attribute__((noinline)) unsigned find_path(struct fold *f,
                                                    const struct fold_lane *l,
                                                    unsigned depth, unsigned root,
                                                    unsigned site)
{
    const unsigned parent = depth ? l->frames[depth - 1].node : root;
    const unsigned node = find_child(f, parent, site);
    return node == NODE_OTHER ? find_beyond(f, l, depth, root, site) : node;
}

static __attribute__((noinline)) void lose(struct fold *f, uint64_t *counter)
{
    ++*counter;
    if (!f->nodes[NODE_LOSSES].dirty)
        touch_node(f, NODE_LOSSES);
}

static __attribute__((noinline)) unsigned new_chunk(struct fold *f)
{
    if (f->chunk_count >= MAX_CHUNKS)
        return 0;
    return ++f->chunk_count;
}

static inline __attribute__((always_inline)) void node_record(struct fold *f,
                                                              unsigned number,
                                                              uint64_t begin,
                                                              uint64_t end)
{
    struct fold_node *n = &f->nodes[number];
    struct node_stats *s = &n->stats;
    uint64_t d = end - begin;
    if (__builtin_expect(!n->dirty, 0))
        touch_node(f, number);
    if (__builtin_expect(s->count == 0, 0)) {
        s->first_ticks = begin;
        s->min = UINT64_MAX;
    }
    s->count++;
    s->total += d;
    /* Lanes that share a node are folded in any order. */
    if (begin < s->first_ticks)
        s->first_ticks = begin;
    if (end > s->last_ticks)
        s->last_ticks = end;
    if (d < s->min)
        s->min = d;
    if (d > s->max)
        s->max = d;
    unsigned __int128 square = (unsigned __int128)s->square_hi << 64 | s->square_lo;
    square += (unsigned __int128)d * d;
    s->square_lo = (uint64_t)square;
    s->square_hi = (uint64_t)(square >> 64);

    struct loghist_slot slot = loghist_slot(d);
    unsigned chunk = s->chunk[slot.chunk];
    if (__builtin_expect(chunk == 0, 0)) {
        chunk = new_chunk(f);
        if (chunk == 0) {
            lose(f, &f->nodes[NODE_LOSSES].stats.count);
            return;
        }
        s->chunk[slot.chunk] = (uint16_t)chunk;
    }
    f->chunks[chunk - 1][slot.sub]++;
    n->dirty_chunks |= 1ULL << slot.chunk;
}

/* ---- Lanes ---------------------------------------------------------------------- */

struct fold_lane *fold_lane(struct fold *f, unsigned lane)
{
    if (lane >= MAX_LANES)
        return NULL;
    struct fold_lane *l = &f->lanes[lane];
    if (!l->used) {
        l->used = 1;
        l->carry.next_seq = 1;
        if (lane >= f->lane_count)
            f->lane_count = lane + 1;
    }
    return l;
}

bool fold_insert_lane(struct fold *f, unsigned number, const struct lane_carry *carry,
                      const struct lane_frame *frames)
{
    if (number >= MAX_LANES || carry->depth > MAX_DEPTH ||
        carry->left_open > MAX_DEPTH || carry->next_seq == 0)
        return false;
    struct fold_lane *l = fold_lane(f, number);
    unsigned count = lane_frames(carry), good = 0;
    memcpy(l->frames, frames, count * sizeof l->frames[0]);
    while (good < count && l->frames[good].node < MAX_NODES &&
           f->nodes[l->frames[good].node].used)
        good++;
    l->carry = *carry;
    if (l->carry.depth > good)
        l->carry.depth = good;
    if (l->carry.left_open > good)
        l->carry.left_open = good;
    return true;
}

void fold_touch_lane(struct fold *f, unsigned lane)
{
    if (lane >= MAX_LANES || f->lanes[lane].dirty)
        return;
    f->lanes[lane].dirty = 1;
    f->dirty_lanes[f->dirty_lane_count++] = (uint16_t)lane;
}

void fold_clean(struct fold *f)
{
    for (uint32_t i = 0; i < f->dirty_node_count; i++) {
        f->nodes[f->dirty_nodes[i]].dirty = 0;
        f->nodes[f->dirty_nodes[i]].dirty_chunks = 0;
    }
    for (uint32_t i = 0; i < f->dirty_lane_count; i++)
        f->lanes[f->dirty_lanes[i]].dirty = 0;
    for (uint32_t i = 0; i < f->dirty_value_count; i++)
        f->values[f->dirty_values[i]].dirty = 0;
    f->dirty_node_count = f->dirty_lane_count = f->dirty_value_count = 0;
}

/* What a zone beyond the limit took is in the total of the zone around it, which is no
 * parent of its node: said there, so that nothing is anybody's self time twice. */
static void take_from_holder(struct fold *f, const struct fold_lane *l, unsigned depth,
                             uint64_t ticks)
{
    const int at = fold_holder(l, depth);
    if (at < 0)
        return;
    const unsigned holder = l->frames[at].node;
    f->nodes[holder].stats.suspended += ticks;
    if (!f->nodes[holder].dirty)
        touch_node(f, holder);
}

/* Paths beyond the limit. Without a phase of their own they are only counted. */
static void close_other(struct fold *f, const struct fold_lane *l, unsigned depth,
                        uint64_t begin, uint64_t end)
{
    const unsigned node = l->frames[depth].node;
    if (depth == 0 || l->frames[depth - 1].node != node) {
        node_record(f, node, begin, end);
        if (node != NODE_OTHER)
            take_from_holder(f, l, depth, end - begin);
        return;
    }
    /* Inside another one: its time is in that one's. It ends first, though, and so
     * may be the first of all. */
    struct node_stats *s = &f->nodes[node].stats;
    if (s->count == 0 || begin < s->first_ticks)
        s->first_ticks = begin;
    if (s->count == 0 || end - begin < s->min)
        s->min = end - begin;
    s->count++;
    if (!f->nodes[node].dirty)
        touch_node(f, node);
}

static void close_frame(struct fold *f, struct fold_lane *l, unsigned depth,
                        uint64_t end)
{
    struct lane_frame *frame = &l->frames[depth];
    if (end < frame->begin_ticks)
        end = frame->begin_ticks;
    if (frame->node == NODE_OTHER || fold_is_beyond(f, frame->node))
        close_other(f, l, depth, frame->begin_ticks, end);
    else
        node_record(f, frame->node, frame->begin_ticks, end);
}

void fold_truncate_lane(struct fold *f, unsigned lane)
{
    struct fold_lane *l = fold_lane(f, lane);
    if (!l || (l->carry.depth == 0 && l->carry.too_deep == 0))
        return;
    l->carry.left_open = l->carry.depth;
    while (l->carry.depth > 0) {
        unsigned depth = --l->carry.depth;
        close_frame(f, l, depth, l->carry.last_ticks);
        f->nodes[l->frames[depth].node].stats.truncated++;
    }
    l->carry.too_deep = 0;
    fold_touch_lane(f, lane);
}

/* ---- Values --------------------------------------------------------------------- */

static uint32_t value_hash(unsigned node, unsigned name, unsigned kind)
{
    uint64_t key = (uint64_t)node << 32 | (uint64_t)name << 8 | kind;
    return (uint32_t)(key * 0x9E3779B97F4A7C15ULL >> 40) & (FOLD_VALUE_HASH - 1);
}

static struct fold_value *find_value(struct fold *f, unsigned node, unsigned name,
                                     unsigned kind)
{
    uint32_t at = value_hash(node, name, kind);
    for (; f->value_hash[at]; at = (at + 1) & (FOLD_VALUE_HASH - 1)) {
        struct fold_value *v = &f->values[f->value_hash[at] - 1];
        if (v->node == node && v->name == name && v->kind == kind)
            return v;
    }
    if (f->value_count >= MAX_VALUES)
        return NULL;
    f->value_hash[at] = (uint16_t)(++f->value_count);
    struct fold_value *v = &f->values[f->value_count - 1];
    *v = (struct fold_value){
        .node = (uint16_t)node, .name = (uint16_t)name, .kind = (uint8_t)kind, .used = 1
    };
    return v;
}

void fold_insert_value(struct fold *f, const struct fold_value *value)
{
    struct fold_value *v = find_value(f, value->node, value->name, value->kind);
    if (v)
        v->stats = value->stats;
}

static void add_value(struct fold *f, unsigned node, unsigned name, unsigned kind,
                      double x, uint64_t ticks)
{
    struct fold_value *v = find_value(f, node, name, kind);
    if (!v) {
        lose(f, &f->nodes[NODE_LOSSES].stats.total);
        return;
    }
    struct value_stats *s = &v->stats;
    if (s->count == 0 || x < s->min)
        s->min = x;
    if (s->count == 0 || x > s->max)
        s->max = x;
    s->count++;
    s->sum += x;
    if (ticks >= s->last_ticks) { /* lanes are folded in any order */
        s->last = x;
        s->last_ticks = ticks;
    }
    if (!v->dirty) {
        v->dirty = 1;
        f->dirty_values[f->dirty_value_count++] = (uint16_t)(v - f->values);
    }
}

/* ---- Longer records ------------------------------------------------------------- */

static unsigned payload_words(unsigned tag)
{
    static const uint8_t count[16] = {
        [TAG_VALUE] = 2, [TAG_STEP] = 1, [TAG_THREAD] = 1, [TAG_OP] = 4,
        [TAG_SPAN] = 3,  [TAG_MARK] = 1, [TAG_LOST] = 1,   [TAG_FILTERED] = 1,
    };
    return count[tag];
}

/* Not before it began. */
static uint64_t step_end(uint64_t told, uint64_t ago, uint64_t begun)
{
    const uint64_t before = ago << STEP_AGO_SHIFT;
    return told > begun && told - begun > before ? told - before : begun;
}

static void on_step(struct fold *f, struct fold_lane *l, uint64_t ticks, uint64_t p)
{
    const unsigned kind = (unsigned)(p >> STEP_KIND_SHIFT) & 0xff;
    const uint64_t samples = kind != STEP_END ? p & STEP_SAMPLES_MASK : 0;
    if (kind == STEP_END)
        ticks = step_end(ticks, p & STEP_SAMPLES_MASK, l->carry.last_step);
    if (kind <= STEP_END && l->carry.last_step)
        node_record(f, NODE_STEP, l->carry.last_step, ticks);
    if (kind == STEP_CANCEL && l->carry.last_step && l->carry.steps) {
        l->carry.steps--;
        l->carry.samples -= samples < l->carry.samples ? samples : l->carry.samples;
    }
    if (kind <= STEP_CANCEL)
        l->carry.last_step = kind == STEP_NEXT ? ticks : 0;
    if (kind == STEP_NEXT)
        l->carry.steps++;
    if (kind != STEP_CANCEL)
        l->carry.samples += samples;
}

static void on_op(struct fold *f, unsigned node, const uint64_t *p)
{
    if (node < FIRST_NODE || node >= MAX_NODES)
        return;
    struct node_stats *s = &f->nodes[node].stats;
    if (!f->nodes[node].dirty)
        touch_node(f, node);
    const uint32_t missing = UINT32_MAX;
    uint32_t before = (uint32_t)p[1], after = (uint32_t)p[2], peak = (uint32_t)p[3];
    if (s->op_count == 0 || s->mem_peak_kb == missing ||
        (peak != missing && peak > s->mem_peak_kb))
        s->mem_peak_kb = peak;
    s->op_count++;
    s->op_cpu_ns += p[0];
    s->mem_before_kb = before;
    s->mem_after_kb = after;
}

static void on_span(struct fold *f, uint64_t ticks, const uint64_t *p)
{
    unsigned site = (unsigned)(p[0] >> 32) & (MAX_SITES - 1);
    unsigned kind = (unsigned)(p[0] >> 24) & 0xff;
    if (kind != SPAN_BEGIN && kind != SPAN_END)
        return;
    unsigned node = find_child(f, NODE_SPANS, site);
    if (!f->nodes[node].dirty)
        touch_node(f, node);
    if (kind == SPAN_BEGIN) {
        f->nodes[node].stats.begun++;
        return;
    }
    uint64_t active = p[1], wall = p[2] < ticks ? p[2] : 0;
    node_record(f, node, ticks - wall, ticks);
    f->nodes[node].stats.suspended += wall > active ? wall - active : 0;
}

/* Handles the record whose head is words[0]; returns how many words it takes. */
static __attribute__((noinline)) size_t fold_record(struct fold *f, unsigned lane,
                                                    const uint64_t *words, size_t room,
                                                    uint64_t ticks)
{
    struct fold_lane *l = &f->lanes[lane];
    unsigned tag = words[0] & 0xffff, need = payload_words(tag);
    uint64_t p[4] = { 0 };
    if (tag == TAG_PAD || tag == TAG_CONT || need == 0)
        return 1;
    l->carry.events++;
    for (unsigned i = 0; i < need; i++) {
        uint64_t w = i + 1 < room ? __atomic_load_n(&words[i + 1], __ATOMIC_RELAXED)
                                  : 0;
        if ((w & 0xffff) != TAG_CONT)
            return i + 1; /* payload missing: damaged; leave the rest to the loop */
        p[i] = w >> 16;
    }
    unsigned depth = l->carry.depth;
    unsigned root = lane < ROOT_NODES ? lane : ROOT_NODES - 1;
    unsigned node = depth ? l->frames[depth - 1].node : root;
    switch (tag) {
    case TAG_VALUE: {
        uint64_t bits = (p[0] & 0xffffffff) << 32 | (p[1] & 0xffffffff);
        unsigned kind = (unsigned)(p[1] >> 32) & 0xff;
        double x;
        memcpy(&x, &bits, sizeof x);
        unsigned name = (unsigned)(p[0] >> 32) & (MAX_SITES - 1);
        add_value(f, kind == VALUE_ZONE ? node : 0xffff, name, kind, x, ticks);
        break;
    }
    case TAG_STEP:
        on_step(f, l, ticks, p[0]);
        break;
    case TAG_THREAD:
        /* A new thread took the lane over: what the old one left open is cut. */
        fold_truncate_lane(f, lane);
        l->carry.left_open = 0;
        l->carry.tid = (uint32_t)p[0];
        l->carry.last_step = 0;
        break;
    case TAG_OP:
        on_op(f, node, p);
        break;
    case TAG_SPAN:
        on_span(f, ticks, p);
        break;
    case TAG_FILTERED:
        l->carry.filtered += p[0];
        break;
    default:
        break;
    }
    return need + 1;
}

/* ---- The loop ------------------------------------------------------------------- */

/* An end that does not match the innermost zone, or one beyond the limit. If its zone is
 * open further out, the ones inside lost their ends, or will end later (zones that cross):
 * nothing is inside of what has ended, so they are closed with it and marked. A crossing
 * zone gets the part they share; its own end finds no begin. Returns the new depth. */
static __attribute__((noinline)) unsigned end_mismatch(struct fold *f,
                                                       struct fold_lane *l,
                                                       unsigned depth, unsigned site,
                                                       uint64_t now)
{
    unsigned at = depth;
    while (at > 0 && l->frames[at - 1].site != site)
        at--;
    if (at == 0) {
        l->carry.orphan_ends++;
        return depth;
    }
    while (depth > at) {
        depth--;
        close_frame(f, l, depth, now);
        f->nodes[l->frames[depth].node].stats.unbalanced++;
        l->carry.unbalanced++;
    }
    depth--;
    close_frame(f, l, depth, now);
    return depth;
}

uint64_t fold_start(const uint64_t *words, size_t count, uint64_t base_ticks,
                    uint64_t last_ticks)
{
    if (base_ticks <= last_ticks)
        return last_ticks;
    for (size_t i = 0; i < count; i++) {
        uint64_t w = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
        unsigned tag = w & 0xffff;
        if (w == 0 || tag == TAG_PAD || tag == TAG_CONT)
            continue;
        int64_t passed = (int64_t)((w & ~0xffffULL) - (base_ticks << 16)) >> 16;
        if (passed >= 0)
            break;
        uint64_t back = (uint64_t)-passed;
        return back < base_ticks - last_ticks ? base_ticks - back : last_ticks;
    }
    return base_ticks;
}

void fold_words(struct fold *f, unsigned lane, const uint64_t *words, size_t count,
                uint64_t base_ticks)
{
    struct fold_lane *l = fold_lane(f, lane);
    if (!l)
        return;
    fold_touch_lane(f, lane);
    struct lane_carry *c = &l->carry;
    const unsigned root = lane < ROOT_NODES ? lane : ROOT_NODES - 1;
    unsigned depth = c->depth;
    /* Ticks are kept shifted: a word minus this is the time passed, modulo 2^48,
     * and its sign tells a step back. */
    uint64_t now = fold_start(words, count, base_ticks, c->last_ticks);
    uint64_t last = c->last_ticks; /* of the last event: a block's base is none */
    uint64_t events = 0;

    for (size_t i = 0; i < count;) {
        uint64_t w = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
        unsigned tag = w & 0xffff;
        if (__builtin_expect(tag < 16, 0)) {
            if (w == 0) {
                i++;
                continue;
            }
            if (tag == TAG_PAD || tag == TAG_CONT) {
                i++;
                continue;
            }
        }
        uint64_t previous = last;
        int64_t passed = (int64_t)((w & ~0xffffULL) - (now << 16)) >> 16;
        /* A handler's events may stand after an event that is a little later. */
        now += passed > 0 ? (uint64_t)passed : 0;
        last = now;
        if (__builtin_expect(tag < 16, 0)) {
            c->depth = depth;
            c->last_ticks = previous; /* where a change of threads cuts what is open */
            i += fold_record(f, lane, words + i, count - i, now);
            depth = c->depth;
            continue;
        }
        i++;
        events++;
        unsigned site = tag >> 1;
        if (!(tag & 1)) {
            if (__builtin_expect(depth == MAX_DEPTH, 0)) {
                c->too_deep++;
                c->deep_zones++;
                continue;
            }
            unsigned parent = depth ? l->frames[depth - 1].node : root;
            unsigned child = f->nodes[parent].last_child;
            /* last_child 0 is the root of lane 0, whose site 0 no word has. */
            if (__builtin_expect(f->nodes[child].site != site, 0))
                child = find_path(f, l, depth, root, site);
            l->frames[depth] = (struct lane_frame){ now, (uint16_t)child,
                                                    (uint16_t)site, 0 };
            depth++;
            continue;
        }
        if (__builtin_expect(c->too_deep != 0, 0)) {
            c->too_deep--;
            continue;
        }
        /* The site of a path's node is that of its zones; beyond the limit it is none. */
        if (__builtin_expect(
                depth == 0 || f->nodes[l->frames[depth - 1].node].site != site, 0)) {
            depth = end_mismatch(f, l, depth, site, now);
            continue;
        }
        depth--;
        node_record(f, l->frames[depth].node, l->frames[depth].begin_ticks, now);
    }
    c->depth = depth;
    c->last_ticks = last;
    c->events += events;
}
