/* signame.c: see signame.h. */
#include "base/signame.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct {
    int number;
    const char *name;
} names[] = {
    { SIGHUP, "SIGHUP" },       { SIGINT, "SIGINT" },   { SIGQUIT, "SIGQUIT" },
    { SIGILL, "SIGILL" },       { SIGTRAP, "SIGTRAP" }, { SIGABRT, "SIGABRT" },
    { SIGBUS, "SIGBUS" },       { SIGFPE, "SIGFPE" },   { SIGKILL, "SIGKILL" },
    { SIGUSR1, "SIGUSR1" },     { SIGSEGV, "SIGSEGV" }, { SIGUSR2, "SIGUSR2" },
    { SIGPIPE, "SIGPIPE" },     { SIGALRM, "SIGALRM" }, { SIGTERM, "SIGTERM" },
    { SIGCHLD, "SIGCHLD" },     { SIGCONT, "SIGCONT" }, { SIGSTOP, "SIGSTOP" },
    { SIGTSTP, "SIGTSTP" },     { SIGTTIN, "SIGTTIN" }, { SIGTTOU, "SIGTTOU" },
    { SIGURG, "SIGURG" },       { SIGXCPU, "SIGXCPU" }, { SIGXFSZ, "SIGXFSZ" },
    { SIGVTALRM, "SIGVTALRM" }, { SIGPROF, "SIGPROF" }, { SIGWINCH, "SIGWINCH" },
    { SIGIO, "SIGIO" },         { SIGPWR, "SIGPWR" },   { SIGSYS, "SIGSYS" },
#ifdef SIGSTKFLT
    { SIGSTKFLT, "SIGSTKFLT" },
#endif
};

const char *signal_name(int signal, char ret_name[SIGNAL_NAME_LEN])
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i].number == signal)
            return names[i].name;
    if (signal >= SIGRTMIN && signal <= SIGRTMAX)
        (void)snprintf(ret_name, SIGNAL_NAME_LEN, "SIGRTMIN+%d", signal - SIGRTMIN);
    else
        (void)snprintf(ret_name, SIGNAL_NAME_LEN, "signal %d", signal);
    return ret_name;
}
