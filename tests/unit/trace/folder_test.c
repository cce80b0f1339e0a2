/* folder_test.c: blocks are counted once, whoever counts them and whatever is left
 * lying about; space is given back only when its events are counted. */
#include "trace/folder.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "handmade.h"
#include "trace/cells.h"
#include "trace/reader.h"

struct bench {
    struct handmade t;
    struct folder folder;
    uint64_t now;
    uint64_t written; /* zones of SITE(0), on all lanes */
};

static int make_with(void **state, uint64_t blocks)
{
    struct bench *b = calloc(1, sizeof *b);
    *state = b;
    handmade_init(&b->t, blocks);
    (void)handmade_site(&b->t, "zone");
    folder_init(&b->folder, &b->t.file);
    b->now = 1ULL << 40;
    return 0;
}

static int make(void **state)
{
    return make_with(state, 128);
}

static int make_small(void **state)
{
    return make_with(state, 24);
}

static int clear(void **state)
{
    struct bench *b = *state;
    folder_release(&b->folder);
    handmade_release(&b->t);
    free(b);
    return 0;
}

static uint32_t add_block(struct bench *b, unsigned lane, unsigned state,
                          unsigned zones)
{
    struct words w = { 0 };
    const uint64_t base = b->now;
    for (unsigned i = 0; i < zones; i++) {
        words_zone(&w, SITE(0), b->now, b->now + 10);
        b->now += 20;
    }
    const uint32_t block = handmade_block(&b->t, lane, state, &w, base);
    b->written += zones;
    words_release(&w);
    return block;
}

static unsigned state_of(struct bench *b, uint32_t block)
{
    return block_state(*tracefile_entry(&b->t.file, block));
}

/* Zones of SITE(0) on all lanes, as a reader finds them. */
static uint64_t zones_read(struct bench *b)
{
    struct trace *trace;
    uint64_t count = 0;
    assert_int_equal(trace_open(b->t.file.path, NULL, &trace), 0);
    assert_string_equal(trace_damage(trace), "");
    for (unsigned i = FIRST_NODE; i < trace_node_count(trace); i++)
        if (trace_node(trace, i) && trace_node(trace, i)->site == SITE(0))
            count += trace_node(trace, i)->count;
    trace_free(trace);
    return count;
}

static const uint8_t *get_block(void *arg, uint32_t block)
{
    return tracefile_block(arg, block);
}

/* … and as the published cells alone have them. */
static uint64_t zones_published(struct bench *b)
{
    struct fold *f;
    const struct blockview view = { get_block, &b->t.file };
    uint64_t count = 0;
    assert_int_equal(fold_new(&f), 0);
    assert_int_equal(cells_load(f, tracefile_head(&b->t.file), &view,
                                tracefile_live(&b->t.file)->commit),
                     0);
    for (unsigned i = FIRST_NODE; i < f->node_count; i++)
        if (f->nodes[i].site == SITE(0))
            count += f->nodes[i].stats.count;
    fold_free(f);
    return count;
}

static void all_is_counted(struct bench *b)
{
    assert_int_equal(zones_published(b), b->written);
    assert_int_equal(zones_read(b), b->written);
}

/* ---- Counting --------------------------------------------------------------------- */

static void sealed_blocks_are_counted_and_marked(void **state)
{
    struct bench *b = *state;
    const uint32_t a = add_block(b, 0, STATE_SEALED, 100);
    const uint32_t c = add_block(b, 1, STATE_SEALED, 50);
    const uint32_t open = add_block(b, 0, STATE_OPEN, 7);
    assert_int_equal(zones_read(b), 157); /* a reader needs no folder */
    assert_int_equal(folder_pass(&b->folder, true, 100), 2);
    assert_int_equal(state_of(b, a), STATE_FOLDED);
    assert_int_equal(state_of(b, c), STATE_FOLDED);
    assert_int_equal(state_of(b, open), STATE_OPEN);
    assert_int_equal(zones_published(b), 150);
    assert_int_equal(zones_read(b), 157);
    assert_int_equal(folder_pass(&b->folder, true, 100), 0);
    assert_int_equal(zones_read(b), 157);
}

