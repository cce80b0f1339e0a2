/* lanes.c: threads and the blocks they write into.
 *
 * A lane is a stream of blocks with one writer at a time. A thread takes a lane at
 * its first event and parks it when it ends, half-filled block and all; the next new
 * thread takes it over and says so in the stream. So ten thousand short threads need
 * as many lanes and blocks as ever ran at once.
 *
 * Rolling: when a block is full its thread seals it (one store), takes a free one and
 * goes on. It takes what a folder has made ready; if there is none it grows the file,
 * and if that may not be it waits a little for the folder, then folds by itself: the
 * program pays rather than loses events, unless the session is lossy.
 *
 * A signal handler may come between a thread's reservation and its store and may
 * even roll the block. The store then goes into a block that is sealed already; the
 * folder leaves a block with a hole alone until the hole is filled (folder.c).
 */
#include "record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
    WAIT_STEP_NS = 50000,      /* one nap while waiting for the folder */
    WAIT_FOLDER_NS = 20000000, /* then fold ourselves */
    WAIT_ALL_NS = 1000000000,  /* then drop events */
    RETRY_NS = 1000000,        /* how long a lane without a block drops, at first */
};

#define WAIT_READERS_NS 4e9 /* not counted above: they are done soon, or stopped */

static __thread struct lane *mine;
static __thread struct sonde_lane **shared[8]; /* thread pointers of other copies */
static pthread_key_t exit_key;
static bool exit_key_made;

/* ---- Losing ---------------------------------------------------------------------- */

void lanes_drop(uint64_t events, unsigned reason)
{
    struct trace_live *live = recorder_live();
    __atomic_fetch_add(&live->lost, events, __ATOMIC_RELAXED);
    __atomic_fetch_or(&live->lost_reason, reason, __ATOMIC_RELAXED);
}

/* ---- Blocks ---------------------------------------------------------------------- */

