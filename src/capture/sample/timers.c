/* timers.c: see timers.h. The rings are written by the program: hostile input. They are
 * read with pread, so that one that is cut off is an error and no signal. */
#include "capture/sample/timers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "capture/sample/procs.h"
#include "capture/sample/stacktab.h"
#include "capture/sample/unwind.h"
#include "trace/timer_ring.h"

enum {
    RINGS_MAX = 512,     /* open at a time; others wait */
    WEIGHT_MOST = 10000, /* periods of one sample: a signal that was blocked for long */
    LOOKS_MOST = 100,    /* for code that is in no mapping, of one process */
};
static const uint64_t SECOND_NS = 1000000000, AFTER_NS = 100000000,
                      AFTER_BUSY_NS = 10000000;

struct ring {
    char *name;
    int fd;
    uint32_t pid;
    bool near; /* its process numbers are ours */
    uint64_t next, lost;
    uint32_t end_maps; /* length of what was taken over */
    unsigned looks;
    bool looked; /* in this round */
    bool given_up;
    bool done[TIMER_SLOTS]; /* taken out, of those from `next` on */
};

struct timers_reader {
    struct stacktab tab;
    struct procs procs;
    struct control *control;
    char *dir;
    int dir_fd;
    uint64_t pid_space;
    struct timespec changed; /* of the directory, when it was read */
    struct ring *rings;
    size_t count;
    unsigned given_up, seen; /* processes */
    bool paused, waiting;    /* some ring was not opened */
    struct unwound unwound;
};

/* ---- Rings --------------------------------------------------------------------------- */

static void take_maps(struct timers_reader *t, struct ring *r, unsigned which,
                      uint32_t len)
{
    char text[TIMER_MAPS + 1];
    if (len > TIMER_MAPS)
        return;
    const ssize_t n = pread(
        r->fd, text, len,
        (off_t)(offsetof(struct timer_ring, maps) + (size_t)which * TIMER_MAPS));
    if (n <= 0)
        return;
    text[n] = '\0';
    procs_take_maps(&t->procs, r->pid, text);
}

/* The beginning of a ring; false: it is none, or not one yet. */
static bool read_head(int fd, struct timer_ring *ret_head)
{
    const size_t len = offsetof(struct timer_ring, pad);
    const bool ok = pread(fd, ret_head, len, 0) == (ssize_t)len &&
                    ret_head->magic == TIMER_RING_MAGIC;
    ret_head->process[sizeof ret_head->process - 1] = '\0';
    return ok;
}

static void remove_ring(struct timers_reader *t, struct ring *r)
{
    (void)unlinkat(t->dir_fd, r->name, 0);
    if (t->control)
        control_give(t->control, TIMER_BLOCKS);
    (void)close(r->fd);
    free(r->name);
    *r = t->rings[--t->count];
    t->waiting = true; /* there is room for another */
}

static struct ring *ring_named(const struct timers_reader *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->rings[i].name, name) == 0)
            return &t->rings[i];
    return NULL;
}

static void read_ring(struct timers_reader *t, struct ring *r, bool *ret_busy);

/* The same process has executed another program. */
static void end_older(struct timers_reader *t, uint32_t pid)
{
    bool busy;
    for (size_t i = t->count; i-- > 0;)
        if (t->rings[i].pid == pid) {
            read_ring(t, &t->rings[i], &busy);
            remove_ring(t, &t->rings[i]);
        }
}

