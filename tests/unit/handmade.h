/* handmade.h: event words and process files made by hand.
 *
 * A recording thread is not needed to test what becomes of its blocks: a test writes
 * the words itself, at ticks it chose, and knows what the statistics must say.
 *
 *     struct handmade t;
 *     handmade_init(&t, 64);
 *     struct words w = { 0 };
 *     words_zone(&w, SITE(0), 1000, 1500);
 *     handmade_block(&t, 0, STATE_SEALED, &w, 1000);
 *     …
 *     handmade_release(&t);
 *
 * A test includes this once; everything is static inline.
 */
#ifndef SONDE_TESTS_HANDMADE_H
#define SONDE_TESTS_HANDMADE_H

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "trace/control.h"
#include "trace/file.h"
#include "trace/fold.h"
#include "unit.h"

/* ---- Words ------------------------------------------------------------------------ */

#define SITE(n) ((unsigned)(FIRST_SITE + (n)))

struct words {
    uint64_t *data;
    size_t count, cap;
};

static inline void words_put(struct words *w, uint64_t word)
{
    if (w->count == w->cap) {
        w->cap = w->cap ? 2 * w->cap : 64;
        w->data = realloc(w->data, w->cap * sizeof *w->data);
        if (!w->data)
            abort();
    }
    w->data[w->count++] = word;
}

static inline void words_release(struct words *w)
{
    free(w->data);
    *w = (struct words){ 0 };
}

static inline void words_tag(struct words *w, unsigned tag, uint64_t ticks)
{
    words_put(w, ticks << 16 | tag);
}

static inline void words_begin(struct words *w, unsigned site, uint64_t ticks)
{
    words_tag(w, site << 1, ticks);
}

static inline void words_end(struct words *w, unsigned site, uint64_t ticks)
{
    words_tag(w, site << 1 | 1, ticks);
}

static inline void words_zone(struct words *w, unsigned site, uint64_t from,
                              uint64_t to)
{
    words_begin(w, site, from);
    words_end(w, site, to);
}

static inline void words_record(struct words *w, unsigned tag, uint64_t ticks,
                                const uint64_t *payload, unsigned count)
{
    words_tag(w, tag, ticks);
    for (unsigned i = 0; i < count; i++)
        words_put(w, payload[i] << 16 | TAG_CONT);
}

static inline void words_thread(struct words *w, uint32_t tid, uint64_t ticks)
{
    words_record(w, TAG_THREAD, ticks, (const uint64_t[]){ tid }, 1);
}

static inline void words_step(struct words *w, uint64_t samples, uint64_t ticks)
{
    words_record(w, TAG_STEP, ticks, &samples, 1);
}

static inline void words_value(struct words *w, unsigned name, unsigned kind, double x,
                               uint64_t ticks)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t payload[2] = { (uint64_t)name << 32 | bits >> 32,
                                  (uint64_t)kind << 32 | (bits & 0xffffffff) };
    words_record(w, TAG_VALUE, ticks, payload, 2);
}

static inline void words_span(struct words *w, unsigned site, unsigned kind,
                              uint64_t id, uint64_t active, uint64_t wall,
                              uint64_t ticks)
{
    const uint64_t payload[3] = { (uint64_t)site << 32 | (uint64_t)kind << 24 | id,
                                  active, wall };
    words_record(w, TAG_SPAN, ticks, payload, 3);
}

static inline void words_op(struct words *w, uint64_t cpu_ns, uint32_t before_kb,
                            uint32_t after_kb, uint32_t peak_kb, uint64_t ticks)
{
    const uint64_t payload[4] = { cpu_ns, before_kb, after_kb, peak_kb };
    words_record(w, TAG_OP, ticks, payload, 4);
}

/* ---- A process file --------------------------------------------------------------- */

struct handmade {
    char dir[64];
    struct control *control;
    struct tracefile file;
    uint32_t seq[MAX_LANES]; /* of the last block of each lane */
};

/* A run directory with a control file of `max_blocks` and one process file, whose
 * owner is this process. */
static inline void handmade_init(struct handmade *t, uint64_t max_blocks)
{
    *t = (struct handmade){ .file = { .fd = -1 } };
    const struct control_options options = { .run_id = "handmade",
                                             .max_trace = max_blocks * BLOCK_SIZE };
    assert_non_null(unit_temp_dir(t->dir));
    assert_int_equal(control_create(t->dir, &options, &t->control), 0);
    assert_int_equal(tracefile_create(t->dir, t->control, 0, &t->file), 0);
}

static inline void handmade_release(struct handmade *t)
{
    tracefile_close(&t->file);
    control_unmap(t->control);
    assert_int_equal(file_remove_tree(t->dir), 0);
}

/* From now on the owner of the file is a process that is no more. */
static inline void handmade_kill_owner(struct handmade *t)
{
    const pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    tracefile_head(&t->file)->pid = (uint32_t)pid;
    tracefile_head(&t->file)->proc_start = 1;
}

