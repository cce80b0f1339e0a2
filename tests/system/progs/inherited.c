// link: none
/* inherited.c: prints what a program inherits from whoever starts it: signal mask,
 * ignored signals, umask, descriptors, group, nice value, limits. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_signals(void)
{
    sigset_t mask;
    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int s = 1; s <= SIGRTMAX; s++) {
        struct sigaction action;
        if (sigismember(&mask, s) == 1)
            printf("blocked %d\n", s);
        if (sigaction(s, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            printf("ignored %d\n", s);
    }
}

int main(void)
{
    /* First, before anything here opens one. */
    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf("descriptor %d\n", fd);
    print_signals();
    const mode_t mask = umask(0);
    printf("umask %03o\n", (unsigned)mask);
    printf("group %d session %d\n", (int)getpgrp(), (int)getsid(0));
    printf("nice %d\n", getpriority(PRIO_PROCESS, 0));
    for (int resource = 0; resource < (int)RLIMIT_NLIMITS; resource++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)resource, &limit) == 0)
            printf("limit %d %llu %llu\n", resource, (unsigned long long)limit.rlim_cur,
                   (unsigned long long)limit.rlim_max);
    }
    return 0;
}
