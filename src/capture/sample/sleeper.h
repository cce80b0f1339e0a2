/* sleeper.h: the user-level stack of a thread that sleeps, read from outside.
 *
 * The kernel shows where a sleeping thread made its system call: its program counter and
 * stack pointer (/proc/PID/task/TID/syscall). The stack is copied and unwound by the
 * modules' tables; nothing is stopped. The other registers are not known at first and are
 * learnt on the way from where callers saved them. A frame pointer nobody has saved yet is
 * searched for: the frame ends where a return address lies whose call goes to this very
 * function. A frame that cannot be left otherwise ends the walk.
 *
 * A thread that wakes up meanwhile may give a stack that never was; who looks twice at
 * what the kernel shows notices (sleeper_where).
 */
#ifndef SONDE_CAPTURE_SAMPLE_SLEEPER_H
#define SONDE_CAPTURE_SAMPLE_SLEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SLEEPER_FRAMES = 128 };

struct sleeper_frame {
    uint64_t address;
    const char *path;       /* of the module, "" where none is mapped; the sleeper's */
    uint64_t offset, inode; /* in its file, of its file */
    bool caller;            /* a return address: the call stands before it */
};

struct sleeper_stack {
    struct sleeper_frame frame[SLEEPER_FRAMES]; /* innermost first */
    unsigned count;
    bool whole; /* the outermost frame was reached */
};

struct sleeper_place {
    long call;    /* number of the system call */
    uint64_t arg; /* its first argument */
    uint64_t sp, pc;
};

struct sleeper;

/* Modules are kept open for all processes looked at. NULL without memory. */
struct sleeper *sleeper_new(void);
void sleeper_free(struct sleeper *sleeper);

/* From the text of a thread's `syscall` file; false: it runs, or is in no call. */
bool sleeper_where(const char *text, struct sleeper_place *ret_place);

/* The process the next stacks are of, with the text of its /proc/PID/maps. */
int sleeper_process(struct sleeper *sleeper, pid_t pid, const char *maps);
/* Always at least the innermost frame. */
void sleeper_walk(struct sleeper *sleeper, const struct sleeper_place *place,
                  struct sleeper_stack *ret_stack);

#endif
