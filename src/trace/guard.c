/* guard.c: see guard.h. */
#include "trace/guard.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

/* On the stack of guard_run(): thread variables are scarce in what is loaded late. */
static __thread sigjmp_buf *back;
static __thread volatile sig_atomic_t inside;
static bool installed;

static void on_sigbus(int sig)
{
    if (inside)
        siglongjmp(*back, 1);
    /* Not ours: die of it, as without us. */
    signal(sig, SIG_DFL);
    raise(sig);
}

void guard_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_sigbus;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_NODEFER;
    installed = sigaction(SIGBUS, &action, NULL) == 0;
}

int guard_run(void (*fn)(void *), void *arg)
{
    if (!installed) {
        fn(arg);
        return 0;
    }
    sigjmp_buf here;
    if (sigsetjmp(here, 1) != 0) {
        inside = 0;
        return -EIO;
    }
    back = &here;
    inside = 1;
    fn(arg);
    inside = 0;
    return 0;
}
