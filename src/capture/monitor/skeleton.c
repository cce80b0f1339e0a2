/* skeleton.c: a monitor to copy.
 *
 *   1. cp skeleton.c mine.c, rename monitor_skeleton
 *   2. declare it in list.h, give it a line in monitors.c
 *   3. tests/unit/capture/monitors_test.c: lay out a machine that has the source and one
 *      that has not; docs/guide-monitors.md: a line in the table of metrics
 *
 * It counts the file handles of the machine: one file, one gauge, one rate.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "capture/monitor/kept.h"

extern const struct monitor_ops monitor_skeleton;

struct skeleton {
    int fd;
    bool known;
    uint64_t before;
};

static void skeleton_close(void *state)
{
    struct skeleton *k = state;
    if (!k)
        return;
    kept_close(&k->fd);
    free(k);
}

/* Everything that may fail or allocate belongs here, not into sample. */
static int skeleton_open(const struct monitor_roots *roots, void **ret_state,
                         const char **ret_why)
{
    struct skeleton *k = calloc(1, sizeof *k);
    if (!k)
        return -ENOMEM;
    k->fd = kept_open(proc_root(roots), "sys/fs/file-nr");
    if (k->fd < 0) {
        *ret_why = "no /proc/sys/fs/file-nr";
        skeleton_close(k);
        return SONDE_E_UNSUPPORTED;
    }
    *ret_state = k;
    return 0;
}

static void skeleton_sample(void *state, const struct monitor_round *round,
                            struct monitor_sink *sink)
{
    struct skeleton *k = state;
    char buffer[64];
    struct scan s;
    uint64_t now;
    if (!kept_read(k->fd, buffer, sizeof buffer, &s) || !scan_u64(&s, &now))
        return; /* not set: no value in this round */
    sink->set(sink, "file_handles", "", "1", (double)now);
    if (k->known && round->elapsed_ns && now >= k->before)
        sink->set(sink, "file_handles_opened", "", "1/s",
                  (double)(now - k->before) * 1e9 / (double)round->elapsed_ns);
    k->before = now;
    k->known = true;
}

const struct monitor_ops monitor_skeleton = {
    .name = "skeleton",
    .what = "open file handles of the machine",
    .open = skeleton_open,
    .sample = skeleton_sample,
    .close = skeleton_close,
};
