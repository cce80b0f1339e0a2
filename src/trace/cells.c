/* cells.c: load, publish and repair the two-copy cells. See cells.h. */
#include "trace/cells.h"

#include <string.h>

#include "base/error.h"

/* The copy to believe: the largest number that is not above the commit. */
static int current_copy(const uint64_t *seq, uint64_t commit)
{
    bool a = seq[0] != 0 && seq[0] <= commit, b = seq[1] != 0 && seq[1] <= commit;
    if (a && b)
        return seq[0] > seq[1] ? 0 : 1;
    return a ? 0 : b ? 1 : -1;
}

/* ---- Loading --------------------------------------------------------------------- */

static const uint8_t *item(const struct blockview *view, const uint32_t *dir,
                           unsigned number, unsigned per_block, size_t size)
{
    uint32_t at = dir[number / per_block];
    const uint8_t *block = at ? view->get(view->arg, at) : NULL;
    return block ? block + (size_t)(number % per_block) * size : NULL;
}

static unsigned load_chunks(struct fold *f, unsigned node,
                            const struct trace_head *head, const struct blockview *view,
                            uint64_t commit)
{
    struct node_stats *s = &f->nodes[node].stats;
    unsigned bad = 0;
    for (unsigned octave = 0; octave < LOGHIST_CHUNKS; octave++) {
        unsigned number = s->chunk[octave];
        if (number == 0)
            continue;
        s->chunk[octave] = 0;
        bad++;
        if (number > MAX_CHUNKS)
            continue;
        const void *at = item(view, head->chunks, number - 1, CHUNKS_PER_BLOCK, 1088);
        if (!at)
            continue;
        struct chunk_cell cell; /* a private copy: the owner may be writing */
        memcpy(&cell, at, sizeof cell);
        int k = current_copy(cell.seq, commit);
        if (k < 0 || cell.owner != ((uint64_t)node << 8 | octave))
            continue;
        memcpy(f->chunks[number - 1], cell.copy[k], sizeof cell.copy[k]);
        s->chunk[octave] = (uint16_t)number;
        if (number > f->chunk_count)
            f->chunk_count = number;
        bad--;
    }
    s->chunk[LOGHIST_CHUNKS] = 0;
    return bad;
}

static unsigned load_nodes(struct fold *f, const struct trace_head *head,
                           const struct blockview *view, uint64_t commit)
{
    unsigned bad = 0;
    for (unsigned i = 0; i < MAX_NODES; i++) {
        const void *at = item(view, head->nodes, i, NODES_PER_BLOCK, 512);
        if (!at) {
            i |= NODES_PER_BLOCK - 1; /* the whole block is missing */
            continue;
        }
        struct node_cell cell;
        memcpy(&cell, at, sizeof cell);
        int k = current_copy(cell.seq, commit);
        if (k < 0)
            continue;
        /* A parent has a smaller number: no cycles can come from the file. */
        if (i >= FIRST_NODE && cell.parent >= i) {
            bad++;
            continue;
        }
        if (!fold_insert_node(f, i, cell.parent, cell.site & (MAX_SITES - 1),
                              &cell.copy[k])) {
            bad++;
            continue;
        }
        bad += load_chunks(f, i, head, view, commit);
    }
    return bad;
}

static bool load_lane(struct fold *f, unsigned number, const struct lane_cell *cell,
                      int k)
{
    struct lane_carry carry; /* a private copy: the owner may be writing */
    memcpy(&carry, &cell->carry[k], sizeof carry);
    return fold_insert_lane(f, number, &carry, cell->frames[k]);
}

static unsigned load_lanes(struct fold *f, const struct trace_head *head,
                           const struct blockview *view, uint64_t commit)
{
    unsigned bad = 0;
    for (unsigned i = 0; i < MAX_LANES; i++) {
        const struct lane_cell *at = (const void *)item(view, head->lanes, i,
                                                        LANES_PER_BLOCK, 8192);
        if (!at) {
            i |= LANES_PER_BLOCK - 1;
            continue;
        }
        uint64_t seq[2] = { at->seq[0], at->seq[1] };
        int k = current_copy(seq, commit);
        if (k >= 0 && !load_lane(f, i, at, k))
            bad++;
    }
    return bad;
}

