/* control.c: create, map and use a run's control file. */
#include "trace/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "trace/space.h"

/* Readings come every 10 s; a table that fills up slows down instead of growing. The
 * second comes soon: from then on the run knows its rate, however it ends. */
static uint64_t clock_interval_ns(uint64_t count)
{
    if (count < 2)
        return 600000000u;
    uint64_t seconds = count < 4096 ? 10 : count < 6144 ? 100 : 1000;
    return seconds * 1000000000u;
}

static int control_path(const char *dir, char *ret_path, size_t size)
{
    int n = snprintf(ret_path, size, "%s/control.sonde", dir);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static struct clock_entry *clock_entries(const struct control *c)
{
    return (struct clock_entry *)((char *)(uintptr_t)c + CONTROL_CLOCK_OFFSET);
}

static void control_fill(struct control *c, const struct control_options *o)
{
    uint64_t max = o->max_trace ? o->max_trace : 1ULL << 30;
    c->major = TRACE_MAJOR;
    c->minor = TRACE_MINOR;
    c->flags = (o->lossy ? CONTROL_LOSSY : 0) |
               (o->supervised ? CONTROL_SUPERVISED : 0);
    snprintf(c->run_id, sizeof c->run_id, "%s", o->run_id ? o->run_id : "");
    c->level = o->level ? o->level : SONDE_DETAILED;
    c->gate = o->gate_off || o->first_step > 1 ? SONDE_GATE_OFF : 0;
    c->min_zone_ticks = o->min_zone_ns
                            ? (uint64_t)((double)o->min_zone_ns * ticks_per_ns())
                            : 0;
    c->first_step = o->first_step;
    c->last_step = o->last_step;
    c->max_blocks = max / BLOCK_SIZE;
    c->drainer_pid = (uint32_t)getpid();
    control_append_clock(c);
    /* Last: a file without the magic is not a control file yet. */
    __atomic_store_n(&c->magic, CONTROL_MAGIC, __ATOMIC_RELEASE);
}

int control_create(const char *dir, const struct control_options *options,
                   struct control **ret_control)
{
    char path[4096];
    int rc = control_path(dir, path, sizeof path);
    if (rc < 0)
        return rc;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    rc = space_reserve(fd, 0, CONTROL_SIZE);
    if (rc < 0)
        goto done;
    void *p = mmap(NULL, CONTROL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        rc = -errno;
        goto done;
    }
    control_fill(p, options);
    *ret_control = p;
done:
    (void)close(fd);
    if (rc < 0)
        (void)unlink(path);
    return rc;
}

int control_map(const char *dir, bool writable, struct control **ret_control)
{
    char path[4096];
    int rc = control_path(dir, path, sizeof path);
    if (rc < 0)
        return rc;
    int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    struct stat st;
    void *p = MAP_FAILED;
    if (fstat(fd, &st) != 0)
        rc = -errno;
    else if (!S_ISREG(st.st_mode) || st.st_size < CONTROL_SIZE)
        rc = SONDE_E_FORMAT;
    else if ((p = mmap(NULL, CONTROL_SIZE, PROT_READ | (writable ? PROT_WRITE : 0),
                       MAP_SHARED, fd, 0)) == MAP_FAILED)
        rc = -errno;
    (void)close(fd);
    if (rc < 0)
        return rc;
    struct control *c = p;
    if (__atomic_load_n(&c->magic, __ATOMIC_ACQUIRE) != CONTROL_MAGIC)
        rc = SONDE_E_FORMAT;
    else if (c->major != TRACE_MAJOR)
        rc = SONDE_E_VERSION;
    if (rc < 0) {
        control_unmap(c);
        return rc;
    }
    *ret_control = c;
    return 0;
}

void control_unmap(struct control *control)
{
    if (control)
        (void)munmap(control, CONTROL_SIZE);
}

void control_retire(struct control *c)
{
    (void)mmap(c, CONTROL_SIZE, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

bool control_take(struct control *c, uint64_t blocks)
{
    uint64_t used = __atomic_add_fetch(&c->used_blocks, blocks, __ATOMIC_RELAXED);
    if (used <= c->max_blocks)
        return true;
    control_give(c, blocks);
    return false;
}

void control_give(struct control *c, uint64_t blocks)
{
    __atomic_sub_fetch(&c->used_blocks, blocks, __ATOMIC_RELAXED);
}

/* ---- The gate ------------------------------------------------------------------------ */

static uint32_t wanted_gate(const struct control *c, const struct trace_live *live)
{
    uint32_t gate = __atomic_load_n(&c->gate, __ATOMIC_SEQ_CST);
    if (c->first_step || c->last_step) {
        const uint64_t step = __atomic_load_n(&live->steps, __ATOMIC_SEQ_CST);
        const bool inside = step >= c->first_step &&
                            (!c->last_step || step <= c->last_step);
        gate = inside ? 0 : SONDE_GATE_OFF;
    }
    return __atomic_load_n(&live->paused, __ATOMIC_SEQ_CST) ? SONDE_GATE_OFF : gate;
}

static void note_shut(struct trace_live *live)
{
    uint64_t open = 0;
    (void)__atomic_compare_exchange_n(&live->shut_ticks, &open, ticks_now(), false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void note_open(struct trace_live *live)
{
    const uint64_t now = ticks_now();
    const uint64_t since = __atomic_exchange_n(&live->shut_ticks, 0, __ATOMIC_SEQ_CST);
    if (since == 0 || now < since)
        return;
    __atomic_fetch_add(&live->unrecorded, now - since, __ATOMIC_RELAXED);
}

/* Two who settle at once may each see only one of two changes, and the one who stores
 * last may have looked first. So everybody looks again after storing: a change that
 * comes after that look is followed by a store of whoever made it. Bounded, because the
 * page is the program's and it may change it for ever. */
void control_settle_gate(const struct control *c, struct trace_live *live)
{
    uint32_t gate = wanted_gate(c, live);
    for (int again = 0; again < 1000; again++) {
        __atomic_store_n(&live->gate, gate, __ATOMIC_SEQ_CST);
        if (gate == SONDE_GATE_OFF)
            note_shut(live);
        else
            note_open(live);
        const uint32_t now = wanted_gate(c, live);
        if (now == gate)
            return;
        gate = now;
    }
}

/* ---- The clock ----------------------------------------------------------------------- */

void control_append_clock(struct control *c)
{
    uint64_t at = __atomic_fetch_add(&c->clock_count, 1, __ATOMIC_ACQ_REL);
    if (at >= CONTROL_CLOCK_MAX) {
        __atomic_store_n(&c->clock_count, CONTROL_CLOCK_MAX, __ATOMIC_RELAXED);
        return;
    }
    struct clock_entry *e = &clock_entries(c)[at];
    struct clock_reading now;
    clock_read(&now);
    e->reading = now;
    __atomic_store_n(&e->valid, 1, __ATOMIC_RELEASE);
}

void control_finish_clock(struct control *c)
{
    __atomic_store_n(&c->clock_done, 1, __ATOMIC_RELEASE);
}

void control_tick_clock(struct control *c)
{
    uint64_t count = __atomic_load_n(&c->clock_count, __ATOMIC_ACQUIRE);
    if (count == 0 || count >= CONTROL_CLOCK_MAX)
        return;
    const struct clock_entry *last = &clock_entries(c)[count - 1];
    if (!__atomic_load_n(&last->valid, __ATOMIC_ACQUIRE))
        return; /* somebody is writing it, or was killed there: harmless either way */
    uint64_t age_ticks = ticks_now() - last->reading.ticks;
    if ((double)age_ticks / ticks_per_ns() >= (double)clock_interval_ns(count))
        control_append_clock(c);
}

static int same_boot(const struct clock_reading *first)
{
    /* Monotonic clocks restart at boot and count from it: a reading from this boot
     * gives the same wall-clock time of boot, to within steps of the clock. */
    struct clock_reading now;
    clock_read(&now);
    uint64_t then_boot = first->real_ns - first->mono_ns;
    uint64_t now_boot = now.real_ns - now.mono_ns;
    uint64_t apart = then_boot > now_boot ? then_boot - now_boot : now_boot - then_boot;
    return first->ticks <= now.ticks && apart < 2000000000;
}

int control_read_clock(const char *dir, struct clock_table *ret_table)
{
    char path[4096];
    int rc = control_path(dir, path, sizeof path);
    if (rc < 0)
        return rc;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    char *bytes = malloc(CONTROL_SIZE);
    struct clock_reading *readings = malloc(CONTROL_CLOCK_MAX * sizeof *readings);
    if (!bytes || !readings) {
        rc = -ENOMEM;
        goto done;
    }
    ssize_t got = pread(fd, bytes, CONTROL_SIZE, 0);
    const struct control *c = (const void *)bytes;
    if (got < 0) {
        rc = -errno;
        goto done;
    }
    if (got < CONTROL_CLOCK_OFFSET || c->magic != CONTROL_MAGIC) {
        rc = SONDE_E_FORMAT;
        goto done;
    }
    size_t room = ((size_t)got - CONTROL_CLOCK_OFFSET) / sizeof(struct clock_entry),
           n = 0;
    const struct clock_entry *entries = clock_entries(c);
    for (size_t i = 0; i < room && i < c->clock_count; i++)
        if (entries[i].valid == 1)
            readings[n++] = entries[i].reading;
    /* All events of a run that is over lie between its readings: however close these
     * are, interpolation is as exact as they are, and the same for every reader. */
    const bool whole = c->clock_done && n >= 2;
    rc = clock_table_build(readings, n, n > 0 && !whole && same_boot(&readings[0]),
                           ticks_source(), ret_table);
done:
    free(readings);
    free(bytes);
    (void)close(fd);
    return rc;
}
