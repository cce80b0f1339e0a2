/* kernellog.c: what the kernel wrote about processes of ours. */
#include "launch/kernellog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048, LINES_AT_ONCE = 4096 };

int kernellog_open(struct kernellog *ret_log)
{
    *ret_log = (struct kernellog){ .fd = -1 };
    const int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (lseek(fd, 0, SEEK_END) < 0) {
        const int rc = -errno;
        (void)close(fd);
        return rc;
    }
    ret_log->fd = fd;
    return 0;
}

void kernellog_release(struct kernellog *log)
{
    if (log->fd >= 0)
        (void)close(log->fd);
    log->fd = -1;
}

/* "6,1234,5678,-;text\n continuation". EPIPE: lines were overwritten, go on. */
void kernellog_read(struct kernellog *log)
{
    char record[LINE_MAX_BYTES + 1];
    for (int i = 0; log->fd >= 0 && i < LINES_AT_ONCE; i++) {
        const ssize_t n = read(log->fd, record, LINE_MAX_BYTES);
        if (n < 0 && (errno == EPIPE || errno == EINTR))
            continue;
        if (n <= 0)
            break;
        record[n] = '\0';
        char *text = strchr(record, ';');
        if (!text)
            continue;
        text[strcspn(text, "\n")] = '\0';
        kernellog_line(log, text + 1);
    }
}

static void copy_until(char *ret_text, size_t size, const char *from, const char *ends)
{
    (void)snprintf(ret_text, size, "%.*s", (int)strcspn(from, ends), from);
}

/* "oom-kill:constraint=CONSTRAINT_MEMCG,…,oom_memcg=/x,task_memcg=/x,task=name,pid=1,…":
 * stands before the line that tells sizes. */
static void read_oom_summary(struct kernellog *log, const char *text)
{
    const char *group = strstr(text, "oom_memcg=");
    const char *name = strstr(text, ",task=");
    const char *pid = name ? strstr(name, ",pid=") : NULL;
    if (!pid || log->kill_count == KERNELLOG_KILLS)
        return;
    struct kernellog_kill *k = &log->kill[log->kill_count++];
    *k = (struct kernellog_kill){ .pid = (pid_t)strtol(pid + 5, NULL, 10) };
    k->by_group = strstr(text, "CONSTRAINT_MEMCG") != NULL;
    copy_until(k->comm, sizeof k->comm, name + 6, ",");
    if (group)
        copy_until(k->group, sizeof k->group, group + 10, ",");
}

static uint64_t kib_behind(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    return at ? strtoull(at + strlen(word), NULL, 10) * 1024 : 0;
}

/* "Memory cgroup out of memory: Killed process 12 (name) total-vm:1kB, anon-rss:1kB,
 * file-rss:1kB, shmem-rss:1kB, …" */
static void read_killed(struct kernellog *log, const char *line, const char *text)
{
    char *end;
    const pid_t pid = (pid_t)strtol(text, &end, 10);
    struct kernellog_kill *k = NULL;
    for (unsigned i = 0; i < log->kill_count && !k; i++)
        if (log->kill[i].pid == pid && log->kill[i].rss == 0)
            k = &log->kill[i];
    if (!k && log->kill_count < KERNELLOG_KILLS && *end == ' ' && end[1] == '(') {
        k = &log->kill[log->kill_count++];
        *k = (struct kernellog_kill){ .pid = pid };
        k->by_group = strncmp(line, "Memory cgroup", 13) == 0;
        copy_until(k->comm, sizeof k->comm, end + 2, ")");
    }
    if (k)
        k->rss = kib_behind(text, "anon-rss:") + kib_behind(text, "file-rss:") +
                 kib_behind(text, "shmem-rss:");
}

/* "name[12]: segfault at 0 ip 000055… sp 00007f… error 6 in module[55…+1000] …" and
 * "traps: name[12] general protection fault ip:55… sp:7f… error:0 in module[…]". */
static void read_fault(struct kernellog *log, const char *line)
{
    const char *bracket = strchr(line, '[');
    const bool trap = strncmp(line, "traps: ", 7) == 0;
    const char *at = strstr(line, "segfault at ");
    const char *ip = strstr(line, trap ? "ip:" : " ip ");
    if (!bracket || !ip || (!at && !trap) || log->fault_count == KERNELLOG_FAULTS)
        return;
    struct kernellog_fault *f = &log->fault[log->fault_count++];
    *f = (struct kernellog_fault){ .pid = (pid_t)strtol(bracket + 1, NULL, 10) };
    copy_until(f->comm, sizeof f->comm, line + (trap ? 7 : 0), "[");
    f->address = at ? strtoull(at + 12, NULL, 16) : 0;
    f->ip = strtoull(ip + (trap ? 3 : 4), NULL, 16);
    const char *in = strstr(ip, " in ");
    const char *base = in ? strchr(in, '[') : NULL;
    if (!base)
        return;
    copy_until(f->module, sizeof f->module, in + 4, "[");
    /* Newer kernels write [offset,base+size], older ones [base+size]. */
    const char *comma = strchr(base, ',');
    const uint64_t first = strtoull(base + 1, NULL, 16);
    f->offset = comma && comma < base + strcspn(base, "]") ? first : f->ip - first;
}

void kernellog_line(struct kernellog *log, const char *line)
{
    const char *killed = strstr(line, "Killed process ");
    if (strncmp(line, "oom-kill:", 9) == 0)
        read_oom_summary(log, line);
    else if (killed && strstr(line, "ut of memory"))
        read_killed(log, line, killed + 15);
    else
        read_fault(log, line);
}

const struct kernellog_kill *kernellog_find_kill(const struct kernellog *log, pid_t pid,
                                                 const char *comm)
{
    for (unsigned i = 0; i < log->kill_count; i++)
        if (log->kill[i].pid == pid &&
            (!comm[0] || strncmp(log->kill[i].comm, comm, COMM_LEN - 1) == 0))
            return &log->kill[i];
    return NULL;
}

const struct kernellog_fault *kernellog_find_fault(const struct kernellog *log,
                                                   pid_t pid, const char *comm)
{
    for (unsigned i = 0; i < log->fault_count; i++)
        if (log->fault[i].pid == pid &&
            (!comm[0] || strncmp(log->fault[i].comm, comm, COMM_LEN - 1) == 0))
            return &log->fault[i];
    return NULL;
}
