/* signals.h: who gets which signal while Sonde stands between shell and program.
 *
 * The supervisor shares process group and terminal with the program. What the
 * terminal sends (Ctrl-C, Ctrl-\, Ctrl-Z, a new window size) has reached the program
 * already, and so has what others send to the whole group (witness.h); what somebody sends
 * to the supervisor alone was meant for the program and is passed on. The supervisor blocks all of them and takes them one by one with
 * sigtimedwait(): no handlers, no races.
 *
 * The program starts with exactly the mask and the ignored signals that Sonde was
 * started with: nohup and background shells rely on it.
 */
#ifndef SONDE_LAUNCH_SIGNALS_H
#define SONDE_LAUNCH_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Signals as Sonde found them. */
struct signals {
    sigset_t mask;
    sigset_t ignored;
};

/* Blocks everything but faults, resets SIGCHLD and stop signals, ignores SIGPIPE
 * and SIGXFSZ. For single-threaded processes. */
void signals_take(struct signals *ret_found);

/* Undoes it: in the child before exec, or before we become the program. */
void signals_give_back(const struct signals *found);

/* Whether one that asks to end is waiting and was not ignored when we came. */
bool signals_waiting(const struct signals *found);

/* What signals_take() blocks and sigtimedwait() waits for. */
void signals_taken(sigset_t *ret_set);

/* Whether a signal that reached us is to be passed on to `child`. */
bool signal_was_meant_for(const siginfo_t *info, pid_t child);

/* Passes it on, with its value where it has one. */
void signal_forward(const siginfo_t *info, pid_t child);

/* Ends this process by the signal, without a second core file; returns when that
 * proves impossible (process 1 of a container). */
void signal_die_by(int signal);

#endif
