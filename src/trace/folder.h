/* folder.h: count the sealed blocks of one process file, and give space back.
 *
 * A folder belongs to one user: the supervisor's drain, the drain thread of a session
 * without one, a recording thread that found no free block, or `sonde recover`. All
 * of them may try at once; the fold lock lets one through, and what it did stands in
 * the file, so the next one goes on from there.
 *
 * A pass, under the lock:
 *   1. bring the fold in memory up to the file, if somebody else folded meanwhile
 *   2. count SEALED blocks in sequence (and, of a dead process, OPEN ones)
 *   3. publish the statistics: one store makes them the truth (cells.h)
 *   4. mark the blocks FOLDED
 *   5. keep some FREE blocks ready: grow the file, or zero the oldest FOLDED ones
 * A kill between 3 and 4 leaves blocks SEALED whose sequence is below the lane's
 * carry: the next pass sees that they are counted and only marks them.
 */
#ifndef SONDE_TRACE_FOLDER_H
#define SONDE_TRACE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/file.h"
#include "trace/fold.h"

struct folder {
    struct tracefile *file;  /* borrowed */
    struct fold *fold;       /* our cache of the statistics; NULL until needed */
    uint64_t token;          /* ours, unlike any other folder's */
    uint64_t commit;         /* the cache is the file as of this commit */
    bool finished;           /* a dead process's file, all counted */
    uint64_t blocks, events; /* counted by this folder */
    unsigned free_target;
    struct folder_room *room; /* made with the first cache */
    uint32_t queue_head, queue_count;
};

/* What a folder remembers beside the statistics. */
struct folder_room {
    uint32_t queue[MAX_BLOCKS]; /* a ring: FOLDED blocks, oldest first */
    struct {
        uint64_t since; /* ticks when the block was first found with a hole */
        uint32_t seq;   /* which block of the lane; 0 none */
    } holes[MAX_LANES];
};

void folder_init(struct folder *folder, struct tracefile *file);
void folder_release(struct folder *folder);

/* One pass over at most `max_blocks` blocks. `alive`: the owner still runs (decided
 * before the call). Returns blocks counted, −EAGAIN when somebody else is folding. */
int folder_pass(struct folder *folder, bool alive, unsigned max_blocks);

/* A hint, without the lock: is there anything to count, or too little space? */
bool folder_needed(struct folder *folder, bool alive);

#endif
