/* child.h: follow the program: its end, its stops, the signals meant for it. */
#ifndef SONDE_LAUNCH_CHILD_H
#define SONDE_LAUNCH_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "launch/witness.h"

enum { CHILD_FOREVER = -1 };

struct child {
    pid_t pid;
    struct witness witness; /* of signals to the whole group */
    bool ended;
    struct {
        int signal; /* 0: none */
        pid_t sender;
        char comm[16];
        uint64_t at_ns;  /* monotonic */
    } asked;             /* the last such signal from outside, passed on */
    bool interrupted;    /* SIGINT, SIGTERM or SIGHUP came by: somebody wants an end */
    int status;          /* as from wait(); valid when ended */
    struct rusage usage; /* the program and the descendants it waited for */
    /* The program has ended and is still to be seen in /proc, as a zombie. May be
     * NULL; called once. */
    void (*before_end)(void *arg);
    void *arg;
    /* We are about to stop along with the program: leave the terminal tidy. May be
     * NULL. */
    void (*before_stop)(void *arg);
    void *stop_arg;
};

/* Waits up to timeout_us (CHILD_FOREVER: without limit) for something to happen and
 * deals with it. Returns whether the program has ended; false may come early. After
 * signals_take() only. */
bool child_wait(struct child *child, int64_t timeout_us);

/* Throws away signals that are waiting: those that ended the program are not meant
 * for what comes after it. */
void child_forget_signals(void);

#endif