static void load_values(struct fold *f, const struct trace_head *head,
                        const struct blockview *view, uint64_t commit)
{
    for (unsigned i = 0; i < MAX_VALUES; i++) {
        const void *at = item(view, head->values, i, VALUES_PER_BLOCK, 128);
        if (!at)
            return;
        struct value_cell cell;
        memcpy(&cell, at, sizeof cell);
        int k = current_copy(cell.seq, commit);
        if (k < 0)
            return; /* values are numbered without gaps */
        struct fold_value v = { .node = cell.node,
                                .name = cell.name & (MAX_SITES - 1),
                                .kind = (uint8_t)cell.kind,
                                .stats = cell.copy[k] };
        fold_insert_value(f, &v);
    }
}

unsigned cells_load(struct fold *f, const struct trace_head *head,
                    const struct blockview *view, uint64_t commit)
{
    unsigned bad = load_nodes(f, head, view, commit);
    bad += load_lanes(f, head, view, commit);
    load_values(f, head, view, commit);
    return bad;
}

/* ---- Publishing ------------------------------------------------------------------ */

/* All blocks a publish will write to, before it writes anything. */
static int reserve_blocks(const struct fold *f, struct tracefile *file)
{
    struct trace_head *h = tracefile_head(file);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < f->dirty_node_count; i++)
        rc = tracefile_need(file, h->nodes, f->dirty_nodes[i] / NODES_PER_BLOCK,
                            BLOCK_NODES);
    for (uint32_t i = 0; rc == 0 && i * CHUNKS_PER_BLOCK < f->chunk_count; i++)
        rc = tracefile_need(file, h->chunks, i, BLOCK_CHUNKS);
    for (uint32_t i = 0; rc == 0 && i < f->dirty_lane_count; i++)
        rc = tracefile_need(file, h->lanes, f->dirty_lanes[i] / LANES_PER_BLOCK,
                            BLOCK_LANES);
    for (uint32_t i = 0; rc == 0 && i * VALUES_PER_BLOCK < f->value_count; i++)
        rc = tracefile_need(file, h->values, i, BLOCK_VALUES);
    return rc;
}

/* The copy to write: the one that is not the truth. */
static inline int other_copy(const uint64_t *seq)
{
    return seq[0] <= seq[1] ? 0 : 1;
}

static inline void stamp(uint64_t *seq, uint64_t number)
{
    __atomic_store_n(seq, number, __ATOMIC_RELEASE);
}

static int publish_chunks(struct fold *f, struct tracefile *file, unsigned node,
                          uint64_t number)
{
    struct fold_node *n = &f->nodes[node];
    for (uint64_t left = n->dirty_chunks; left; left &= left - 1) {
        unsigned octave = (unsigned)__builtin_ctzll(left);
        unsigned chunk = n->stats.chunk[octave] - 1u;
        struct chunk_cell *cell = tracefile_chunk(file, chunk);
        if (!cell)
            return SONDE_E_FORMAT;
        int k = other_copy(cell->seq);
        cell->owner = (uint64_t)node << 8 | octave;
        memcpy(cell->copy[k], f->chunks[chunk], sizeof cell->copy[k]);
        stamp(&cell->seq[k], number);
    }
    return 0;
}

static int publish_node(struct fold *f, struct tracefile *file, unsigned node,
                        uint64_t number)
{
    struct node_cell *cell = tracefile_node(file, node);
    if (!cell)
        return SONDE_E_FORMAT;
    int k = other_copy(cell->seq);
    cell->parent = f->nodes[node].parent;
    cell->site = f->nodes[node].site;
    cell->copy[k] = f->nodes[node].stats;
    stamp(&cell->seq[k], number);
    return publish_chunks(f, file, node, number);
}

static int publish_lane(struct fold *f, struct tracefile *file, unsigned lane,
                        uint64_t number)
{
    struct lane_cell *cell = tracefile_lane(file, lane);
    if (!cell)
        return SONDE_E_FORMAT;
    const struct fold_lane *l = &f->lanes[lane];
    int k = other_copy(cell->seq);
    cell->carry[k] = l->carry;
    memcpy(cell->frames[k], l->frames, lane_frames(&l->carry) * sizeof l->frames[0]);
    stamp(&cell->seq[k], number);
    return 0;
}