static void a_dead_process_s_open_blocks_are_counted_too(void **state)
{
    struct bench *b = *state;
    struct words w = { 0 };
    (void)add_block(b, 0, STATE_SEALED, 100);
    words_begin(&w, SITE(0), b->now);
    words_begin(&w, SITE(1), b->now + 100);
    (void)handmade_block(&b->t, 0, STATE_OPEN, &w, b->now);
    b->written++;
    handmade_kill_owner(&b->t);
    assert_int_equal(zones_read(b), 101);
    assert_int_equal(folder_pass(&b->folder, false, 100), 2);
    assert_true(b->folder.finished);
    all_is_counted(b);
    /* Its zones ended at its last event, and the reader knows which were open. */
    struct trace *trace;
    assert_int_equal(trace_open(b->t.file.path, NULL, &trace), 0);
    const struct trace_lane *lane = trace_lane(trace, 0);
    assert_int_equal(lane->open_count, 2);
    assert_int_equal(lane->open[0].site, SITE(0));
    assert_int_equal(lane->open[1].site, SITE(1));
    const struct trace_node *node = trace_node(trace, lane->open[0].node);
    assert_int_equal(node->truncated, 1);
    assert_near(node->max_ns, 100 * trace_info(trace)->ns_per_tick, 1e-6);
    trace_free(trace);
    words_release(&w);
}

static void a_pass_counts_no_more_than_it_is_asked_to(void **state)
{
    struct bench *b = *state;
    for (unsigned i = 0; i < 10; i++)
        (void)add_block(b, i % 2, STATE_SEALED, 10);
    assert_int_equal(folder_pass(&b->folder, true, 4), 4);
    assert_int_equal(zones_published(b), 40);
    assert_int_equal(folder_pass(&b->folder, true, 100), 6);
    all_is_counted(b);
}

static void many_blocks_of_a_dead_process_are_counted_in_turn(void **state)
{
    struct bench *b = *state;
    for (unsigned i = 0; i < 50; i++)
        (void)add_block(b, i % 3, STATE_SEALED, 10);
    handmade_kill_owner(&b->t);
    unsigned passes = 0;
    for (; !b->folder.finished && passes < 20; passes++)
        assert_true(folder_pass(&b->folder, false, 7) >= 0);
    assert_true(passes > 50 / 7);
    all_is_counted(b);
}

/* ---- Several folders -------------------------------------------------------------- */

static void two_folders_by_turns_count_everything_once(void **state)
{
    struct bench *b = *state;
    struct folder other;
    folder_init(&other, &b->t.file);
    assert_true(other.token != b->folder.token);
    for (unsigned round = 0; round < 30; round++) {
        for (unsigned i = 0; i < 1 + round % 3; i++)
            (void)add_block(b, i, STATE_SEALED, 10 + round);
        struct folder *turn = round % 5 < 2 ? &other : &b->folder;
        assert_int_equal(folder_pass(turn, true, 100), 1 + round % 3);
        all_is_counted(b);
    }
    folder_release(&other);
}

