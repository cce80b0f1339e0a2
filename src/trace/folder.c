/* folder.c: a pass over one process file. See folder.h. */
#include "trace/folder.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "trace/cells.h"
#include "trace/crc32c.h"

enum { BATCH = 128 }; /* blocks counted between two publishes, at most */

/* A zero word in a sealed block is a slot that somebody reserved and has not
 * written yet: code interrupted by a signal handler that went on to fill the block.
 * It will be written when the handler returns; we wait this long before calling it
 * abandoned (longjmp out of the handler) and counting it as lost. */
#define HOLE_GRACE_NS 1e9

struct pending {
    uint32_t block, seq;
    uint16_t lane;
    bool open;
};

void folder_init(struct folder *folder, struct tracefile *file)
{
    static uint64_t counter;
    uint64_t number = __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED);
    *folder = (struct folder){ .file = file };
    folder->token = ticks_now() ^ (uint64_t)getpid() << 40 ^ number << 20;
}

void folder_release(struct folder *folder)
{
    fold_free(folder->fold);
    folder->fold = NULL;
    if (folder->room)
        (void)munmap(folder->room, sizeof *folder->room);
    folder->room = NULL;
}

static uint32_t block_count(struct tracefile *f)
{
    uint32_t n = __atomic_load_n(&tracefile_live(f)->next_block, __ATOMIC_ACQUIRE);
    return n < f->cap_blocks ? n : (uint32_t)f->cap_blocks;
}

/* ---- The cache ------------------------------------------------------------------- */

static const uint8_t *mapped_block(void *arg, uint32_t block)
{
    return tracefile_block(arg, block);
}

/* Heap sort on fold_order, in place: no allocation, no recursion. */
static uint64_t order_of(struct folder *fo, uint32_t block)
{
    const uint8_t *p = tracefile_block(fo->file, block);
    return p ? ((const struct events_head *)p)->fold_order : 0;
}

static void sift_down(struct folder *fo, uint32_t root, uint32_t count)
{
    uint32_t *q = fo->room->queue;
    for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && order_of(fo, q[child]) < order_of(fo, q[child + 1]))
            child++;
        if (order_of(fo, q[root]) >= order_of(fo, q[child]))
            return;
        uint32_t swap = q[root];
        q[root] = q[child];
        q[child] = swap;
    }
}

