/* recorder.c: the one recorder of a process: off, on, forked.
 *
 * The gate is a page at a fixed address. While nothing is recorded it is a private
 * page that says OFF. With a file, the file's live page is mapped over it, so that
 * the supervisor can open and close the gate of a running program with one store,
 * and every copy of the library in the process reads the same word.
 *
 * A forked child still sees its parent's live page there, but its lanes are zeroed
 * (struct wiped): its first event fails the slot test and comes here, where it gets
 * a file of its own. Children that never record never pay.
 */
#include "record/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct recorder recorder;

void signals_block(sigset_t *ret_old)
{
    sigset_t all;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, ret_old);
}

void signals_restore(const sigset_t *old)
{
    (void)pthread_sigmask(SIG_SETMASK, old, NULL);
}

void spin_lock(uint32_t *lock)
{
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

void spin_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

void recorder_say(const char *text)
{
    if (recorder.quiet)
        return;
    char line[512];
    int n = snprintf(line, sizeof line, "sonde: %s\n", text);
    if (n > 0) {
        ssize_t ignored = write(STDERR_FILENO, line, (size_t)n);
        (void)ignored;
    }
}

/* ---- Memory ---------------------------------------------------------------------- */

static struct wiped *wiped_for_atfork;

static void wipe_after_fork(void)
{
    if (wiped_for_atfork)
        memset(wiped_for_atfork, 0, sizeof *wiped_for_atfork);
}

static int map_memory(void)
{
    const size_t len = (sizeof(struct wiped) + 65535) & ~(size_t)65535;
    struct wiped *w = mmap(NULL, len, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w == MAP_FAILED)
        return -ENOMEM;
    if (madvise(w, len, MADV_WIPEONFORK) != 0) {
        wiped_for_atfork = w; /* before Linux 4.14: at least plain fork works */
        (void)pthread_atfork(NULL, NULL, wipe_after_fork);
    }
    uint32_t *gate = mmap(NULL, BLOCK_SIZE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (gate == MAP_FAILED) {
        (void)munmap(w, len);
        return -ENOMEM;
    }
    *gate = SONDE_GATE_OFF;
    recorder.wiped = w;
    recorder.gate = gate;
    return 0;
}

/* The gate says OFF and nobody outside can change it. */
static void gate_private(void)
{
    uint32_t *p = mmap(recorder.gate, 4096, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    /* Between the mapping and this store the gate reads 0, "on", with lanes that
     * are not ready: an event then takes the slow path and finds nothing to do. */
    if (p != MAP_FAILED)
        __atomic_store_n(recorder.gate, SONDE_GATE_OFF, __ATOMIC_RELEASE);
}

static int gate_shared(void)
{
    void *p = mmap(recorder.gate, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   recorder.file.fd, BLOCK_SIZE);
    return p == MAP_FAILED ? -errno : 0;
}

void recorder_update_gate(void)
{
    control_settle_gate(recorder.control, recorder_live());
}

/* ---- The file -------------------------------------------------------------------- */

static unsigned reason_of(int rc)
{
    switch (rc) {
    case -ENOSPC:
        return LOST_DISK_FULL;
    case -EFBIG:
        return LOST_FILE_LIMIT;
    case -EDQUOT:
        return LOST_BUDGET;
    case -ENOMEM:
        return LOST_ADDRESS_SPACE;
    default:
        return LOST_PERMISSION;
    }
}

/* Fail open: this process goes on unrecorded, and the run knows why. */
static void give_up(int rc)
{
    recorder.failed = true;
    __atomic_fetch_add(&recorder.control->refused, 1, __ATOMIC_RELAXED);
    __atomic_fetch_or(&recorder.control->refused_reason, reason_of(rc),
                      __ATOMIC_RELAXED);
    snprintf(recorder.error, sizeof recorder.error, "cannot record this process: %s",
             rc == -ENOSPC   ? "no space left on device"
             : rc == -EFBIG  ? "file size limit (ulimit -f) too low"
             : rc == -EDQUOT ? "the run's trace budget is used up (--max-trace)"
             : rc == -ENOMEM ? "not enough address space"
                             : "cannot create its trace file");
    gate_private();
}

/* What one event costs on this machine, by recording some into a block that nobody
 * reads: the best of a few rounds, since a preempted one says nothing. */
static uint64_t measure_event_cost(void)
{
    enum { EVENTS = 2000, ROUNDS = 4 };
    uint8_t *room = mmap(NULL, 2 * BLOCK_SIZE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (room == MAP_FAILED)
        return 0;
    uint64_t block = ((uint64_t)(uintptr_t)room + BLOCK_SIZE - 1) &
                     ~(BLOCK_SIZE - 1ULL);
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        struct sonde_lane lane = { .cursor = block + EVENTS_OFFSET };
        uint64_t start = ticks_now();
        for (int i = 0; i < EVENTS; i++)
            (void)sonde_event_(&lane, FIRST_SITE_TAG);
        uint64_t took = ticks_now() - start;
        if (took < best)
            best = took;
    }
    (void)munmap(room, 2 * BLOCK_SIZE);
    return (uint64_t)((double)best / ticks_per_ns() * 1000 / EVENTS);
}

/* Many short-lived children can use the budget up faster than the files of the dead
 * are packed: a child waits a little for the drainer rather than go unrecorded. */
static int create_file(uint64_t forked_from_ns)
{
    int rc;
    for (int attempt = 0; attempt < 2000; attempt++) {
        rc = tracefile_create(recorder.dir, recorder.control, forked_from_ns,
                              &recorder.file);
        if (rc != -EDQUOT || !forked_from_ns)
            break;
        struct timespec ts = { 0, 1000000 };
        (void)nanosleep(&ts, NULL);
    }
    return rc;
}

static bool open_file(uint64_t forked_from_ns)
{
    static uint64_t event_cost; /* children have their parent's */
    if (!event_cost)
        event_cost = measure_event_cost();
    int rc = create_file(forked_from_ns);
    if (rc == 0) {
        tracefile_head(&recorder.file)->event_cost_ps = event_cost;
        sites_copy_to_file();
        recorder_update_gate();
        rc = gate_shared();
        if (rc < 0)
            tracefile_close(&recorder.file);
    }
    if (rc < 0) {
        give_up(rc);
        return false;
    }
    /* Now that the file is complete: this makes the drainer look for it. */
    __atomic_fetch_add(&recorder.control->processes, 1, __ATOMIC_RELEASE);
    folder_init(&recorder.self, &recorder.file);
    recorder.pid = (uint32_t)getpid();
    recorder.failed = false;
    recorder.slow = ticks_source() == TICKS_CLOCK_NS ||
                    recorder.control->min_zone_ticks > 0;
    return true;
}

/* In a forked child: what we have is the parent's. */
static void leave_parent(void)
{
    tracefile_forked();
    gate_private();
    tracefile_close(&recorder.file);
    folder_release(&recorder.self);
}

/* ---- States ---------------------------------------------------------------------- */

static void start_from_environment(void)
{
    const char *disable = secure_getenv("SONDE_DISABLE");
    const char *dir = secure_getenv("SONDE_RUN");
    if (!dir || !*dir || (disable && strcmp(disable, "0") != 0 && *disable))
        return;
    struct control *control;
    if (strlen(dir) >= sizeof recorder.dir || control_map(dir, true, &control) < 0)
        return;
    snprintf(recorder.dir, sizeof recorder.dir, "%s", dir);
    recorder.control = control;
    recorder.on = true;
}

static bool set_up(void)
{
    if (__atomic_load_n(&recorder.ready, __ATOMIC_ACQUIRE))
        return true;
    static uint32_t once; /* the wiped locks do not exist yet */
    spin_lock(&once);
    if (!recorder.ready && map_memory() == 0 && sites_prepare()) {
        start_from_environment();
        recorder.wiped->alive = recorder.on ? 0 : 1;
        __atomic_store_n(&recorder.ready, true, __ATOMIC_RELEASE);
    }
    spin_unlock(&once);
    return __atomic_load_n(&recorder.ready, __ATOMIC_ACQUIRE);
}

bool recorder_ensure(void)
{
    if (!set_up())
        return false;
    struct wiped *w = recorder.wiped;
    if (__atomic_load_n(&w->alive, __ATOMIC_ACQUIRE))
        return recorder.on && !recorder.failed;
    spin_lock(&w->start_lock);
    if (!w->alive) {
        uint64_t parent = 0;
        if (recorder.on && recorder.file.base) {
            parent = tracefile_head(&recorder.file)->start.real_ns;
            leave_parent();
        }
        if (recorder.on)
            (void)open_file(parent);
        __atomic_store_n(&w->alive, 1, __ATOMIC_RELEASE);
    }
    spin_unlock(&w->start_lock);
    return recorder.on && !recorder.failed;
}

int recorder_start(const char *dir, struct control *control)
{
    snprintf(recorder.dir, sizeof recorder.dir, "%s", dir);
    recorder.control = control;
    recorder.failed = false;
    recorder.error[0] = '\0';
    /* Threads known from an earlier session must not write into its file. */
    struct wiped *w = recorder.wiped;
    for (unsigned i = 0; i < MAX_LANES; i++) {
        struct lane *l = &w->lanes[i];
        l->block = l->seq = l->told_tid = l->held_tag = l->depth = 0;
        l->retry_ticks = l->refusals = 0;
        l->slow_cursor = 0;
        __atomic_store_n(&l->cursor, 0, __ATOMIC_RELAXED);
    }
    memset(w->touched, 0, sizeof w->touched);
    recorder.session++;
    tracefile_ask(lanes_hold);
    recorder.on = true;
    if (!open_file(0)) {
        recorder.on = false;
        return -EIO;
    }
    return 0;
}

void recorder_stop(void)
{
    recorder.on = false;
    recorder_live()->flags |= LIVE_EXITED;
    gate_private();
    /* The mapping stays until the rest is folded, its place for longer: a thread may be
     * between its gate test and its store. */
    ownfile_close(&recorder.file.fd, &recorder.file.id);
    folder_release(&recorder.self);
}

void recorder_retire(void)
{
    tracefile_retire(&recorder.file, recorder.session);
    control_retire(recorder.control);
}
