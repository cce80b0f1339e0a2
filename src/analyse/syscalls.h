/* syscalls.h: the system calls of a run, where they were counted. */
#ifndef SONDE_ANALYSE_SYSCALLS_H
#define SONDE_ANALYSE_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

struct report;

struct syscall_report {
    bool known;
    bool is_final;  /* counted when the program had ended */
    uint64_t count; /* of the program and all it started */
};

/* Fills in report->syscalls. */
int syscalls_read(struct report *report);

#endif