/* `sure`: look even when the count of free blocks says there is none. */
static bool take_free(struct lane *l, bool sure, uint32_t *ret_block)
{
    static uint32_t hint; /* free blocks come in order: begin where the last one was */
    struct tracefile *f = &recorder.file;
    int32_t *free_blocks = &recorder_live()->free_blocks;
    if (!sure && __atomic_load_n(free_blocks, __ATOMIC_RELAXED) <= 0)
        return false;
    uint32_t count = __atomic_load_n(&recorder_live()->next_block, __ATOMIC_ACQUIRE);
    uint32_t start = __atomic_load_n(&hint, __ATOMIC_RELAXED);
    for (uint32_t n = 0; n < count; n++) {
        uint32_t i = start + n < count ? start + n : start + n - count;
        uint64_t *entry = i < count ? tracefile_entry(f, i) : NULL;
        if (!entry)
            continue;
        uint64_t w = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
        if (block_kind(w) != BLOCK_EVENTS || block_state(w) != STATE_FREE)
            continue;
        if (__atomic_compare_exchange_n(
                entry, &w, block_word(BLOCK_EVENTS, STATE_OPEN, l->index, l->seq + 1),
                false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            __atomic_store_n(&hint, i + 1, __ATOMIC_RELAXED);
            __atomic_fetch_sub(free_blocks, 1, __ATOMIC_RELAXED);
            *ret_block = i;
            return true;
        }
    }
    return false;
}

static int take_new(struct lane *l, uint32_t *ret_block)
{
    struct tracefile *f = &recorder.file;
    struct trace_head *h = tracefile_head(f);
    uint32_t block;
    int rc = tracefile_take_block(f, &block);
    if (rc == 0)
        rc = tracefile_need(f, h->table, block / TABLE_PER_BLOCK, BLOCK_TABLE);
    uint64_t *entry = rc == 0 ? tracefile_entry(f, block) : NULL;
    if (!entry)
        return rc < 0 ? rc : -EIO;
    __atomic_store_n(entry, block_word(BLOCK_EVENTS, STATE_OPEN, l->index, l->seq + 1),
                     __ATOMIC_RELEASE);
    *ret_block = block;
    return 0;
}

static unsigned reason_of(int rc)
{
    return rc == -ENOSPC   ? LOST_DISK_FULL
           : rc == -EFBIG  ? LOST_FILE_LIMIT
           : rc == -ENOMEM ? LOST_ADDRESS_SPACE
                           : LOST_BUDGET;
}

static void nap(void)
{
    struct timespec ts = { 0, WAIT_STEP_NS };
    (void)nanosleep(&ts, NULL);
}

static bool folder_at_work(double patience_ns)
{
    uint64_t beat = __atomic_load_n(&recorder.control->drainer_beat, __ATOMIC_RELAXED);
    return beat && (double)(ticks_now() - beat) < patience_ns * ticks_per_ns();
}

static void note_wait(uint64_t since)
{
    struct trace_live *live = recorder_live();
    uint64_t ns = (uint64_t)((double)(ticks_now() - since) / ticks_per_ns());
    __atomic_fetch_add(&live->waits, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&live->wait_ns, ns, __ATOMIC_RELAXED);
}

/* Folds for the folder that does not come. False: that cannot help. */
static bool fold_myself(void)
{
    int n = folder_pass(&recorder.self, true, 16);
    if (n > 0)
        __atomic_fetch_add(&recorder_live()->self_folds, (uint64_t)n, __ATOMIC_RELAXED);
    if (n == -EAGAIN || n == 0)
        nap(); /* somebody else is at it, or took what we had emptied */
    return n > 0 || n == -EAGAIN;
}

/* The first block of a lane, while the budget is used up by processes that have just
 * died: the drainer gives their blocks back. */
static bool wait_for_first(struct lane *l, uint32_t *ret_block)
{
    uint64_t start = ticks_now();
    int rc = -EDQUOT;
    while (rc == -EDQUOT && folder_at_work(WAIT_ALL_NS) &&
           (double)(ticks_now() - start) < WAIT_ALL_NS * ticks_per_ns()) {
        nap();
        rc = take_new(l, ret_block);
    }
    note_wait(start);
    return rc == 0;
}

/* How long a thread has waited for a block, in ns. */
struct patience {
    double all, for_readers; /* for_readers: of all, while readers kept folders out */
    double useful;           /* value of all when waiting last seemed to be of use */
};

static bool patient(const struct patience *p)
{
    return p->all - p->for_readers < WAIT_ALL_NS && p->for_readers < WAIT_READERS_NS &&
           p->all - p->useful < 2 * WAIT_FOLDER_NS;
}

/* No block is free and the file may not grow: blocks must be counted and emptied. That
 * others take what was emptied is no reason to give up, unless it goes on. */
static bool wait_for_block(struct lane *l, uint32_t *ret_block)
{
    const uint64_t start = ticks_now();
    const double per_ns = ticks_per_ns();
    struct patience p = { 0 };
    bool got;
    while (!(got = take_free(l, true, ret_block)) && patient(&p)) {
        bool useful = true;
        if (p.all < WAIT_FOLDER_NS && folder_at_work(300e6))
            nap();
        else
            useful = fold_myself();
        const double now = (double)(ticks_now() - start) / per_ns;
        if (tracefile_kept_out(&recorder.file))
            p.for_readers += now - p.all;
        if (useful)
            p.useful = now;
        p.all = now;
    }
    note_wait(start);
    return got;
}

/* Space for statistics, while there is some: without it nothing could ever be
 * counted, and so no block emptied. Only programs that fill a block need it. */
static void reserve_statistics(void)
{
    struct tracefile *f = &recorder.file;
    struct trace_head *h = tracefile_head(f);
    (void)tracefile_need(f, h->nodes, 0, BLOCK_NODES);
    (void)tracefile_need(f, h->chunks, 0, BLOCK_CHUNKS);
    (void)tracefile_need(f, h->values, 0, BLOCK_VALUES);
}

static bool acquire(struct lane *l, uint32_t *ret_block)
{
    if (take_free(l, false, ret_block))
        return true;
    if (l->seq == 1)
        reserve_statistics();
    unsigned reason = LOST_STALLED;
    /* A lane's first block is always worth growing for. */
    if (tracefile_may_grow(&recorder.file) || l->seq == 0) {
        int rc = take_new(l, ret_block);
        if (rc == 0)
            return true;
        reason = reason_of(rc);
    }
    if (recorder.control->flags & CONTROL_LOSSY)
        reason = LOST_LOSSY;
    else if (l->seq == 0 && reason == LOST_BUDGET ? wait_for_first(l, ret_block)
                                                  : wait_for_block(l, ret_block))
        return true;
    lanes_drop(0, reason);
    return false;
}

/* First touch of a page costs a fault of half a microsecond: take them all at once
 * where nobody is timing. */
static void prefault(uint8_t *block, uint32_t number)
{
    uint8_t *byte = &recorder.wiped->touched[number / 8], bit = 1u << number % 8;
    if (__atomic_fetch_or(byte, bit, __ATOMIC_RELAXED) & bit)
        return;
    if (madvise(block, BLOCK_SIZE, MADV_POPULATE_WRITE) == 0)
        return;
    for (size_t at = 0; at < BLOCK_SIZE; at += 4096)
        *(volatile uint64_t *)(block + at) = 0;
}

/* Where events really go: the public cursor, or in slow mode our own. */
static inline uint64_t *cursor_of(struct lane *l)
{
    return recorder.slow ? &l->slow_cursor : &l->cursor;
}

static void seal(struct lane *l)
{
    uint64_t *entry = l->block ? tracefile_entry(&recorder.file, l->block) : NULL;
    if (entry)
        __atomic_store_n(entry,
                         block_word(BLOCK_EVENTS, STATE_SEALED, l->index, l->seq),
                         __ATOMIC_RELEASE);
    l->block = 0;
}

static void open_block(struct lane *l, uint32_t block)
{
    uint8_t *p = recorder.file.base + (size_t)block * BLOCK_SIZE;
    prefault(p, block);
    struct events_head *h = (struct events_head *)p;
    h->base_ticks = ticks_now();
    h->lane = l->index;
    h->seq = ++l->seq;
    l->block = block;
    __atomic_store_n(&recorder_live()->last_ticks, h->base_ticks, __ATOMIC_RELAXED);
    __atomic_store_n(cursor_of(l), (uint64_t)(uintptr_t)(p + EVENTS_OFFSET),
                     __ATOMIC_RELEASE);
}

/* Gives the lane a fresh block. False: none to be had, the lane drops for a while. */
static bool roll(struct lane *l)
{
    __atomic_store_n(&l->cursor, 0, __ATOMIC_RELAXED);
    if (l->retry_ticks && (int64_t)(l->retry_ticks - ticks_now()) > 0)
        return false;
    seal(l);
    uint32_t block;
    if (!acquire(l, &block)) {
        /* Asking costs time; ask ever more seldom while the answer is no. */
        if (l->refusals < 8)
            l->refusals++;
        double pause = (double)RETRY_NS * (1u << l->refusals);
        l->retry_ticks = ticks_now() + (uint64_t)(pause * ticks_per_ns());
        return false;
    }
    l->retry_ticks = l->refusals = 0;
    open_block(l, block);
    if ((recorder.control->flags & CONTROL_SUPERVISED) == 0)
        control_tick_clock(recorder.control);
    return true;
}

/* Is the cursor inside the lane's open block? */
static bool has_room(struct lane *l)
{
    if (l->block == 0)
        return false;
    uint64_t base = (uint64_t)(uintptr_t)recorder.file.base +
                    (uint64_t)l->block * BLOCK_SIZE;
    uint64_t cursor = __atomic_load_n(cursor_of(l), __ATOMIC_RELAXED);
    return cursor >= base + EVENTS_OFFSET && cursor < base + BLOCK_SIZE;
}

/* ---- Lanes ----------------------------------------------------------------------- */

static void park(void *arg)
{
    struct lane *l = arg;
    sigset_t old;
    signals_block(&old);
    for (unsigned i = 0; i < sizeof shared / sizeof shared[0]; i++)
        if (shared[i]) {
            *shared[i] = NULL;
            shared[i] = NULL;
        }
    sonde_lane_ = NULL;
    mine = NULL;
    /* In a child that never recorded, the lane is a zeroed one: leave it. */
    uint32_t owned = LANE_OWNED;
    (void)__atomic_compare_exchange_n(&l->state, &owned, LANE_PARKED, false,
                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    signals_restore(&old);
}

static bool claim(struct lane *l, uint32_t from)
{
    return __atomic_compare_exchange_n(&l->state, &from, LANE_OWNED, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Lane 0 is the main thread's. */
static struct lane *find_lane(uint32_t tid)
{
    struct lane *lanes = recorder.wiped->lanes;
    if (tid == (uint32_t)getpid()) {
        if (claim(&lanes[0], LANE_FREE) || claim(&lanes[0], LANE_PARKED))
            return &lanes[0];
    }
    for (unsigned i = 1; i < MAX_LANES; i++)
        if (claim(&lanes[i], LANE_PARKED))
            return &lanes[i];
    for (unsigned i = 1; i < MAX_LANES; i++)
        if (claim(&lanes[i], LANE_FREE))
            return &lanes[i];
    return NULL;
}

static void write_lane_cell(const struct lane *l)
{
    struct tracefile *f = &recorder.file;
    if (tracefile_need(f, tracefile_head(f)->lanes, l->index / LANES_PER_BLOCK,
                       BLOCK_LANES) < 0)
        return;
    struct lane_cell *cell = tracefile_lane(f, l->index);
    if (!cell)
        return;
    cell->tid = l->tid;
    cell->state = LANE_OWNED;
    char name[16] = "";
    (void)prctl(PR_GET_NAME, name);
    memcpy(cell->name, name, sizeof name);
    uint32_t count = __atomic_load_n(&recorder_live()->lane_count, __ATOMIC_RELAXED);
    while (count <= l->index && !__atomic_compare_exchange_n(
                                    &recorder_live()->lane_count, &count, l->index + 1,
                                    true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void watch_exit(struct lane *l)
{
    spin_lock(&recorder.wiped->lanes_lock);
    if (!exit_key_made)
        exit_key_made = pthread_key_create(&exit_key, park) == 0;
    spin_unlock(&recorder.wiped->lanes_lock);
    if (exit_key_made)
        (void)pthread_setspecific(exit_key, l);
}

static struct lane *join(void)
{
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    struct lane *l = find_lane(tid);
    if (!l)
        return NULL;
    l->index = (uint32_t)(l - recorder.wiped->lanes);
    l->tid = tid;
    l->depth = 0;
    watch_exit(l);
    mine = l;
    sonde_lane_ = (struct sonde_lane *)l;
    for (unsigned i = 0; i < sizeof shared / sizeof shared[0]; i++)
        if (shared[i])
            *shared[i] = sonde_lane_; /* those who asked before it was there */
    return l;
}

/* Says in the stream whose events follow. */
static void announce(struct lane *l)
{
    l->told_tid = l->tid;
    write_lane_cell(l);
    const uint64_t payload[1] = { l->tid };
    lanes_record(TAG_THREAD, payload, 1);
}

static struct lane *mine_slow(void)
{
    struct lane *l = mine;
    /* A wiped lane is a forked child's; an unowned one was parked under us. */
    if (!l || __atomic_load_n(&l->state, __ATOMIC_RELAXED) != LANE_OWNED)
        l = join();
    if (!l) {
        lanes_drop(0, LOST_LANES);
        return NULL;
    }
    recorder.wiped->seen[l->index] = recorder.session;
    if (!has_room(l) && !roll(l))
        return NULL;
    if (l->told_tid != l->tid)
        announce(l);
    return l;
}

/* ---- Threads that are slow ------------------------------------------------------- */

/* Between the gate test and the store there is no system call: a thread that sleeps in
 * one is elsewhere. (Unless a signal handler came between and sleeps; that is not seen.)
 * One that waits for a page of the file is in state D. */
static bool is_elsewhere(uint32_t tid)
{
    char path[48], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%u/stat", tid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    const ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    return n <= 0 || (end && end[1] && strchr("SZX", end[2]));
}

bool lanes_hold(uint32_t session)
{
    struct wiped *w = recorder.wiped;
    const uint32_t self = (uint32_t)syscall(SYS_gettid);
    bool held = false;
    for (unsigned i = 0; i < MAX_LANES; i++) {
        const struct lane *l = &w->lanes[i];
        if (w->seen[i] != session ||
            __atomic_load_n(&l->state, __ATOMIC_ACQUIRE) != LANE_OWNED)
            continue;
        if (l->tid == self || is_elsewhere(l->tid))
            w->seen[i] = 0;
        else
            held = true;
    }
    return held;
}

/* No block was to be had a moment ago; roll() says when it will ask again. */
static bool drops_now(const struct lane *l)
{
    return l->retry_ticks &&
           __atomic_load_n(&l->state, __ATOMIC_RELAXED) == LANE_OWNED &&
           (int64_t)(l->retry_ticks - ticks_now()) > 0;
}

struct lane *lanes_mine(void)
{
    struct lane *l = mine;
    if (l && __atomic_load_n(&l->state, __ATOMIC_RELAXED) == LANE_OWNED &&
        l->told_tid == l->tid && has_room(l))
        return l;
    if (l && drops_now(l))
        return NULL; /* at once: a program on a full disk has other worries */
    sigset_t old;
    signals_block(&old);
    l = mine_slow();
    signals_restore(&old);
    return l;
}

void lanes_share(struct sonde_lane **slot)
{
    *slot = (struct sonde_lane *)mine;
    if (slot == &sonde_lane_)
        return;
    for (unsigned i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        if (shared[i] == slot)
            return;
        if (!shared[i]) {
            shared[i] = slot;
            return;
        }
    }
    *slot = NULL; /* too many copies: this one takes the slow path each time */
}

void lanes_follow(struct sonde_lane **slot)
{
    sigset_t old;
    signals_block(&old);
    lanes_share(slot);
    signals_restore(&old);
}

void lanes_name_thread(const char *name)
{
    struct lane *l = lanes_mine();
    struct lane_cell *cell = l ? tracefile_lane(&recorder.file, l->index) : NULL;
    if (!cell)
        return;
    char cut[16] = "";
    memcpy(cut, name, strnlen(name, sizeof cut - 1));
    memcpy(cell->name, cut, sizeof cut);
}

/* ---- Events ---------------------------------------------------------------------- */

static inline uint64_t reserve(struct lane *l, uint64_t bytes)
{
    return sonde_reserve_((struct sonde_lane *)cursor_of(l), bytes);
}

static void write_event(uint32_t tag, uint64_t ticks)
{
    for (;;) {
        struct lane *l = lanes_mine();
        if (!l) {
            lanes_drop(1, 0);
            return;
        }
        uint64_t slot = reserve(l, 8);
        if (!(slot & SONDE_SLOT_MASK))
            continue;
        __atomic_store_n((uint64_t *)(uintptr_t)slot, ticks << 16 | tag,
                         __ATOMIC_RELAXED);
        return;
    }
}

/* Writes a begin that was held back: its zone turned out to matter. */
static void release_held(struct lane *l)
{
    uint32_t tag = l->held_tag;
    l->held_tag = 0;
    if (tag)
        write_event(tag, l->held_ticks);
}

/* Short zones are left out in pairs: a begin waits for the next event of its lane;
 * when that is its own end, and soon, neither is written. */
static void filtered_event(uint32_t tag)
{
    sigset_t old;
    signals_block(&old);
    struct lane *l = mine_slow();
    uint64_t now = ticks_now();
    if (l && (tag & 1) && l->held_tag == tag - 1 &&
        now - l->held_ticks < recorder.control->min_zone_ticks) {
        l->held_tag = 0;
        __atomic_fetch_add(&recorder_live()->filtered, 1, __ATOMIC_RELAXED);
    } else if (l && !(tag & 1)) {
        release_held(l);
        l->held_tag = tag;
        l->held_ticks = now;
    } else if (l) {
        release_held(l);
        write_event(tag, now);
    } else {
        lanes_drop(1, 0);
    }
    signals_restore(&old);
}

bool lanes_is_open(const struct sonde_site *site)
{
    return sonde_is_open_((const struct sonde_lane *)mine, site);
}

/* The zones a thread is in are known even while it has no room for events. */
void lanes_event(uint32_t tag)
{
    if (recorder.slow && recorder.control->min_zone_ticks)
        filtered_event(tag);
    else
        write_event(tag, ticks_now());
    struct sonde_lane *lane = (struct sonde_lane *)mine;
    if (lane && tag & 1)
        sonde_pop_(lane, tag - 1);
    else if (lane)
        sonde_push_(lane, tag);
}

/* Slots that a record reserved at the end of a block and cannot use. */
static void pad_out(uint64_t slot)
{
    for (; slot & (BLOCK_SIZE - 1); slot += 8)
        __atomic_store_n((uint64_t *)(uintptr_t)slot, TAG_PAD, __ATOMIC_RELAXED);
}

void lanes_record(unsigned tag, const uint64_t *payload, unsigned count)
{
    const uint64_t bytes = 8 * (1 + (uint64_t)count);
    for (;;) {
        struct lane *l = lanes_mine();
        if (!l) {
            lanes_drop(1, 0);
            return;
        }
        if (l->held_tag)
            release_held(l);
        uint64_t slot = reserve(l, bytes);
        if (!(slot & SONDE_SLOT_MASK))
            continue;
        if ((slot & (BLOCK_SIZE - 1)) + bytes > BLOCK_SIZE) {
            pad_out(slot);
            continue;
        }
        uint64_t *words = (uint64_t *)(uintptr_t)slot;
        for (unsigned i = 0; i < count; i++)
            __atomic_store_n(&words[i + 1], payload[i] << 16 | TAG_CONT,
                             __ATOMIC_RELAXED);
        /* Release: a head that can be seen has its payload. */
        __atomic_store_n(&words[0], ticks_now() << 16 | tag, __ATOMIC_RELEASE);
        return;
    }
}
