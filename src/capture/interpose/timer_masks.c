/* timer_masks.c: keeps the signal of timer_sample.c out of the program's sets of signals.
 *
 * Programs block all signals in their threads and wait for all of them in one: blocked,
 * ours would not sample; waited for, it would come to a program that never heard of it.
 * So it is taken out of every set that is blocked or waited for. A program that takes it
 * for itself (sigaction) gets it: timer_signal is 0 then.
 *
 * Functions that change the mask for the time of a call (sigsuspend, ppoll, epoll_pwait
 * …) are left alone: ours waits until they return.
 */
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

#include "capture/interpose/inside.h"

static int (*real_pthread_sigmask)(int, const sigset_t *, sigset_t *);
static int (*real_sigprocmask)(int, const sigset_t *, sigset_t *);
static int (*real_sigwait)(const sigset_t *, int *);
static int (*real_sigwaitinfo)(const sigset_t *, siginfo_t *);
static int (*real_sigtimedwait)(const sigset_t *, siginfo_t *, const struct timespec *);
static int (*real_signalfd)(int, const sigset_t *, int);

/* The set without ours: itself, or the copy. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *copy)
{
    const int ours = timer_signal;
    if (!set || !ours || sigismember(set, ours) != 1)
        return set;
    *copy = *set;
    (void)sigdelset(copy, ours);
    return copy;
}

EXPORTED int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t copy;
    INSIDE_REAL(real_pthread_sigmask, "pthread_sigmask");
    return real_pthread_sigmask(
        how, how == SIG_UNBLOCK ? set : without_ours(set, &copy), old);
}

EXPORTED int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t copy;
    INSIDE_REAL(real_sigprocmask, "sigprocmask");
    return real_sigprocmask(how, how == SIG_UNBLOCK ? set : without_ours(set, &copy),
                            old);
}

EXPORTED int sigwait(const sigset_t *set, int *signal)
{
    sigset_t copy;
    INSIDE_REAL(real_sigwait, "sigwait");
    return real_sigwait(without_ours(set, &copy), signal);
}

EXPORTED int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    sigset_t copy;
    INSIDE_REAL(real_sigwaitinfo, "sigwaitinfo");
    return real_sigwaitinfo(without_ours(set, &copy), info);
}

EXPORTED int sigtimedwait(const sigset_t *set, siginfo_t *info,
                          const struct timespec *timeout)
{
    sigset_t copy;
    INSIDE_REAL(real_sigtimedwait, "sigtimedwait");
    return real_sigtimedwait(without_ours(set, &copy), info, timeout);
}

EXPORTED int signalfd(int fd, const sigset_t *set, int flags)
{
    sigset_t copy;
    INSIDE_REAL(real_signalfd, "signalfd");
    return real_signalfd(fd, without_ours(set, &copy), flags);
}

/* The first call may come from a handler, where nobody should look up symbols. */
__attribute__((constructor)) static void start(void)
{
    inside_busy++;
    INSIDE_REAL(real_pthread_sigmask, "pthread_sigmask");
    INSIDE_REAL(real_sigprocmask, "sigprocmask");
    INSIDE_REAL(real_sigwait, "sigwait");
    INSIDE_REAL(real_sigwaitinfo, "sigwaitinfo");
    INSIDE_REAL(real_sigtimedwait, "sigtimedwait");
    INSIDE_REAL(real_signalfd, "signalfd");
    inside_busy--;
}