static void while_another_process_folds_the_answer_is_again(void **state)
{
    struct bench *b = *state;
    int ready[2];
    char byte;
    (void)add_block(b, 0, STATE_SEALED, 10);
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        struct tracefile f;
        if (tracefile_open(b->t.file.path, b->t.control, &f) < 0 ||
            tracefile_lock(&f) < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(folder_pass(&b->folder, true, 100), -EAGAIN);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(folder_pass(&b->folder, true, 100), 1);
    all_is_counted(b);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

/* ---- After a kill ----------------------------------------------------------------- */

/* As if killed between publishing and marking: counted, yet SEALED. */
static void unmark(struct bench *b, uint32_t block, unsigned lane, uint32_t seq)
{
    assert_int_equal(state_of(b, block), STATE_FOLDED);
    handmade_state(&b->t, block, STATE_SEALED, lane, seq);
}

static void counted_blocks_that_were_not_marked_are_only_marked(void **state)
{
    struct bench *b = *state;
    struct folder next;
    const uint32_t block = add_block(b, 0, STATE_SEALED, 100);
    assert_int_equal(folder_pass(&b->folder, true, 100), 1);
    unmark(b, block, 0, 1);
    assert_int_equal(zones_read(b), 100);
    folder_init(&next, &b->t.file);
    assert_int_equal(folder_pass(&next, true, 100), 0);
    assert_int_equal(state_of(b, block), STATE_FOLDED);
    all_is_counted(b);
    folder_release(&next);
}

/* A folder that meets nothing but blocks counted by dead ones must still make room. */
static void blocks_marked_late_are_given_back_like_others(void **state)
{
    struct bench *b = *state;
    uint32_t blocks[8];
    struct fold *killed;
    assert_int_equal(fold_new(&killed), 0);
    for (unsigned i = 0; i < 8; i++) {
        blocks[i] = add_block(b, 0, STATE_SEALED, 10);
        const uint8_t *p = tracefile_block(&b->t.file, blocks[i]);
        fold_words(killed, 0, (const uint64_t *)(p + EVENTS_OFFSET), EVENTS_WORDS, 0);
        killed->lanes[0].carry.next_seq = i + 2;
    }
    assert_int_equal(cells_publish(killed, &b->t.file, 0xdead), 0);
    fold_free(killed);
    /* The file may not grow any more. */
    assert_true(control_take(b->t.control,
                             b->t.control->max_blocks - b->t.control->used_blocks));
    assert_int_equal(folder_pass(&b->folder, true, 100), 0);
    unsigned ready = 0;
    for (unsigned i = 0; i < 8; i++) {
        ready += state_of(b, blocks[i]) == STATE_FREE;
        assert_true(state_of(b, blocks[i]) != STATE_SEALED);
    }
    assert_true(ready > 0);
    all_is_counted(b);
}

static void a_block_left_half_cleaned_is_cleaned(void **state)
{
    struct bench *b = *state;
    struct folder next;
    const uint32_t block = add_block(b, 0, STATE_SEALED, 100);
    assert_int_equal(folder_pass(&b->folder, true, 100), 1);
    uint8_t *p = tracefile_block(&b->t.file, block);
    memset(p, 0, 20000);
    *tracefile_entry(&b->t.file, block) = block_word(BLOCK_EVENTS, STATE_CLEANING, 0,
                                                     0);
    all_is_counted(b);
    folder_init(&next, &b->t.file);
    (void)add_block(b, 0, STATE_SEALED, 1);
    assert_int_equal(folder_pass(&next, true, 100), 1);
    assert_int_equal(state_of(b, block), STATE_FREE);
    for (size_t i = 0; i < BLOCK_SIZE; i++)
        assert_int_equal(p[i], 0);
    all_is_counted(b);
    folder_release(&next);
}

/* Killed after taking a free block, before writing its head. */
static void a_block_taken_and_not_yet_written_counts_nothing(void **state)
{
    struct bench *b = *state;
    (void)add_block(b, 0, STATE_SEALED, 100);
    const uint32_t block = handmade_take(&b->t);
    handmade_state(&b->t, block, STATE_OPEN, 0, 2);
    handmade_kill_owner(&b->t);
    assert_int_equal(zones_read(b), 100);
    assert_int_equal(folder_pass(&b->folder, false, 100), 2);
    assert_true(b->folder.finished);
    all_is_counted(b);
}

/* The folder with the newest cache is not the one that was killed: it must notice that
 * another one came by and left copies that were never committed. */
static void a_folder_killed_while_publishing_does_not_fool_the_others(void **state)
{
    struct bench *b = *state;
    struct trace_live *live = tracefile_live(&b->t.file);
    (void)add_block(b, 0, STATE_SEALED, 100);
    assert_int_equal(folder_pass(&b->folder, true, 100), 1);

    /* The other one counts lane 1 only, and dies before its commit … */
    struct fold *stray;
    const struct blockview view = { get_block, &b->t.file };
    struct words w = { 0 };
    const uint64_t commit = live->commit;
    assert_int_equal(fold_new(&stray), 0);
    (void)cells_load(stray, tracefile_head(&b->t.file), &view, commit);
    words_zone(&w, SITE(0), b->now, b->now + 10);
    fold_words(stray, 0, w.data, w.count, b->now);
    fold_words(stray, 1, w.data, w.count, b->now);
    assert_int_equal(cells_publish(stray, &b->t.file, 0xdead), 0);
    live->commit = commit;
    assert_int_equal(zones_published(b), 100);

    /* … and the first one goes on. */
    (void)add_block(b, 0, STATE_SEALED, 10);
    assert_int_equal(folder_pass(&b->folder, true, 100), 1);
    all_is_counted(b);
    fold_free(stray);
    words_release(&w);
}

/* ---- Gaps and holes --------------------------------------------------------------- */

static void a_gap_holds_a_living_lane_and_no_dead_one(void **state)
{
    struct bench *b = *state;
    (void)add_block(b, 0, STATE_SEALED, 10);
    b->t.seq[0]++; /* the block between is not there (yet) */
    (void)add_block(b, 0, STATE_SEALED, 10);
    (void)add_block(b, 1, STATE_SEALED, 10);
    assert_int_equal(folder_pass(&b->folder, true, 100), 2);
    assert_int_equal(zones_published(b), 20);
    handmade_kill_owner(&b->t);
    assert_int_equal(folder_pass(&b->folder, false, 100), 1);
    assert_true(b->folder.finished);
    assert_int_equal(zones_published(b), 30);
}

static uint64_t *word_of(struct bench *b, uint32_t block, unsigned index)
{
    return (uint64_t *)(tracefile_block(&b->t.file, block) + EVENTS_OFFSET) + index;
}

static void a_hole_is_waited_for(void **state)
{
    struct bench *b = *state;
    const uint32_t block = add_block(b, 0, STATE_SEALED, 10);
    uint64_t *word = word_of(b, block, 5), value = *word;
    *word = 0;
    assert_int_equal(folder_pass(&b->folder, true, 100), 0);
    assert_int_equal(state_of(b, block), STATE_SEALED);
    *word = value;
    assert_int_equal(folder_pass(&b->folder, true, 100), 1);
    all_is_counted(b);
    assert_int_equal(b->folder.fold->lanes[0].carry.holes, 0);
}

static void nap_ms(long ms)
{
    const struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };
    (void)nanosleep(&ts, NULL);
}

/* A handler that leaves by longjmp never comes back to its slot. Other lanes are busy
 * meanwhile; they must not hold the patience with this one at its beginning. */
static void an_abandoned_hole_is_given_up_though_others_are_busy(void **state)
{
    struct bench *b = *state;
    const uint32_t block = add_block(b, 0, STATE_SEALED, 10);
    *word_of(b, block, 5) = 0;
    for (unsigned i = 0; i < 60 && state_of(b, block) == STATE_SEALED; i++) {
        (void)add_block(b, 1, STATE_SEALED, 1);
        assert_true(folder_pass(&b->folder, true, 100) >= 1);
        nap_ms(50);
    }
    assert_int_equal(state_of(b, block), STATE_FOLDED);
    assert_int_equal(b->folder.fold->lanes[0].carry.holes, 1);
}

static void a_dead_process_s_hole_is_counted_as_lost(void **state)
{
    struct bench *b = *state;
    struct trace *trace;
    const uint32_t block = add_block(b, 0, STATE_SEALED, 10);
    *word_of(b, block, 4) = 0; /* a begin: its end is an orphan */
    handmade_kill_owner(&b->t);
    assert_int_equal(folder_pass(&b->folder, false, 100), 1);
    assert_int_equal(zones_published(b), 9);
    assert_int_equal(trace_open(b->t.file.path, NULL, &trace), 0);
    assert_int_equal(trace_info(trace)->holes, 1);
    assert_int_equal(trace_info(trace)->lost, 1);
    assert_true(trace_info(trace)->lost_reason & LOST_HOLE);
    assert_int_equal(trace_lane(trace, 0)->orphan_ends, 1);
    trace_free(trace);
}

/* ---- Space ------------------------------------------------------------------------ */

static void a_small_file_is_used_again_and_again(void **state)
{
    struct bench *b = *state; /* 24 blocks */
    for (unsigned i = 0; i < 400; i++) {
        (void)add_block(b, i % 3, STATE_SEALED, 5 + i % 7);
        assert_int_equal(folder_pass(&b->folder, true, 100), 1);
        if (i % 50 == 0)
            all_is_counted(b);
    }
    all_is_counted(b);
    assert_true(b->t.control->used_blocks <= 24);
    assert_true(tracefile_live(&b->t.file)->next_block <= 24);
    struct trace *trace;
    assert_int_equal(trace_open(b->t.file.path, NULL, &trace), 0);
    assert_false(trace_info(trace)->timeline_complete);
    trace_free(trace);
}

static void the_oldest_events_are_given_up_first(void **state)
{
    struct bench *b = *state;
    struct folder other;
    uint32_t count = 0;
    folder_init(&other, &b->t.file);
    for (unsigned i = 0; i < 200; i++) {
        (void)add_block(b, 0, STATE_SEALED, 5);
        /* Another folder must find the same order in the file. */
        assert_int_equal(folder_pass(i % 2 ? &b->folder : &other, true, 100), 1);
        uint32_t oldest = UINT32_MAX;
        count = 0;
        for (uint32_t k = 6; k < tracefile_live(&b->t.file)->next_block; k++) {
            const uint64_t w = *tracefile_entry(&b->t.file, k);
            if (block_kind(w) != BLOCK_EVENTS || block_state(w) != STATE_FOLDED)
                continue;
            oldest = block_seq(w) < oldest ? block_seq(w) : oldest;
            count++;
        }
        if (count)
            assert_int_equal(oldest + count - 1, b->t.seq[0]);
    }
    assert_true(count > 20 && count < 60);
    folder_release(&other);
}

static bool works_within_the_file_size_limit(struct bench *b)
{
    const struct rlimit limit = { 14 * BLOCK_SIZE, 14 * BLOCK_SIZE };
    (void)add_block(b, 0, STATE_SEALED, 5); /* the statistics' blocks come first */
    if (folder_pass(&b->folder, true, 100) != 1 || setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return false;
    for (unsigned i = 0; i < 60; i++) {
        (void)add_block(b, 0, STATE_SEALED, 5);
        if (folder_pass(&b->folder, true, 100) != 1)
            return false;
    }
    return zones_published(b) == 305;
}

static void a_file_that_may_not_grow_is_used_again(void **state)
{
    struct bench *b = *state;
    int status;
    const pid_t pid = fork();
    if (pid == 0) {
        tracefile_head(&b->t.file)->pid = (uint32_t)getpid();
        _exit(works_within_the_file_size_limit(b) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define ONE(test)   cmocka_unit_test_setup_teardown(test, make, clear)
#define SMALL(test) cmocka_unit_test_setup_teardown(test, make_small, clear)
    const struct CMUnitTest tests[] = {
        ONE(sealed_blocks_are_counted_and_marked),
        ONE(a_dead_process_s_open_blocks_are_counted_too),
        ONE(a_pass_counts_no_more_than_it_is_asked_to),
        ONE(many_blocks_of_a_dead_process_are_counted_in_turn),
        ONE(two_folders_by_turns_count_everything_once),
        ONE(while_another_process_folds_the_answer_is_again),
        ONE(counted_blocks_that_were_not_marked_are_only_marked),
        SMALL(blocks_marked_late_are_given_back_like_others),
        ONE(a_block_left_half_cleaned_is_cleaned),
        ONE(a_block_taken_and_not_yet_written_counts_nothing),
        ONE(a_folder_killed_while_publishing_does_not_fool_the_others),
        ONE(a_gap_holds_a_living_lane_and_no_dead_one),
        ONE(a_hole_is_waited_for),
        ONE(an_abandoned_hole_is_given_up_though_others_are_busy),
        ONE(a_dead_process_s_hole_is_counted_as_lost),
        SMALL(a_small_file_is_used_again_and_again),
        ONE(the_oldest_events_are_given_up_first),
        ONE(a_file_that_may_not_grow_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
