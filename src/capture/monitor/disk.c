/* disk.c: bytes read and written, per process and per device.
 *
 * /proc/PID/io counts exactly: rchar and wchar what all calls moved, page cache, pipes
 * and all; read_bytes and write_bytes what went from and to storage. To the numbers of
 * a process the kernel adds those of every child it waits for. So when a process is
 * gone, what it had is expected at its nearest ancestor still there; it is taken off
 * what that one is said to have done itself. Where nobody is left, it is kept as
 * `orphaned`, and the sum over the run never falls.
 */
#include "capture/monitor/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/error.h"
#include "capture/monitor/kept.h"
#include "capture/monitor/proctab.h"
#include "capture/monitor/readings.h"

enum { DEVICES_MOST = 128, BUFFER = 32 << 10, SECTOR = 512 };
static const double MIB = 1 << 20;

/* What is followed of struct process_io. */
enum { READ, WRITTEN, DISK_READ, DISK_WRITTEN, FLOWS };
static const struct {
    const char *metric;
    enum monitor_total total;
} flows[FLOWS] = {
    { "read", TOTAL_READ_BYTES },
    { "write", TOTAL_WRITTEN_BYTES },
    { "disk_read", TOTAL_DISK_READ_BYTES },
    { "disk_write", TOTAL_DISK_WRITTEN_BYTES },
};

struct amounts {
    uint64_t of[FLOWS];
};

struct disk_slot {
    struct proc_slot base;
    int io_fd;
    bool known;
    uint32_t ppid;
    struct amounts all;       /* as the kernel says */
    struct amounts inherited; /* of it, of children it waited for */
    struct amounts own;       /* the rest, at the last reading */
};

struct device {
    char name[32];
    bool shown, known;
    uint64_t reads, writes, read_sectors, written_sectors, busy_ms, queue_ms;
};

struct disk {
    const char *proc, *sys;
    int diskstats_fd;
    struct proctab tab;
    bool any, denied;
    struct amounts orphaned, tree;
    size_t device_count;
    struct device device[DEVICES_MOST];
    char buffer[BUFFER];
};

/* ---- Processes --------------------------------------------------------------------------- */

static void slot_open(void *owner, void *at)
{
    const struct disk *d = owner;
    struct disk_slot *slot = at;
    slot->io_fd = kept_open(d->proc, "%u/io", slot->base.process.pid);
    /* Once is enough: who gets a new parent has left all of ours. */
    struct process_stat stat;
    int fd = kept_open(d->proc, "%u/stat", slot->base.process.pid);
    if (read_process_stat(fd, &stat))
        slot->ppid = stat.ppid;
    kept_close(&fd);
}

static void slot_close(void *owner, void *at)
{
    struct disk_slot *slot = at;
    (void)owner;
    kept_close(&slot->io_fd);
}

static void add(struct amounts *to, const struct amounts *from)
{
    for (unsigned i = 0; i < FLOWS; i++)
        to->of[i] += from->of[i];
}

static void bury(struct disk *d, const struct disk_slot *gone, const bool *is_gone)
{
    const struct disk_slot *child = gone;
    for (int step = 0; step < 64; step++) {
        struct disk_slot *parent = proctab_find(&d->tab, child->ppid);
        if (!parent)
            break;
        const size_t index = (size_t)((char *)parent - d->tab.slots) / d->tab.slot_size;
        if (!is_gone[index]) {
            add(&parent->inherited, &gone->all);
            return;
        }
        child = parent;
    }
    add(&d->orphaned, &gone->all);
}

static void bury_gone(struct disk *d, const struct monitor_round *round)
{
    bool small[512] = { false };
    bool *gone = d->tab.count <= 512 ? small : calloc(d->tab.count, sizeof *gone);
    size_t at = 0, dead = 0;
    if (!gone)
        return;
    for (size_t i = 0; i < d->tab.count; i++)
        dead += gone[i] = proctab_gone(&d->tab, i, round, &at);
    for (size_t i = 0; dead && i < d->tab.count; i++)
        if (gone[i])
            bury(d, proctab_at(&d->tab, i), gone);
    if (gone != small)
        free(gone);
}

