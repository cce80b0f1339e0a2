/* process.c: questions about processes, answered by /proc. */
#include "trace/process.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/files.h"
#include "trace/file.h"

/* "pid (name) state ppid pgrp session tty tpgid flags …": the name may hold blanks and
 * parentheses. False: gone. */
static bool read_stat(pid_t pid, long *ret_parent, unsigned *ret_flags)
{
    char path[48];
    struct buf text = BUF_INIT;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    const char *behind = NULL;
    if (file_read_all(path, 4096, &text) == 0)
        behind = strrchr(text.data, ')');
    const bool read = behind && sscanf(behind + 1, " %*c %ld %*d %*d %*d %*d %u",
                                       ret_parent, ret_flags) == 2;
    buf_release(&text);
    return read;
}

static pid_t parent_of(pid_t pid)
{
    long parent;
    unsigned flags;
    return read_stat(pid, &parent, &flags) ? (pid_t)parent : 0;
}

bool process_is_forked(pid_t pid)
{
    enum { FORKED_NOT_EXECUTED = 0x40 }; /* the kernel's PF_FORKNOEXEC */
    long parent;
    unsigned flags;
    return read_stat(pid, &parent, &flags) && (flags & FORKED_NOT_EXECUTED);
}

void process_task_name(uint32_t pid, uint32_t tid, char *ret_name, size_t len)
{
    char path[64];
    struct buf text = BUF_INIT;
    (void)snprintf(path, sizeof path, "/proc/%u/task/%u/comm", pid, tid);
    const bool read = tid && file_read_all(path, 64, &text) == 0 && text.len > 0;
    (void)snprintf(ret_name, len, "%.*s", read ? (int)strcspn(text.data, "\n") : 0,
                   read ? text.data : "");
    buf_release(&text);
}

bool process_alive(pid_t pid, uint64_t start_ticks)
{
    return pid > 0 && start_ticks != 0 &&
           process_start_ticks((uint32_t)pid) == start_ticks;
}

bool process_descends_from(pid_t pid, pid_t ancestor)
{
    /* Parents may change under our feet: 64 steps end any circle. */
    for (int step = 0; step < 64 && pid > 1; step++) {
        if (pid == ancestor)
            return true;
        pid = parent_of(pid);
    }
    return false;
}

void process_each_thread(pid_t pid, void (*one)(void *arg, pid_t tid), void *arg)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        const pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
        if (tid > 0)
            one(arg, tid);
    }
    if (d)
        (void)closedir(d);
}

const char *process_boot_id(char ret_id[BOOT_ID_LEN])
{
    struct buf text = BUF_INIT;
    ret_id[0] = '\0';
    if (file_read_all("/proc/sys/kernel/random/boot_id", 256, &text) == 0) {
        text.data[strcspn(text.data, "\n")] = '\0';
        (void)snprintf(ret_id, BOOT_ID_LEN, "%s", text.data);
    }
    buf_release(&text);
    return ret_id;
}

uint64_t process_pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* Not ru_maxrss: that includes the program we were before exec. */
double process_peak_mb(void)
{
    struct buf text = BUF_INIT;
    double peak_mb = NAN;
    if (file_read_all("/proc/self/status", 65536, &text) == 0) {
        const char *line = strstr(text.data, "\nVmHWM:");
        if (line)
            peak_mb = strtod(line + 7, NULL) / 1024;
    }
    buf_release(&text);
    return peak_mb;
}
