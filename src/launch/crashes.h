/* crashes.h: faults of the run's processes, from their own last words or the kernel's. */
#ifndef SONDE_LAUNCH_CRASHES_H
#define SONDE_LAUNCH_CRASHES_H

#include "launch/judge.h"

/* The fault that matters: the program's own, else that of a process that died of one,
 * else that of one whom nobody saw: it lived between two looks. Prefers crash-PID.fault in
 * the run; `log` may be NULL. Untouched without any. */
void crashes_find(const char *dir, const struct kin *kin, const struct kernellog *log,
                  int status, struct fault *ret_fault);

/* The last words of one process, with its stack named; false: it left none. Who leaves
 * some dies of that signal (capture/interpose/crash.c). */
bool crashes_read(const char *dir, uint32_t pid, struct fault *ret_fault);

/* Who left last words first, `but` apart; 0: nobody. */
uint32_t crashes_first(const char *dir, uint32_t but);

#endif
