/* syscalls.c: see syscalls.h. */
#include "launch/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"

#define EVENT "events/raw_syscalls/sys_enter/id"

/* ---- The tracepoint's number -------------------------------------------------------- */

static int read_id(int dir, const char *path, uint64_t *ret_id)
{
    char text[32] = "";
    const int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const ssize_t n = fd_read_full(fd, text, sizeof text - 1);
    (void)close(fd);
    char *end;
    const unsigned long long id = strtoull(text, &end, 10);
    if (n <= 0 || end == text)
        return n < 0 ? (int)n : -EIO;
    *ret_id = id;
    return 0;
}

/* tracefs without a place in the tree: nobody else sees it, and it goes with the
 * descriptor. linux/mount.h cannot be had beside sys/mount.h, so its numbers are here. */
static int mount_tracefs(void)
{
#if defined(SYS_fsopen) && defined(SYS_fsconfig) && defined(SYS_fsmount)
    enum { CLOEXEC = 1, CMD_CREATE = 6, READ_ONLY = 1 };
    const int context = (int)syscall(SYS_fsopen, "tracefs", CLOEXEC);
    if (context < 0)
        return -errno;
    int fd = -1;
    if (syscall(SYS_fsconfig, context, CMD_CREATE, NULL, NULL, 0) == 0)
        fd = (int)syscall(SYS_fsmount, context, CLOEXEC, READ_ONLY);
    const int rc = fd < 0 ? -errno : fd;
    (void)close(context);
    return rc;
#else
    return -ENOSYS;
#endif
}

static int find_id(uint64_t *ret_id, char *ret_why)
{
    static const char *const places[] = { "/sys/kernel/tracing/" EVENT,
                                          "/sys/kernel/debug/tracing/" EVENT };
    int rc = read_id(AT_FDCWD, places[0], ret_id);
    if (rc < 0 && read_id(AT_FDCWD, places[1], ret_id) == 0)
        rc = 0;
    if (rc == 0)
        return 0;
    const int mount = mount_tracefs();
    if (mount >= 0) {
        rc = read_id(mount, EVENT, ret_id);
        (void)close(mount);
        if (rc < 0)
            (void)snprintf(ret_why, SYSCALLS_WHY,
                           "this kernel has no tracepoint for them "
                           "(CONFIG_FTRACE_SYSCALLS)");
        return rc;
    }
    if (rc == -EACCES || rc == -EPERM)
        (void)snprintf(ret_why, SYSCALLS_WHY,
                       "/sys/kernel/tracing may not be read (run as root, or as root: "
                       "mount -o remount,mode=755 /sys/kernel/tracing)");
    else
        (void)snprintf(ret_why, SYSCALLS_WHY,
                       "tracefs is not mounted (run as root, or as root: mount -t "
                       "tracefs -o mode=755 tracefs /sys/kernel/tracing)");
    return rc;
}

/* ---- The event ---------------------------------------------------------------------- */

static void say_why(int rc, char *ret_why)
{
    char level[16] = "";
    const int fd = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fd_read_full(fd, level, sizeof level - 1);
        (void)close(fd);
    }
    level[strcspn(level, "\n")] = '\0';
    if ((rc == -EACCES || rc == -EPERM) && atoi(level) > 1 && geteuid() != 0)
        (void)snprintf(
            ret_why, SYSCALLS_WHY,
            "kernel.perf_event_paranoid is %s (run as root, or as root: sysctl "
            "kernel.perf_event_paranoid=1)",
            level);
    else if (rc == -EACCES || rc == -EPERM || rc == -ENOSYS)
        (void)snprintf(
            ret_why, SYSCALLS_WHY,
            "perf_event_open is forbidden here (docker run --cap-add PERFMON, "
            "or a seccomp profile with it)");
    else
        (void)snprintf(ret_why, SYSCALLS_WHY, "perf_event_open: %s", error_text(rc));
}

int syscall_counter_open(pid_t pid, struct syscall_counter *ret_counter, char *ret_why)
{
    uint64_t id = 0;
    int rc = find_id(&id, ret_why);
    if (rc < 0)
        return rc;
    struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT,
                                    .size = sizeof attr,
                                    .config = id,
                                    .disabled = 1,
                                    .enable_on_exec = 1,
                                    .inherit = 1 };
    const long fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1,
                            PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) {
        rc = -errno;
        say_why(rc, ret_why);
        return rc;
    }
    ret_counter->fd = (int)fd;
    return 0;
}

int syscall_counter_read(const struct syscall_counter *counter, uint64_t *ret_count)
{
    uint64_t count;
    const ssize_t n = read(counter->fd, &count, sizeof count);
    if (n != sizeof count)
        return n < 0 ? -errno : -EIO;
    *ret_count = count;
    return 0;
}

void syscall_counter_close(struct syscall_counter *counter)
{
    if (counter->fd >= 0)
        (void)close(counter->fd);
    counter->fd = -1;
}

bool syscalls_countable(char *ret_why)
{
    struct syscall_counter counter = { .fd = -1 };
    const int rc = syscall_counter_open(0, &counter, ret_why); /* ourselves */
    syscall_counter_close(&counter);
    return rc == 0;
}