/* The number of a new site called `name`, written as the recorder writes it. */
static inline unsigned handmade_site(struct handmade *t, const char *name)
{
    struct trace_live *live = tracefile_live(&t->file);
    const uint32_t id = live->site_count;
    const size_t len = strlen(name) + 1;
    uint8_t *strings = tracefile_block(&t->file, tracefile_head(&t->file)->strings[0]);
    struct site_entry *entry = tracefile_site(&t->file, id);
    assert_non_null(entry);
    assert_true(live->string_bytes + len < BLOCK_SIZE);
    memcpy(strings + live->string_bytes, name, len);
    *entry = (struct site_entry){ .name = (uint32_t)live->string_bytes };
    live->string_bytes += len;
    live->site_count = id + 1;
    return id;
}

/* A FREE block if there is one, as recording threads prefer, else a new one. They rely
 * on finding zeros in it. */
static inline uint32_t handmade_take(struct handmade *t)
{
    static const uint8_t zeros[BLOCK_SIZE];
    uint32_t block = 0;
    const uint32_t blocks = tracefile_live(&t->file)->next_block;
    for (uint32_t i = 2; i < blocks && !block; i++)
        if (*tracefile_entry(&t->file, i) == block_word(BLOCK_EVENTS, STATE_FREE, 0, 0))
            block = i;
    if (!block)
        assert_int_equal(tracefile_take_block(&t->file, &block), 0);
    assert_int_equal(memcmp(tracefile_block(&t->file, block), zeros, BLOCK_SIZE), 0);
    return block;
}

static inline void handmade_state(struct handmade *t, uint32_t block, unsigned state,
                                  unsigned lane, uint32_t seq)
{
    *tracefile_entry(&t->file, block) = block_word(BLOCK_EVENTS, state, lane, seq);
}

/* The lane's next block. A SEALED one is filled up with PAD, an OPEN one with
 * nothing. Returns its number. */
static inline uint32_t handmade_block(struct handmade *t, unsigned lane, unsigned state,
                                      const struct words *w, uint64_t base_ticks)
{
    assert_true(w->count <= EVENTS_WORDS);
    const uint32_t block = handmade_take(t), seq = ++t->seq[lane];
    uint8_t *p = tracefile_block(&t->file, block);
    assert_non_null(p);
    uint64_t *words = (uint64_t *)(p + EVENTS_OFFSET);
    *(struct events_head *)p = (struct events_head){ .base_ticks = base_ticks,
                                                     .lane = lane,
                                                     .seq = seq };
    for (size_t i = 0; i < w->count; i++)
        words[i] = w->data[i];
    for (size_t i = w->count; state == STATE_SEALED && i < EVENTS_WORDS; i++)
        words[i] = TAG_PAD;
    handmade_state(t, block, state, lane, seq);
    return block;
}

/* ---- Looking at a fold ------------------------------------------------------------ */

/* The node of a path of sites (0 ends it) under the root of `lane`; NULL: none. */
static inline const struct node_stats *path_stats(const struct fold *f, unsigned lane,
                                                  const unsigned *sites)
{
    unsigned at = lane < ROOT_NODES ? lane : ROOT_NODES - 1;
    for (; *sites; sites++) {
        unsigned next = FIRST_NODE;
        while (next < MAX_NODES &&
               !(f->nodes[next].used && f->nodes[next].parent == at &&
                 f->nodes[next].site == *sites))
            next++;
        if (next == MAX_NODES)
            return NULL;
        at = next;
    }
    return &f->nodes[at].stats;
}
/* The same statistics, number by number, histograms and open zones included. */
static inline void assert_same_fold(const struct fold *a, const struct fold *b)
{
    for (unsigned i = 0; i < MAX_NODES; i++) {
        const struct fold_node *x = &a->nodes[i], *y = &b->nodes[i];
        assert_int_equal(x->used, y->used);
        if (!x->used)
            continue;
        assert_int_equal(x->site, y->site);
        assert_int_equal(x->parent, y->parent);
        assert_memory_equal(&x->stats, &y->stats, sizeof x->stats);
        for (unsigned k = 0; k < LOGHIST_CHUNKS; k++)
            if (x->stats.chunk[k])
                assert_memory_equal(a->chunks[x->stats.chunk[k] - 1],
                                    b->chunks[y->stats.chunk[k] - 1],
                                    sizeof a->chunks[0]);
    }
    for (unsigned i = 0; i < MAX_LANES; i++) {
        const struct fold_lane *x = &a->lanes[i], *y = &b->lanes[i];
        assert_int_equal(x->used, y->used);
        assert_memory_equal(&x->carry, &y->carry, sizeof x->carry);
        assert_memory_equal(x->frames, y->frames,
                            lane_frames(&x->carry) * sizeof x->frames[0]);
    }
    assert_int_equal(a->value_count, b->value_count);
    for (unsigned i = 0; i < a->value_count; i++) {
        assert_int_equal(a->values[i].node, b->values[i].node);
        assert_int_equal(a->values[i].name, b->values[i].name);
        assert_int_equal(a->values[i].kind, b->values[i].kind);
        assert_memory_equal(&a->values[i].stats, &b->values[i].stats,
                            sizeof a->values[i].stats);
    }
}

#define PATH(...)                                                                      \
    (const unsigned[])                                                                 \
    {                                                                                  \
        __VA_ARGS__, 0                                                                 \
    }

#endif
