/* process.h: questions about processes, answered by /proc.
 *
 * A process is named by its number and its start time (field 22 of stat): numbers
 * are used again, the pair is not, until the machine boots.
 */
#ifndef SONDE_TRACE_PROCESS_H
#define SONDE_TRACE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* True while that very process exists and is no zombie. */
bool process_alive(pid_t pid, uint64_t start_ticks);

/* Whether pid is `ancestor` or one of its descendants. False when it is gone. */
bool process_descends_from(pid_t pid, pid_t ancestor);

/* Whether it was forked and has executed no program since: it has all its parent had. */
bool process_is_forked(pid_t pid);

/* The name of a thread as the kernel has it (comm); "" when it is gone. */
void process_task_name(uint32_t pid, uint32_t tid, char *ret_name, size_t len);

/* Calls `one` for each thread that a process has now; none when it is gone. */
void process_each_thread(pid_t pid, void (*one)(void *arg, pid_t tid), void *arg);

enum { BOOT_ID_LEN = 40 };

/* The kernel's name for this boot; "" when there is none. */
const char *process_boot_id(char ret_id[BOOT_ID_LEN]);

/* The most memory this process has had resident, in MiB; NaN unknown. */
double process_peak_mb(void);

/* Identity of the PID name space we live in; 0 unknown. */
uint64_t process_pid_namespace(void);

#endif