static int build_queue(struct folder *fo)
{
    if (!fo->room) {
        void *p = mmap(NULL, sizeof *fo->room, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return -ENOMEM;
        fo->room = p;
    }
    uint32_t *queue = fo->room->queue;
    uint32_t blocks = block_count(fo->file), n = 0;
    for (uint32_t i = 2; i < blocks; i++) {
        const uint64_t *entry = tracefile_entry(fo->file, i);
        uint64_t w = entry ? __atomic_load_n(entry, __ATOMIC_RELAXED) : 0;
        if (block_kind(w) == BLOCK_EVENTS && block_state(w) == STATE_FOLDED)
            queue[n++] = i;
    }
    for (uint32_t i = n / 2; i-- > 0;)
        sift_down(fo, i, n);
    for (uint32_t end = n; end > 1; end--) {
        uint32_t swap = queue[0];
        queue[0] = queue[end - 1];
        queue[end - 1] = swap;
        sift_down(fo, 0, end - 1);
    }
    fo->queue_head = 0;
    fo->queue_count = n;
    return 0;
}

/* A site is in the file before its first word. */
static unsigned phase_of_site(const void *file, unsigned site)
{
    const struct site_entry *e = tracefile_site((struct tracefile *)file, site);
    return e ? e->phase : 0;
}

static int load_cache(struct folder *fo)
{
    struct trace_live *live = tracefile_live(fo->file);
    uint64_t commit = __atomic_load_n(&live->commit, __ATOMIC_ACQUIRE);
    if (fo->fold && fo->commit == commit &&
        __atomic_load_n(&live->fold_token, __ATOMIC_RELAXED) == fo->token)
        return 0;
    fold_free(fo->fold);
    fo->fold = NULL;
    int rc = fold_new(&fo->fold);
    if (rc < 0)
        return rc;
    fo->fold->phase_of = phase_of_site;
    fo->fold->phase_arg = fo->file;
    cells_repair(fo->file);
    const struct blockview view = { mapped_block, fo->file };
    (void)cells_load(fo->fold, tracefile_head(fo->file), &view, commit);
    fo->commit = commit;
    return build_queue(fo);
}

static void drop_cache(struct folder *fo)
{
    fold_free(fo->fold);
    fo->fold = NULL;
}

/* ---- What is there to count ------------------------------------------------------ */

bool folder_needed(struct folder *fo, bool alive)
{
    if (fo->finished)
        return false;
    if (!alive)
        return true;
    uint32_t count = block_count(fo->file), free_blocks = 0;
    for (uint32_t i = 2; i < count; i++) {
        const uint64_t *entry = tracefile_entry(fo->file, i);
        if (!entry)
            break;
        uint64_t w = __atomic_load_n(entry, __ATOMIC_RELAXED);
        if (block_kind(w) != BLOCK_EVENTS)
            continue;
        if (block_state(w) == STATE_SEALED)
            return true;
        free_blocks += block_state(w) == STATE_FREE;
    }
    return free_blocks < fo->free_target / 2;
}

static bool before(const struct pending *a, const struct pending *b)
{
    return a->lane != b->lane ? a->lane < b->lane : a->seq < b->seq;
}

/* Insertion into a sorted list that keeps the BATCH smallest per order. */
static unsigned insert_pending(struct pending *list, unsigned count, struct pending p)
{
    unsigned at = count;
    if (count == BATCH) {
        if (!before(&p, &list[count - 1]))
            return count;
        at = count - 1;
    } else {
        count++;
    }
    while (at > 0 && before(&p, &list[at - 1])) {
        list[at] = list[at - 1];
        at--;
    }
    list[at] = p;
    return count;
}

static void queue_push(struct folder *fo, uint32_t block)
{
    if (fo->queue_count < MAX_BLOCKS)
        fo->room->queue[(fo->queue_head + fo->queue_count++) % MAX_BLOCKS] = block;
}

/* The block is counted: it may be given back from now on. */
static void mark_folded(struct folder *fo, const struct pending *p)
{
    struct trace_live *live = tracefile_live(fo->file);
    uint64_t *entry = tracefile_entry(fo->file, p->block);
    uint8_t *block = tracefile_block(fo->file, p->block);
    if (!entry || !block)
        return;
    ((struct events_head *)block)->fold_order = ++live->fold_order;
    queue_push(fo, p->block);
    __atomic_store_n(entry, block_word(BLOCK_EVENTS, STATE_FOLDED, p->lane, p->seq),
                     __ATOMIC_RELEASE);
}

/* Blocks to count, sorted by lane and sequence. On the way, blocks that are counted
 * already but were not marked (a kill between publish and mark) are marked. */
static unsigned collect(struct folder *fo, bool alive, struct pending *list)
{
    uint32_t blocks = block_count(fo->file);
    unsigned count = 0;
    for (uint32_t i = 2; i < blocks; i++) {
        uint64_t *entry = tracefile_entry(fo->file, i);
        uint64_t w = entry ? __atomic_load_n(entry, __ATOMIC_ACQUIRE) : 0;
        unsigned state = block_state(w), lane = block_lane(w);
        if (block_kind(w) != BLOCK_EVENTS ||
            (state != STATE_SEALED && (alive || state != STATE_OPEN)))
            continue;
        struct fold_lane *l = fold_lane(fo->fold, lane);
        if (!l)
            continue;
        struct pending p = { i, block_seq(w), (uint16_t)lane, state == STATE_OPEN };
        if (block_seq(w) < l->carry.next_seq)
            mark_folded(fo, &p);
        else
            count = insert_pending(list, count, p);
    }
    return count;
}

static unsigned count_holes(const uint64_t *words)
{
    unsigned holes = 0;
    for (unsigned i = 0; i < EVENTS_WORDS; i++)
        holes += __atomic_load_n(&words[i], __ATOMIC_RELAXED) == 0;
    return holes;
}

/* True when the block must wait for an interrupted writer. Each lane has a time of its
 * own: what others do meanwhile does not prolong it. */
static bool wait_for_hole(struct folder *fo, const struct pending *p)
{
    uint64_t now = ticks_now(), *since = &fo->room->holes[p->lane].since;
    if (fo->room->holes[p->lane].seq != p->seq) {
        fo->room->holes[p->lane].seq = p->seq;
        *since = now;
    }
    return (double)(now - *since) < HOLE_GRACE_NS * ticks_per_ns();
}

/* Counts one block; false when it (and so its lane) must wait. */
static bool count_block(struct folder *fo, const struct pending *p, bool alive)
{
    uint8_t *block = tracefile_block(fo->file, p->block);
    struct fold_lane *l = fold_lane(fo->fold, p->lane);
    if (!block || !l)
        return false;
    if (p->seq != l->carry.next_seq && alive)
        return false;
    struct events_head *h = (struct events_head *)block;
    const uint64_t *words = (const uint64_t *)(block + EVENTS_OFFSET);
    unsigned holes = p->open ? 0 : count_holes(words);
    if (holes && alive && wait_for_hole(fo, p))
        return false;
    uint64_t events_before = l->carry.events;
    fold_words(fo->fold, p->lane, words, EVENTS_WORDS, h->base_ticks);
    l->carry.next_seq = p->seq + 1;
    l->carry.holes += holes;
    fo->events += l->carry.events - events_before;
    h->crc = crc32c_words(words, EVENTS_WORDS);
    /* Release: killed in between, the block must not seem damaged. */
    __atomic_store_n(&h->crc_set, 1, __ATOMIC_RELEASE);
    return true;
}

/* ---- Space ----------------------------------------------------------------------- */

/* The FOLDED block that was counted first: its events are the oldest. */
static uint64_t *oldest_folded(struct folder *fo, uint32_t *ret_block)
{
    while (fo->queue_count > 0) {
        uint32_t block = fo->room->queue[fo->queue_head];
        fo->queue_head = (fo->queue_head + 1) % MAX_BLOCKS;
        fo->queue_count--;
        uint64_t *entry = tracefile_entry(fo->file, block);
        uint64_t w = entry ? __atomic_load_n(entry, __ATOMIC_RELAXED) : 0;
        if (block_kind(w) == BLOCK_EVENTS && block_state(w) == STATE_FOLDED) {
            *ret_block = block;
            return entry;
        }
    }
    return NULL;
}

static void clean_block(struct folder *fo, uint64_t *entry, uint32_t block)
{
    uint8_t *p = tracefile_block(fo->file, block);
    if (!p)
        return;
    __atomic_store_n(entry, block_word(BLOCK_EVENTS, STATE_CLEANING, 0, 0),
                     __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* the zeros come after */
    memset(p, 0, BLOCK_SIZE);
    /* Release: whoever takes it must find zeros. */
    __atomic_store_n(entry, block_word(BLOCK_EVENTS, STATE_FREE, 0, 0),
                     __ATOMIC_RELEASE);
}

static bool grow(struct folder *fo)
{
    uint32_t block;
    if (!tracefile_may_grow(fo->file) || tracefile_take_block(fo->file, &block) < 0)
        return false;
    struct trace_head *h = tracefile_head(fo->file);
    if (tracefile_need(fo->file, h->table, block / TABLE_PER_BLOCK, BLOCK_TABLE) < 0)
        return false;
    uint8_t *p = tracefile_block(fo->file, block);
    uint64_t *entry = tracefile_entry(fo->file, block);
    if (!p || !entry)
        return false;
    /* Bring its pages into the page cache here rather than in the program. */
    for (size_t at = 0; at < BLOCK_SIZE; at += 4096)
        *(volatile uint64_t *)(p + at) = 0;
    __atomic_store_n(entry, block_word(BLOCK_EVENTS, STATE_FREE, 0, 0),
                     __ATOMIC_RELEASE);
    return true;
}

static void keep_free_blocks(struct folder *fo, unsigned counted, bool alive)
{
    if (!alive)
        return;
    unsigned events = 0, free_blocks = 0;
    uint32_t blocks = block_count(fo->file);
    for (uint32_t i = 2; i < blocks; i++) {
        uint64_t *entry = tracefile_entry(fo->file, i);
        uint64_t w = entry ? __atomic_load_n(entry, __ATOMIC_RELAXED) : 0;
        if (block_kind(w) != BLOCK_EVENTS)
            continue;
        events++;
        free_blocks += block_state(w) == STATE_FREE;
        if (block_state(w) == STATE_CLEANING)
            clean_block(fo, entry, i); /* a folder died in the middle of this */
    }
    /* Enough for what this pass saw to come again before the next. */
    unsigned target = counted ? 4 + 2 * counted : fo->free_target;
    if (target < 2 && !tracefile_may_grow(fo->file))
        target =
            2; /* a new thread has nothing sealed to count, and cannot grow either */
    unsigned roof = events / 2 > 8 ? events / 2 : 8;
    fo->free_target = target < roof ? target : roof;
    while (free_blocks < fo->free_target) {
        uint32_t block = 0;
        if (!grow(fo)) {
            uint64_t *entry = oldest_folded(fo, &block);
            if (!entry)
                break;
            clean_block(fo, entry, block);
        }
        free_blocks++;
    }
    __atomic_store_n(&tracefile_live(fo->file)->free_blocks, (int32_t)free_blocks,
                     __ATOMIC_RELAXED);
}

/* ---- The pass -------------------------------------------------------------------- */

/* Counts what it can of the list; compacts it to what was counted. */
static unsigned count_list(struct folder *fo, struct pending *list, unsigned count,
                           unsigned max, bool alive)
{
    unsigned done = 0;
    int stuck_lane = -1;
    for (unsigned i = 0; i < count && done < max; i++) {
        if (list[i].lane == stuck_lane)
            continue;
        if (!count_block(fo, &list[i], alive))
            stuck_lane = list[i].lane;
        else
            list[done++] = list[i];
    }
    return done;
}

static int pass_locked(struct folder *fo, bool alive, unsigned max_blocks)
{
    struct pending list[BATCH];
    int rc = load_cache(fo);
    if (rc < 0)
        return rc;
    unsigned count = collect(fo, alive, list);
    unsigned done = count_list(fo, list, count, max_blocks, alive);
    bool last = !alive && done == count && count < BATCH;
    if (last)
        for (unsigned i = 0; i < fo->fold->lane_count; i++)
            if (fo->fold->lanes[i].used)
                fold_truncate_lane(fo->fold, i);
    if (fo->fold->dirty_lane_count || fo->fold->dirty_node_count) {
        rc = cells_publish(fo->fold, fo->file, fo->token);
        if (rc < 0) {
            drop_cache(fo);
            return rc;
        }
        fo->commit++;
        for (unsigned i = 0; i < done; i++)
            mark_folded(fo, &list[i]);
    }
    fo->blocks += done;
    fo->finished = last;
    keep_free_blocks(fo, done, alive);
    return (int)done;
}

int folder_pass(struct folder *fo, bool alive, unsigned max_blocks)
{
    int rc = tracefile_lock(fo->file);
    if (rc < 0)
        return rc;
    /* Under the lock: threads of one process share a folder. */
    rc = fo->finished ? 0 : pass_locked(fo, alive, max_blocks);
    tracefile_unlock(fo->file);
    return rc;
}
