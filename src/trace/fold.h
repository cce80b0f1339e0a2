/* fold.h: events become statistics.
 *
 * A fold is the statistics of one process in memory: call paths, histograms, values,
 * and for each lane the zones that are open. Words go in block by block, in order
 * within a lane; any interleaving of lanes gives the same result. Who owns the fold
 * decides what becomes of it: a folder publishes it into the file (cells.h), a
 * reader shows it.
 *
 * A fold is one fixed-size object of about 17 MiB of address space, of which only
 * what is used is ever touched; made by mmap, so that it can be made inside a
 * profiled program without its allocator.
 */
#ifndef SONDE_TRACE_FOLD_H
#define SONDE_TRACE_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

struct fold_node {
    uint16_t site, parent;
    uint16_t last_child; /* the child found last: most loops repeat themselves */
    uint8_t used, dirty;
    uint64_t dirty_chunks; /* octaves touched since the last publish */
    struct node_stats stats;
};

struct fold_value {
    uint16_t node, name;
    uint8_t kind, used, dirty;
    struct value_stats stats;
};

struct fold_lane {
    uint8_t used, dirty;
    struct lane_carry carry;
    struct lane_frame frames[MAX_DEPTH];
};

enum { FOLD_HASH = 4 * MAX_NODES, FOLD_VALUE_HASH = 4 * MAX_VALUES };

struct fold {
    /* The phase of a site, for paths beyond the limit; NULL: none has any. */
    unsigned (*phase_of)(const void *arg, unsigned site);
    const void *phase_arg;
    uint32_t node_count; /* numbers below are in use or reserved */
    uint32_t lane_count; /* numbers from here on are not in use */
    uint32_t chunk_count, value_count;
    uint32_t dirty_node_count, dirty_lane_count, dirty_value_count;
    uint16_t dirty_nodes[MAX_NODES], dirty_lanes[MAX_LANES], dirty_values[MAX_VALUES];
    uint16_t hash[FOLD_HASH];             /* (parent, site) → node */
    uint16_t value_hash[FOLD_VALUE_HASH]; /* (node, name, kind) → value + 1 */
    struct fold_node nodes[MAX_NODES];
    struct fold_lane lanes[MAX_LANES];
    struct fold_value values[MAX_VALUES];
    uint64_t chunks[MAX_CHUNKS][LOGHIST_SUBS];
};

int fold_new(struct fold **ret_fold);
void fold_free(struct fold *fold);

/* Where the ticks of a block begin. A thread reads the clock, then may have to wait for
 * a block to write into: the first word may be older than the block, though not older
 * than the lane's last event (0: none). */
uint64_t fold_start(const uint64_t *words, size_t count, uint64_t base_ticks,
                    uint64_t last_ticks);
/* Counts `count` words of a block of `lane` whose first tick is near base_ticks. */
void fold_words(struct fold *fold, unsigned lane, const uint64_t *words, size_t count,
                uint64_t base_ticks);
/* Ends all open zones of the lane at its last event, marked truncated: the process
 * is dead, or the thread is gone. */
void fold_truncate_lane(struct fold *fold, unsigned lane);

/* The lane's state, made on first use with next_seq 1; NULL past MAX_LANES. */
struct fold_lane *fold_lane(struct fold *fold, unsigned lane);
/* Marks for the next publish. */
void fold_touch_lane(struct fold *fold, unsigned lane);
/* Puts a node at a given number (loading); false when it cannot be right. */
bool fold_insert_node(struct fold *fold, unsigned number, unsigned parent,
                      unsigned site, const struct node_stats *stats);
void fold_insert_value(struct fold *fold, const struct fold_value *value);
/* Sets a lane; `frames` holds lane_frames(carry) of them, which are cut at the first
 * that names no node. False, and nothing set, when the carry cannot be right. */
bool fold_insert_lane(struct fold *fold, unsigned number,
                      const struct lane_carry *carry, const struct lane_frame *frames);
/* Frames that must be kept: the open ones, or those that death cut. */
static inline unsigned lane_frames(const struct lane_carry *carry)
{
    return carry->depth > carry->left_open ? carry->depth : (unsigned)carry->left_open;
}
/* "(other paths)" of one phase is a child of NODE_OTHER. In memory its site has a bit that
 * no site has. */
enum { BEYOND_SITE = 0x8000, BEYOND_PHASES = 32 };
static inline bool fold_is_beyond(const struct fold *fold, unsigned node)
{
    return fold->nodes[node].site & BEYOND_SITE;
}
/* Where the time of an open zone is counted too: the frame around it that has a path, or
 * is beyond; −1: none. */
static inline int fold_holder(const struct fold_lane *lane, unsigned depth)
{
    int at = (int)depth - 1;
    while (at >= 0 && lane->frames[at].node == NODE_OTHER)
        at--;
    return at;
}
/* Forgets what is dirty (after publishing). */
void fold_clean(struct fold *fold);

#endif