static struct amounts amounts_of(const struct process_io *io)
{
    return (struct amounts){ { [READ] = io->rchar,
                               [WRITTEN] = io->wchar,
                               [DISK_READ] = io->read_bytes,
                               [DISK_WRITTEN] = io->write_bytes } };
}

/* Less what came from children; never less than was said before. */
static struct amounts own_of(const struct disk_slot *slot)
{
    struct amounts own;
    for (unsigned i = 0; i < FLOWS; i++)
        own.of[i] = slot->all.of[i] > slot->own.of[i] + slot->inherited.of[i]
                        ? slot->all.of[i] - slot->inherited.of[i]
                        : slot->own.of[i];
    return own;
}

static void sample_process(struct disk *d, size_t i, const struct monitor_round *round,
                           struct monitor_sink *sink)
{
    struct disk_slot *slot = proctab_at(&d->tab, i);
    struct process_io io;
    if (!read_process_io(slot->io_fd, &io)) {
        d->denied |= slot->io_fd < 0;
        return;
    }
    slot->all = amounts_of(&io);
    const struct amounts own = own_of(slot);
    for (unsigned f = 0; f < FLOWS; f++) {
        if (slot->known && round->elapsed_ns)
            sink->set_process(sink, i, flows[f].metric, "MiB/s",
                              (double)(own.of[f] - slot->own.of[f]) / MIB * 1e9 /
                                  (double)round->elapsed_ns);
        sink->total(sink, i, flows[f].total, (double)own.of[f]);
    }
    slot->own = own;
    slot->known = true;
}

static void sample_tree(struct disk *d, const struct monitor_round *round,
                        struct monitor_sink *sink)
{
    size_t known = 0;
    bury_gone(d, round);
    proctab_follow(&d->tab, round);
    struct amounts sum = d->orphaned;
    for (size_t i = 0; i < d->tab.count; i++) {
        const struct disk_slot *slot = proctab_at(&d->tab, i);
        sample_process(d, i, round, sink);
        add(&sum, &slot->all);
        known += slot->known;
    }
    if (d->denied)
        sink->unavailable(sink, "read",
                          "/proc/PID/io of a process is not ours to read");
    for (unsigned f = 0; f < FLOWS && known; f++) {
        if (sum.of[f] < d->tree.of[f])
            sum.of[f] = d->tree.of[f]; /* a child nobody waited for took it along */
        if (d->any && round->elapsed_ns)
            sink->set(sink, flows[f].metric, "", "MiB/s",
                      (double)(sum.of[f] - d->tree.of[f]) / MIB * 1e9 /
                          (double)round->elapsed_ns);
    }
    d->any |= known > 0;
    d->tree = sum;
}

/* ---- Devices --------------------------------------------------------------------------------- */

/* Whole devices that are some: partitions would count everything twice. */
static bool is_disk(const struct disk *d, const char *name)
{
    char path[600];
    struct stat st;
    if (strncmp(name, "loop", 4) == 0 || strncmp(name, "ram", 3) == 0)
        return false;
    (void)snprintf(path, sizeof path, "%s/block/%s", d->sys, name);
    return stat(path, &st) == 0;
}

static struct device *device_named(struct disk *d, const char *name, size_t len)
{
    if (len == 0 || len >= sizeof d->device[0].name)
        return NULL;
    for (size_t i = 0; i < d->device_count; i++)
        if (memcmp(d->device[i].name, name, len) == 0 && !d->device[i].name[len])
            return &d->device[i];
    if (d->device_count == DEVICES_MOST)
        return NULL;
    struct device *one = &d->device[d->device_count++];
    memcpy(one->name, name, len);
    one->shown = is_disk(d, one->name);
    return one;
}