static int publish_value(struct fold *f, struct tracefile *file, unsigned value,
                         uint64_t number)
{
    struct value_cell *cell = tracefile_value(file, value);
    if (!cell)
        return SONDE_E_FORMAT;
    const struct fold_value *v = &f->values[value];
    int k = other_copy(cell->seq);
    cell->node = v->node;
    cell->name = v->name;
    cell->kind = v->kind;
    cell->copy[k] = v->stats;
    stamp(&cell->seq[k], number);
    return 0;
}

/* A new path has counts of zero until its first zone ends, but an open frame may
 * already name it: it must be in the file with its parents. */
static void touch_open_paths(struct fold *f)
{
    for (uint32_t i = 0; i < f->dirty_lane_count; i++) {
        const struct fold_lane *l = &f->lanes[f->dirty_lanes[i]];
        for (unsigned d = 0; d < l->carry.depth; d++) {
            struct fold_node *n = &f->nodes[l->frames[d].node];
            if (n->dirty)
                continue;
            n->dirty = 1;
            f->dirty_nodes[f->dirty_node_count++] = l->frames[d].node;
        }
    }
}

int cells_publish(struct fold *f, struct tracefile *file, uint64_t token)
{
    struct trace_live *live = tracefile_live(file);
    uint64_t number = __atomic_load_n(&live->commit, __ATOMIC_ACQUIRE) + 1;
    touch_open_paths(f);
    int rc = reserve_blocks(f, file);
    /* First of all say that we are at it: if we are killed before the commit, a folder
     * whose cache is as old as the commit must still find that somebody else was here,
     * reload, and erase our copies. Otherwise its own commit would make them true. */
    __atomic_store_n(&live->fold_token, token, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; rc == 0 && i < f->dirty_node_count; i++)
        rc = publish_node(f, file, f->dirty_nodes[i], number);
    for (uint32_t i = 0; rc == 0 && i < f->dirty_lane_count; i++)
        rc = publish_lane(f, file, f->dirty_lanes[i], number);
    for (uint32_t i = 0; rc == 0 && i < f->dirty_value_count; i++)
        rc = publish_value(f, file, f->dirty_values[i], number);
    if (rc < 0) {
        cells_repair(file);
        return rc;
    }
    live->node_count = f->node_count;
    live->chunk_count = f->chunk_count;
    live->value_count = f->value_count;
    /* Release: everything above is in the file before it becomes the truth. */
    __atomic_store_n(&live->commit, number, __ATOMIC_RELEASE);
    fold_clean(f);
    return 0;
}

/* ---- Repair ---------------------------------------------------------------------- */

static void erase_above(uint64_t *seq, uint64_t commit)
{
    for (int k = 0; k < 2; k++)
        if (seq[k] > commit)
            stamp(&seq[k], 0);
}

void cells_repair(struct tracefile *file)
{
    uint64_t commit = __atomic_load_n(&tracefile_live(file)->commit, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < MAX_NODES; i++) {
        struct node_cell *cell = tracefile_node(file, i);
        if (cell)
            erase_above(cell->seq, commit);
        else
            i |= NODES_PER_BLOCK - 1;
    }
    for (unsigned i = 0; i < MAX_LANES; i++) {
        struct lane_cell *cell = tracefile_lane(file, i);
        if (cell)
            erase_above(cell->seq, commit);
        else
            i |= LANES_PER_BLOCK - 1;
    }
    for (unsigned i = 0; i < MAX_CHUNKS; i++) {
        struct chunk_cell *cell = tracefile_chunk(file, i);
        if (!cell)
            break; /* chunk blocks come in order */
        erase_above(cell->seq, commit);
    }
    for (unsigned i = 0; i < MAX_VALUES; i++) {
        struct value_cell *cell = tracefile_value(file, i);
        if (!cell)
            break;
        erase_above(cell->seq, commit);
    }
}
