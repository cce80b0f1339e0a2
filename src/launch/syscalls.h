/* syscalls.h: how many system calls a process makes, and everything it starts.
 *
 * The kernel counts: one perf event on the tracepoint raw_syscalls:sys_enter, inherited by
 * every thread and process, opened while the process waits to execute its program and
 * enabled by that exec. Nothing of ours is in the program for it, and the count is exact:
 * a program that does the same does the same number of calls.
 *
 * Needs the tracepoint's number, which tracefs tells (mounted, or mounted for us alone and
 * for that moment where we may), and kernel.perf_event_paranoid of 1 or less, or
 * CAP_PERFMON. While it counts, every process of the machine goes through the kernel's slower
 * entry for system calls (some 0.1 µs each): do not take times beside it.
 */
#ifndef SONDE_LAUNCH_SYSCALLS_H
#define SONDE_LAUNCH_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SYSCALLS_WHY = 192 };

struct syscall_counter {
    int fd; /* −1: none */
};

/* The process must wait to execute its program (spawn.h, before_exec). ret_why, of
 * SYSCALLS_WHY bytes, tells what is missing and what to do. */
int syscall_counter_open(pid_t pid, struct syscall_counter *ret_counter, char *ret_why);
/* Of those that ended and of those that run. */
int syscall_counter_read(const struct syscall_counter *counter, uint64_t *ret_count);
void syscall_counter_close(struct syscall_counter *counter);

/* Whether it works here; else ret_why as above. */
bool syscalls_countable(char *ret_why);

#endif
