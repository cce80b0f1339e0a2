// link: none
// flags: -O2 -g -fomit-frame-pointer
// libs: -lpthread
/* timer_signals: programs that have plans of their own for signals.
 *
 *     timer_signals own|take|reset|altstack|wait|threads|exec N|send
 *
 * What it prints does not depend on who samples it.
 */
#include "hot_work.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t queued, timed, prof, odd;

static void on_signal(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (signal == SIGPROF)
        prof++;
    else if (info->si_code == SI_QUEUE && info->si_value.sival_int == signal)
        queued++;
    else if (info->si_code == SI_TIMER)
        timed++;
    else
        odd++;
}

/* The old action must be the default one. */
static void handle(int signal, int flags)
{
    struct sigaction action, old;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | flags;
    if (sigaction(signal, &action, &old) != 0 || old.sa_handler != SIG_DFL)
        printf("signal %d is taken\n", signal);
}

static void burn(double seconds)
{
    struct hot_truth truth = { 0 };
    hot_work(seconds, &truth);
}

static void say(const char *what)
{
    printf("%s: %d queued, %d timed, %d odd\n", what, (int)queued, (int)timed,
           (int)odd);
    (void)fflush(stdout);
}

static void queue(int signal)
{
    if (sigqueue(getpid(), signal, (union sigval){ .sival_int = signal }) != 0)
        printf("sigqueue: %s\n", strerror(errno));
}

static void own(void)
{
    const struct itimerval often = { { 0, 5000 }, { 0, 5000 } };
    const int signals[] = { SIGRTMIN, SIGRTMIN + 3, SIGRTMAX };
    handle(SIGPROF, SA_RESTART);
    (void)setitimer(ITIMER_PROF, &often, NULL);
    for (int i = 0; i < 3; i++)
        handle(signals[i], 0);
    for (int round = 0; round < 20; round++) {
        burn(0.03);
        queue(signals[round % 3]);
    }
    say("own");
    printf("SIGPROF %s\n", prof >= 20 ? "came" : "did not come");
}

static void take(void)
{
    burn(0.2);
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
        handle(s, 0);
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
        queue(s);
    burn(0.2);
    say("take");
}

/* As daemons do before they start something. */
static void reset(void)
{
    for (int s = 1; s <= SIGRTMAX; s++)
        if (signal(s, SIG_DFL) == SIG_ERR)
            odd++;
    burn(0.3);
    say("reset");
}

static void *small_signal_stack(void *arg)
{
    static _Thread_local char room[8192] __attribute__((aligned(64)));
    const stack_t stack = { .ss_sp = room, .ss_size = sizeof room };
    if (sigaltstack(&stack, NULL) != 0)
        printf("sigaltstack: %s\n", strerror(errno));
    burn(0.5);
    for (int i = 0; i < 10; i++)
        (void)pthread_kill(pthread_self(), SIGUSR1);
    return arg;
}

static void altstack(void)
{
    pthread_t other;
    handle(SIGUSR1, SA_ONSTACK);
    (void)pthread_create(&other, NULL, small_signal_stack, NULL);
    (void)small_signal_stack(NULL);
    (void)pthread_join(other, NULL);
    say("altstack");
}

static void *waiter(void *arg)
{
    sigset_t all;
    int signal = 0;
    (void)sigfillset(&all);
    burn(0.3);
    while (sigwait(&all, &signal) == 0 && signal != SIGUSR2)
        printf("waited for %d\n", signal);
    return arg;
}

static void wait_for_all(void)
{
    sigset_t all, now;
    pthread_t thread;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    (void)pthread_create(&thread, NULL, waiter, NULL);
    burn(0.3);
    (void)kill(getpid(), SIGUSR1);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &now);
    burn(0.1);
    (void)kill(getpid(), SIGUSR2);
    (void)pthread_join(thread, NULL);
    printf("SIGTERM blocked: %d\n", sigismember(&now, SIGTERM));
    say("wait");
}

static void *short_thread(void *arg)
{
    if (arg)
        pthread_exit(arg);
    burn(0.005);
    return NULL;
}

/* More than timers can be leaked for. */
static void many_threads(void)
{
    long ended = 0;
    for (int i = 0; i < 6000; i++) {
        pthread_t t;
        void *result = NULL;
        void *arg = i % 60 ? (void *)(intptr_t)i : NULL;
        if (pthread_create(&t, NULL, short_thread, arg) != 0 ||
            pthread_join(t, &result) != 0 || result != arg)
            odd++;
        ended++;
    }
    printf("%ld threads\n", ended);
    say("threads");
}

static int again(char **argv)
{
    char left[16];
    const int n = atoi(argv[2]);
    burn(0.2);
    printf("exec %d\n", n);
    (void)fflush(stdout);
    if (n == 0)
        return 5;
    (void)snprintf(left, sizeof left, "%d", n - 1);
    (void)execl(argv[0], argv[0], "exec", left, (char *)NULL);
    return 127;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = { { "own", own },           { "take", take },
                  { "reset", reset },       { "altstack", altstack },
                  { "wait", wait_for_all }, { "threads", many_threads } };
    if (strcmp(how, "exec") == 0 && argc > 2)
        return again(argv);
    if (strcmp(how, "send") == 0) { /* nobody handles it: the end */
        (void)kill(getpid(), SIGRTMAX - 1);
        return 9;
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(how, modes[i].name) == 0)
            modes[i].run();
    return 3;
}