static void set_rates(const struct device *now, const struct device *before,
                      double seconds, struct monitor_sink *sink)
{
    const char *name = before->name;
    const double ops = (double)(now->reads - before->reads + now->writes -
                                before->writes);
    sink->set(sink, "device_read", name, "MiB/s",
              (double)(now->read_sectors - before->read_sectors) * SECTOR / MIB /
                  seconds);
    sink->set(sink, "device_write", name, "MiB/s",
              (double)(now->written_sectors - before->written_sectors) * SECTOR / MIB /
                  seconds);
    sink->set(sink, "device_operations", name, "1/s", ops / seconds);
    sink->set(sink, "device_busy", name, "percent",
              (double)(now->busy_ms - before->busy_ms) / 10 / seconds);
    /* Requests under way, on average over the interval. */
    sink->set(sink, "device_queue", name, "1",
              (double)(now->queue_ms - before->queue_ms) / 1e3 / seconds);
}

/* "8 0 sda reads merged sectors ms writes merged sectors ms flying busy_ms queue_ms …" */
static bool scan_device(struct scan *s, const char **ret_name, size_t *ret_len,
                        struct device *ret)
{
    uint64_t major, minor, v[11];
    if (!scan_u64(s, &major) || !scan_u64(s, &minor))
        return false;
    scan_blanks(s);
    *ret_name = s->at;
    if (!scan_skip_word(s))
        return false;
    *ret_len = (size_t)(s->at - *ret_name);
    for (unsigned i = 0; i < 11; i++)
        if (!scan_u64(s, &v[i]))
            return false;
    *ret = (struct device){ .reads = v[0],
                            .read_sectors = v[2],
                            .writes = v[4],
                            .written_sectors = v[6],
                            .busy_ms = v[9],
                            .queue_ms = v[10] };
    return true;
}

static void sample_devices(struct disk *d, const struct monitor_round *round,
                           struct monitor_sink *sink)
{
    struct scan s;
    if (!kept_read(d->diskstats_fd, d->buffer, sizeof d->buffer, &s))
        return;
    do {
        struct device now;
        const char *name;
        size_t len;
        struct device *one = scan_device(&s, &name, &len, &now)
                                 ? device_named(d, name, len)
                                 : NULL;
        if (!one || !one->shown)
            continue;
        if (one->known && round->elapsed_ns && now.reads >= one->reads &&
            now.writes >= one->writes)
            set_rates(&now, one, (double)round->elapsed_ns / 1e9, sink);
        memcpy(now.name, one->name, sizeof now.name);
        now.shown = now.known = true;
        *one = now;
    } while (scan_next_line(&s));
}

/* ---- The monitor ----------------------------------------------------------------------------- */

static void disk_close(void *state)
{
    struct disk *d = state;
    if (!d)
        return;
    proctab_release(&d->tab);
    kept_close(&d->diskstats_fd);
    free(d);
}

static int disk_open(const struct monitor_roots *roots, void **ret_state,
                     const char **ret_why)
{
    struct disk *d = calloc(1, sizeof *d);
    (void)ret_why;
    if (!d)
        return -ENOMEM;
    d->proc = proc_root(roots);
    d->sys = sys_root(roots);
    d->tab = (struct proctab){ .slot_size = sizeof(struct disk_slot),
                               .owner = d,
                               .open = slot_open,
                               .close = slot_close };
    d->diskstats_fd = kept_open(d->proc, "diskstats");
    *ret_state = d;
    return 0;
}

static void disk_sample(void *state, const struct monitor_round *round,
                        struct monitor_sink *sink)
{
    struct disk *d = state;
    sample_tree(d, round, sink);
    if (d->diskstats_fd < 0)
        sink->unavailable(sink, "device_read", "no /proc/diskstats");
    sample_devices(d, round, sink);
}

const struct monitor_ops monitor_disk = {
    .name = "disk",
    .what = "bytes read and written, per process and per device",
    .open = disk_open,
    .sample = disk_sample,
    .close = disk_close,
};
