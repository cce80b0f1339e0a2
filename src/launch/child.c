/* child.c: follow the program: its end, its stops, the signals meant for it.
 *
 * Job control. The shell sees one job: it waits for us, and sends SIGCONT to the
 * whole group. When the terminal stops the program we must stop too, or the shell
 * would wait for a job that does not move. We raise the same stop signal on
 * ourselves, so that the kernel's rule for orphaned groups applies to us as well.
 * A SIGSTOP is mirrored only in the foreground, where a shell waits: a batch system
 * that suspends just the program must not find its supervisor asleep later.
 */
#include "launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch/signals.h"
#include "trace/process.h"

static bool in_foreground(void)
{
    const int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return false;
    const bool foreground = tcgetpgrp(fd) == getpgrp();
    (void)close(fd);
    return foreground;
}

/* The terminal's own stop signal waits in our queue by now. kill() joins it there,
 * raise() would be a second one and stop us again when we are continued. */
static void stop_ourselves(int signal)
{
    sigset_t set, old;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, signal);
    (void)kill(getpid(), signal);
    (void)sigprocmask(SIG_UNBLOCK, &set, &old);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
}

static void forget_continue(void)
{
    const struct timespec now = { 0, 0 };
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCONT);
    while (sigtimedwait(&set, NULL, &now) > 0)
        ;
}

/* The last chance to read what the kernel knows of it. */
static void look_at_zombie(struct child *child)
{
    siginfo_t info = { 0 };
    void (*const look)(void *) = child->before_end;
    if (!look ||
        waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid != child->pid)
        return;
    child->before_end = NULL;
    look(child->arg);
}

/* Takes the program's changes of state, oldest first. */
static int take_change(struct child *child, int *ret_status)
{
    pid_t got;
    look_at_zombie(child);
    do
        got = wait4(child->pid, ret_status, WNOHANG | WUNTRACED | WCONTINUED,
                    &child->usage);
    while (got < 0 && errno == EINTR);
    return got == child->pid;
}

static void note_end(struct child *child, int status)
{
    child->ended = true;
    child->status = status;
}

static void stop_with_program(struct child *child, int signal)
{
    if (child->before_stop)
        child->before_stop(child->stop_arg);
    stop_ourselves(signal); /* returns when somebody continues us */
    forget_continue();
    int status;
    bool running = false;
    while (!child->ended && take_change(child, &status)) {
        running = WIFCONTINUED(status);
        if (!WIFSTOPPED(status) && !running)
            note_end(child, status);
    }
    if (!child->ended && !running)
        (void)kill(child->pid, SIGCONT); /* only we were continued */
}

static void on_change(struct child *child)
{
    int status;
    while (!child->ended && take_change(child, &status)) {
        if (WIFEXITED(status) || WIFSIGNALED(status))
            note_end(child, status);
        else if (WIFSTOPPED(status) && (WSTOPSIG(status) != SIGSTOP || in_foreground()))
            stop_with_program(child, WSTOPSIG(status));
    }
}

/* Who it was must be read at once: kill(1) is gone in a moment. */
static void remember_sender(struct child *child, const siginfo_t *info)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    child->asked.signal = info->si_signo;
    child->asked.sender = info->si_code == SI_USER || info->si_code == SI_QUEUE
                              ? info->si_pid
                              : 0;
    child->asked.at_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    const uint32_t sender = (uint32_t)child->asked.sender;
    process_task_name(sender, sender, child->asked.comm, sizeof child->asked.comm);
}

static void on_signal(struct child *child, const siginfo_t *info)
{
    const int signal = info->si_signo;
    if (signal == SIGCHLD) {
        on_change(child);
        return;
    }
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP)
        child->interrupted = true;
    if (!signal_was_meant_for(info, child->pid)) {
        witness_forget(&child->witness, signal);
        return;
    }
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP)
        remember_sender(child, info);
    if (info->si_code == SI_QUEUE || !witness_saw(&child->witness, signal))
        signal_forward(info, child->pid);
}

bool child_wait(struct child *child, int64_t timeout_us)
{
    struct timespec limit = { .tv_sec = timeout_us / 1000000,
                              .tv_nsec = timeout_us % 1000000 * 1000 };
    const struct timespec *wait = timeout_us < 0 ? NULL : &limit;
    sigset_t set;
    signals_taken(&set);
    siginfo_t info;
    while (!child->ended && sigtimedwait(&set, &info, wait) > 0) {
        on_signal(child, &info);
        limit = (struct timespec){ 0, 0 }; /* the rest of the queue, then back */
        wait = &limit;
    }
    return child->ended;
}

void child_forget_signals(void)
{
    const struct timespec now = { 0, 0 };
    sigset_t set;
    signals_taken(&set);
    while (sigtimedwait(&set, NULL, &now) > 0)
        ;
}