static void add_ring(struct timers_reader *t, const char *name)
{
    static struct timer_ring head;
    const int fd = openat(t->dir_fd, name,
                          O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    char *copy = fd >= 0 && read_head(fd, &head) ? strdup(name) : NULL;
    if (!copy) {
        if (fd >= 0)
            (void)close(fd);
        t->waiting = true; /* not written yet */
        return;
    }
    end_older(t, head.pid);
    t->seen++;
    struct ring *r = &t->rings[t->count++];
    *r = (struct ring){ .name = copy,
                        .fd = fd,
                        .pid = head.pid,
                        .near = head.pid_space && head.pid_space == t->pid_space };
    procs_on_name(&t->procs, r->pid, r->pid, head.process, true);
    take_maps(t, r, 0, head.maps_len[0]);
}

static bool is_ring_name(const char *name)
{
    const size_t len = strlen(name), end = strlen(TIMER_RING_SUFFIX);
    return strncmp(name, TIMER_RING_PREFIX, strlen(TIMER_RING_PREFIX)) == 0 &&
           len > end && strcmp(name + len - end, TIMER_RING_SUFFIX) == 0;
}

/* Names begin with the time: a process's older ring comes first in their order. */
static int oldest_first(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int only_rings(const struct dirent *e)
{
    return is_ring_name(e->d_name);
}

static void find_rings(struct timers_reader *t)
{
    struct stat st;
    struct dirent **names = NULL;
    if (fstat(t->dir_fd, &st) != 0 ||
        (!t->waiting && st.st_mtim.tv_sec == t->changed.tv_sec &&
         st.st_mtim.tv_nsec == t->changed.tv_nsec))
        return;
    struct timespec now = { 0, 0 };
    (void)clock_gettime(CLOCK_REALTIME, &now);
    t->changed = st.st_mtim;
    /* Its clock is coarse: what comes in the same instant must not be missed. */
    t->waiting = now.tv_sec - st.st_mtim.tv_sec < 2;
    const int n = scandir(t->dir, &names, only_rings, oldest_first);
    for (int i = 0; i < n; i++) {
        if (ring_named(t, names[i]->d_name))
            ;
        else if (t->count < RINGS_MAX)
            add_ring(t, names[i]->d_name);
        else
            t->waiting = true;
        free(names[i]);
    }
    free(names);
}

/* ---- Samples ------------------------------------------------------------------------- */

static bool all_known(const struct proc *proc, const struct timer_slot *slot)
{
    for (unsigned i = 0; i < slot->count; i++)
        if (!proc_find(proc, slot->frame[i] - (i > 0)))
            return false;
    return true;
}

/* Something was loaded meanwhile. */
static void look_again(struct timers_reader *t, struct ring *r, const struct proc *proc,
                       const struct timer_slot *slot)
{
    if (!r->near || r->looked || r->looks >= LOOKS_MOST || all_known(proc, slot))
        return;
    r->looked = true;
    r->looks++;
    procs_read_maps(&t->procs, r->pid);
}

static void count_sample(struct timers_reader *t, struct ring *r,
                         struct timer_slot *slot)
{
    struct proc *proc = procs_get(&t->procs, r->pid);
    if (!proc || slot->count == 0 || slot->count > TIMER_FRAMES)
        return;
    slot->name[sizeof slot->name - 1] = '\0';
    if (slot->name[0])
        procs_on_name(&t->procs, r->pid, slot->tid, slot->name, false);
    look_again(t, r, proc, slot);
    const struct perf_sample sample = { .pid = r->pid,
                                        .tid = slot->tid,
                                        .ip = slot->frame[0],
                                        .callchain = slot->frame,
                                        .callchain_len = slot->count };
    unwind_callchain(&t->procs, proc, &sample, &t->unwound);
    t->tab.info->cut += slot->flags & TIMER_CUT;
    const uint32_t task = procs_task(&t->procs, proc, slot->tid);
    const uint32_t weight = slot->weight < WEIGHT_MOST ? slot->weight : WEIGHT_MOST;
    if (weight > 0)
        stacktab_count(&t->tab, task, t->unwound.stack, t->unwound.depth, weight);
}

static off_t slot_offset(uint64_t number)
{
    return (off_t)(offsetof(struct timer_ring, slot) +
                   number % TIMER_SLOTS * sizeof(struct timer_slot));
}

/* Takes one out; false: its writer is still at it, or just about to begin. */
static bool take_slot(struct timers_reader *t, struct ring *r, uint64_t number)
{
    static const uint8_t free_again = TIMER_FREE;
    struct timer_slot slot;
    const off_t at = slot_offset(number);
    if (pread(r->fd, &slot, sizeof slot, at) != (ssize_t)sizeof slot)
        return true;
    if (slot.state != TIMER_FULL)
        return false;
    /* The rest may be older than the word that says it is there. */
    if (pread(r->fd, &slot, sizeof slot, at) != (ssize_t)sizeof slot)
        return true;
    if (!t->paused)
        count_sample(t, r, &slot);
    return pwrite(r->fd, &free_again, 1, at) == 1;
}

static void read_ring(struct timers_reader *t, struct ring *r, bool *ret_busy)
{
    static struct timer_ring head;
    if (!read_head(r->fd, &head))
        return;
    if (head.maps_len[1] != r->end_maps) {
        r->end_maps = head.maps_len[1];
        take_maps(t, r, 1, head.maps_len[1]);
    }
    *ret_busy = head.head - r->next > TIMER_SLOTS / 4;
    if (*ret_busy && (head.head < r->next || head.head - r->next > TIMER_SLOTS)) {
        r->next = head.head > TIMER_SLOTS ? head.head - TIMER_SLOTS : 0;
        memset(r->done, 0, sizeof r->done);
    }
    r->looked = false;
    for (uint64_t n = r->next; n < head.head; n++)
        if (!r->done[n % TIMER_SLOTS])
            r->done[n % TIMER_SLOTS] = take_slot(t, r, n);
    for (; r->next < head.head && r->done[r->next % TIMER_SLOTS]; r->next++)
        r->done[r->next % TIMER_SLOTS] = false;
    if (head.lost > r->lost && !t->paused)
        t->tab.info->lost += head.lost - r->lost;
    r->lost = head.lost;
    t->given_up += head.ended != TIMER_RUNS && !r->given_up;
    r->given_up = head.ended != TIMER_RUNS;
}

static bool is_gone(const struct ring *r)
{
    return r->near && kill((pid_t)r->pid, 0) != 0 && errno == ESRCH;
}

static bool read_all(struct timers_reader *t)
{
    bool any_busy = false;
    find_rings(t);
    for (size_t i = t->count; i-- > 0;) {
        struct ring *r = &t->rings[i];
        bool busy = false;
        const bool gone = is_gone(r); /* asked before: what it wrote is read below */
        read_ring(t, r, &busy);
        any_busy |= busy;
        if (gone) {
            procs_on_exit(&t->procs, r->pid, r->pid);
            remove_ring(t, r);
        }
    }
    return any_busy;
}

/* ---- Open, tick, close --------------------------------------------------------------- */

static int open_inside(struct timers_reader *t, const char *dir)
{
    struct stat space;
    t->dir = strdup(dir);
    t->rings = calloc(RINGS_MAX, sizeof *t->rings);
    t->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!t->dir || !t->rings)
        return -ENOMEM;
    if (t->dir_fd < 0)
        return -errno;
    t->pid_space = stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
    const int rc = stacktab_open(&t->tab, dir, t->control);
    return rc < 0 ? rc : procs_init(&t->procs, &t->tab);
}

int timers_open(const char *dir, struct control *control, unsigned rate_hz,
                struct timers_reader **ret_reader)
{
    struct timers_reader *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->control = control;
    t->waiting = true;
    const int rc = open_inside(t, dir);
    if (rc < 0 || !t->tab.info) {
        timers_close(t);
        return rc < 0 ? rc : -EIO;
    }
    t->tab.info->period_ns = SECOND_NS / (rate_hz ? rate_hz : 1);
    t->tab.info->method = STACKS_BY_TIMER;
    *ret_reader = t;
    return 0;
}

uint64_t timers_tick(struct timers_reader *t)
{
    return read_all(t) ? AFTER_BUSY_NS : AFTER_NS;
}

void timers_pause(struct timers_reader *t, bool paused)
{
    (void)read_all(t); /* what is in the rings belongs to the time before */
    t->paused = paused;
}

unsigned timers_given_up(const struct timers_reader *t)
{
    return t->given_up;
}

/* More than can be open at a time, but not without end: processes that outlive the
 * program may go on making new ones. */
static void take_all(struct timers_reader *t)
{
    enum { ROUNDS = 64 };
    unsigned before = t->seen + 1;
    for (int round = 0; round < ROUNDS && t->seen != before; round++) {
        before = t->seen;
        (void)read_all(t);
        while (t->count > 0)
            remove_ring(t, &t->rings[0]);
    }
}

void timers_close(struct timers_reader *t)
{
    static const char nobody[] =
        "perf_event is not allowed here, and no process could sample itself: statically "
        "linked, setuid, built with a sanitizer, or --max-trace is used up";
    if (!t)
        return;
    if (t->tab.info && t->procs.threads) {
        take_all(t);
        if (t->seen == 0)
            t->tab.info->why = stacktab_text(&t->tab, nobody);
        procs_release(&t->procs);
    }
    if (t->tab.info)
        stacktab_close(&t->tab);
    if (t->dir_fd >= 0)
        (void)close(t->dir_fd);
    free(t->rings);
    free(t->dir);
    free(t);
}

void timers_sweep(const char *dir)
{
    struct dirent **names = NULL;
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int n = fd >= 0 ? scandir(dir, &names, only_rings, NULL) : 0;
    for (int i = 0; i < n; i++) {
        (void)unlinkat(fd, names[i]->d_name, 0);
        free(names[i]);
    }
    free(names);
    if (fd >= 0)
        (void)close(fd);
}
