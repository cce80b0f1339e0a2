/* syscall_rows.h: rows of a file of tables of the kind "syscalls".
 *
 *     counts   one: of the program and everything it started
 *
 * Written by the supervisor, again and again while the program runs: when the supervisor
 * is killed, the last count is there, and says that it is not the final one.
 */
#ifndef SONDE_TRACE_SYSCALL_ROWS_H
#define SONDE_TRACE_SYSCALL_ROWS_H

#include <stdint.h>

#define SYSCALL_KIND "syscalls"

enum { SYSCALL_COUNT_ROWS = 1 };

struct syscall_count_row {
    uint64_t key;   /* pid of the program */
    uint64_t count; /* system calls begun since it was executed */
    uint64_t final; /* 1: counted when the program had ended; stored after `count` */
};

_Static_assert(sizeof(struct syscall_count_row) == 24, "on-disk layout");

#endif
