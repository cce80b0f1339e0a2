/* signals.c: take signals over, pass them on, die by them. */
#include "launch/signals.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "trace/process.h"

/* Faults of our own code must kill us at once, wherever they happen. The last two
 * come from our own writes; blocked they would wait to be passed on. */
static const int not_taken[] = { SIGSEGV, SIGBUS, SIGFPE,  SIGILL, SIGABRT,
                                 SIGTRAP, SIGSYS, SIGPIPE, SIGXFSZ };

/* Sent by the kernel to the whole foreground group: the program has its own. */
static const int from_terminal[] = { SIGINT,  SIGQUIT, SIGTSTP,  SIGTTIN,
                                     SIGTTOU, SIGHUP,  SIGWINCH, SIGCONT };

#define COUNT(array) (sizeof(array) / sizeof *(array))

void signals_taken(sigset_t *ret_set)
{
    (void)sigfillset(ret_set);
    for (size_t i = 0; i < COUNT(not_taken); i++)
        (void)sigdelset(ret_set, not_taken[i]);
}

static void set_disposition(int signal, void (*handler)(int))
{
    struct sigaction action = { .sa_handler = handler };
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(signal, &action, NULL); /* fails for SIGKILL, SIGSTOP, libc's own */
}

static void find_ignored(sigset_t *ret_ignored)
{
    (void)sigemptyset(ret_ignored);
    for (int s = 1; s <= SIGRTMAX; s++) {
        struct sigaction action;
        if (sigaction(s, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            (void)sigaddset(ret_ignored, s);
    }
}

void signals_take(struct signals *ret_found)
{
    sigset_t taken;
    signals_taken(&taken);
    find_ignored(&ret_found->ignored);
    (void)sigprocmask(SIG_BLOCK, &taken, &ret_found->mask);
    /* With SIGCHLD ignored the kernel reaps children itself and keeps their status. */
    set_disposition(SIGCHLD, SIG_DFL);
    set_disposition(SIGTSTP, SIG_DFL);
    set_disposition(SIGTTIN, SIG_DFL);
    set_disposition(SIGTTOU, SIG_DFL);
    /* A reader of our messages that went away, a file-size limit: errors, not death. */
    set_disposition(SIGPIPE, SIG_IGN);
    set_disposition(SIGXFSZ, SIG_IGN);
}

void signals_give_back(const struct signals *found)
{
    for (int s = 1; s <= SIGRTMAX; s++)
        set_disposition(s, sigismember(&found->ignored, s) == 1 ? SIG_IGN : SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &found->mask, NULL);
}

bool signals_waiting(const struct signals *found)
{
    static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    sigset_t pending;
    (void)sigpending(&pending);
    for (size_t i = 0; i < COUNT(ending); i++)
        if (sigismember(&pending, ending[i]) == 1 &&
            sigismember(&found->ignored, ending[i]) == 0)
            return true;
    return false;
}

/* A terminal that hangs up tells only the leader of its session, so a leader passes
 * that on. (alarm() set before exec also is SI_KERNEL, but not in the list.) */
static bool is_from_terminal(const siginfo_t *info)
{
    const int s = info->si_signo;
    if (info->si_code != SI_KERNEL ||
        ((s == SIGHUP || s == SIGCONT) && getsid(0) == getpid()))
        return false;
    for (size_t i = 0; i < COUNT(from_terminal); i++)
        if (from_terminal[i] == s)
            return true;
    return false;
}

static bool has_sender(const siginfo_t *info)
{
    return info->si_code == SI_USER || info->si_code == SI_QUEUE ||
           info->si_code == SI_TKILL;
}

bool signal_was_meant_for(const siginfo_t *info, pid_t child)
{
    if (info->si_signo == SIGCHLD || is_from_terminal(info))
        return false;
    /* The program signalled its own process group: kill(0, SIGTERM) in a launcher
     * that ends its workers. It knows, and may have asked to be spared. */
    return !(has_sender(info) && process_descends_from(info->si_pid, child));
}

void signal_forward(const siginfo_t *info, pid_t child)
{
    if (info->si_code == SI_QUEUE)
        (void)sigqueue(child, info->si_signo, info->si_value);
    else
        (void)kill(child, info->si_signo);
}

void signal_die_by(int signal)
{
    const struct rlimit none = { 0, 0 };
    (void)setrlimit(RLIMIT_CORE, &none); /* the program's core is the one wanted */
    set_disposition(signal, SIG_DFL);
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, signal);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)raise(signal);
}
