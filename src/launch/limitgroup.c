/* limitgroup.c: --memory-limit by the kernel. */
#include "launch/limitgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"

static int write_file(const char *dir, const char *name, const char *text)
{
    char path[MEMCG_PATH + 96];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? SONDE_E_UNSUPPORTED : -errno;
    const int rc = fd_write_full(fd, text, strlen(text));
    (void)close(fd);
    return rc;
}

int limitgroup_create(const struct memcg *ours, const char *id, uint64_t bytes,
                      struct limitgroup *ret_group)
{
    struct limitgroup g;
    char text[32];
    const bool v2 = ours->version == 2;
    if (ours->version == 0)
        return SONDE_E_UNSUPPORTED;
    (void)snprintf(g.dir, sizeof g.dir, "%s/sonde-%s", ours->dir, id);
    (void)snprintf(g.procs, sizeof g.procs, "%s/cgroup.procs", g.dir);
    (void)snprintf(text, sizeof text, "%" PRIu64, bytes);
    if (mkdir(g.dir, 0755) < 0)
        return -errno;
    int rc = write_file(g.dir, v2 ? "memory.max" : "memory.limit_in_bytes", text);
    /* Swap would only make it slow before it dies; not every kernel counts it. */
    if (rc == 0)
        (void)(v2 ? write_file(g.dir, "memory.swap.max", "0")
                  : write_file(g.dir, "memory.memsw.limit_in_bytes", text));
    if (rc == 0 && access(g.procs, W_OK) < 0)
        rc = -errno;
    if (rc < 0)
        (void)rmdir(g.dir);
    else
        *ret_group = g;
    return rc;
}

int limitgroup_remove(const struct limitgroup *group)
{
    return rmdir(group->dir) < 0 ? -errno : 0;
}
