// link: none
/* signal_log.c: says which signals reach it, one line each, until it has seen SIGUSR2
 * or its input ends. With an argument N it ends by itself with that status then. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const int watched[] = { SIGHUP,  SIGINT,  SIGQUIT,  SIGUSR1, SIGUSR2,
                               SIGTERM, SIGCONT, SIGWINCH, SIGALRM };

static void say(const char *word, int number)
{
    char line[64];
    const int len = snprintf(line, sizeof line, "%s %d\n", word, number);
    if (write(STDOUT_FILENO, line, (size_t)len) != len)
        _exit(99);
}

int main(int argc, char **argv)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        (void)sigaddset(&set, watched[i]);
    (void)sigaddset(&set, SIGRTMIN + 1);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    say("ready", (int)getpid());
    for (;;) {
        siginfo_t info;
        const int number = sigwaitinfo(&set, &info);
        if (number < 0)
            continue;
        say("signal", number);
        if (info.si_code == SI_QUEUE)
            say("value", info.si_value.sival_int);
        if (number == SIGUSR2)
            return argc > 1 ? atoi(argv[1]) : 0;
    }
}
