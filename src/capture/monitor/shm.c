/* shm.c: how full /dev/shm is: workers of data loaders hand over batches in it, and die
 * of SIGBUS when it is full. Containers often have 64 MiB of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/error.h"
#include "capture/monitor/kept.h"
#include "capture/monitor/list.h"

struct shm {
    char path[4096];
};

static const double MIB = 1 << 20;

static void shm_close(void *state)
{
    free(state);
}

/* Tests have roots of their own: there it stands beside proc. */
static int shm_open_monitor(const struct monitor_roots *roots, void **ret_state,
                            const char **ret_why)
{
    struct shm *m = calloc(1, sizeof *m);
    struct statvfs st;
    if (!m)
        return -ENOMEM;
    const char *proc = roots && roots->proc ? roots->proc : "";
    (void)snprintf(m->path, sizeof m->path, "%s%s", proc,
                   proc[0] ? "/../dev/shm" : "/dev/shm");
    if (statvfs(m->path, &st) < 0) {
        *ret_why = "no /dev/shm";
        free(m);
        return SONDE_E_UNSUPPORTED;
    }
    *ret_state = m;
    return 0;
}

static void shm_sample(void *state, const struct monitor_round *round,
                       struct monitor_sink *sink)
{
    const struct shm *m = state;
    struct statvfs st;
    (void)round;
    if (statvfs(m->path, &st) < 0 || st.f_blocks == 0)
        return;
    const double block = (double)st.f_frsize / MIB;
    sink->set(sink, "shm_total", "", "MiB", (double)st.f_blocks * block);
    sink->set(sink, "shm_used", "", "MiB", (double)(st.f_blocks - st.f_bfree) * block);
}

const struct monitor_ops monitor_shm = {
    .name = "shm",
    .what = "how full /dev/shm is",
    .open = shm_open_monitor,
    .sample = shm_sample,
    .close = shm_close,
};
