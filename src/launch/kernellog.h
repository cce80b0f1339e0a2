/* kernellog.h: what the kernel wrote about processes of ours.
 *
 * Two kinds of lines matter: the OOM killer's ("Killed process …", with the group whose
 * limit it was) and faults ("name[pid]: segfault at …"). The log may be closed to us,
 * and its process numbers are those of the first PID name space: in a container they
 * mean nothing, so a line counts only if number and name fit.
 */
#ifndef SONDE_LAUNCH_KERNELLOG_H
#define SONDE_LAUNCH_KERNELLOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { KERNELLOG_KILLS = 16, KERNELLOG_FAULTS = 16, COMM_LEN = 16 };

struct kernellog_kill {
    pid_t pid;
    char comm[COMM_LEN];
    bool by_group;   /* a control group's limit, not the machine's memory */
    char group[256]; /* "" unknown */
    uint64_t rss;    /* bytes; 0 unknown */
};

struct kernellog_fault {
    pid_t pid;
    char comm[COMM_LEN];
    uint64_t address, ip;
    char module[64]; /* "" unknown */
    uint64_t offset; /* of ip from the module's beginning; 0 unknown */
};

struct kernellog {
    int fd; /* −1: not readable */
    unsigned kill_count, fault_count;
    struct kernellog_kill kill[KERNELLOG_KILLS];
    struct kernellog_fault fault[KERNELLOG_FAULTS];
};

/* Skips what is there already. −errno when the log is closed to us; release is fine
 * then too. */
int kernellog_open(struct kernellog *ret_log);
/* Takes what came since. */
void kernellog_read(struct kernellog *log);
/* One line, without the head of /dev/kmsg. */
void kernellog_line(struct kernellog *log, const char *line);
void kernellog_release(struct kernellog *log);

const struct kernellog_kill *kernellog_find_kill(const struct kernellog *log, pid_t pid,
                                                 const char *comm);
const struct kernellog_fault *kernellog_find_fault(const struct kernellog *log,
                                                   pid_t pid, const char *comm);

#endif
