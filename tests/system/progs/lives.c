// link: a
/* lives: what programs do to themselves that a recorder must live with.
 *
 *     lives replace ZONES         zones "before", then exec of itself: zones "after"
 *     lives outlive ZONES         exits at once; a child records zones "late" for 0.3 s
 *     lives exits                 zones after main(): in atexit() and a destructor
 *     lives thread_exits COUNT    threads that end inside a zone, and in destructors
 *     lives close VICTIM ZONES    closes all descriptors, opens VICTIM many times
 *     lives chdir ZONES           goes to / and forks a child that records
 *     lives setuid ZONES          becomes nobody, records, and forks
 *     lives abort                 dies by SIGABRT inside zone "fatal"
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

static void zones(const char *name, long count)
{
    struct sonde_site *site = sonde_site_named(name, SONDE_FORWARD, NULL, NULL, NULL);
    for (long i = 0; i < count; i++)
        SONDE_ZONE_OF(site) {}
}

static int forked_zones(const char *name, long count)
{
    const pid_t pid = fork();
    if (pid == 0) {
        zones(name, count);
        _exit(0);
    }
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 3;
}

static int replace(char **argv)
{
    zones("before", atol(argv[2]));
    sonde_begin(sonde_site_named("left behind", SONDE_OTHER, NULL, NULL, NULL));
    execl("/proc/self/exe", "lives", "replaced", argv[2], (char *)NULL);
    return 3;
}

static int replaced(char **argv)
{
    zones("after", atol(argv[2]));
    return 0;
}

static int outlive(char **argv)
{
    const long count = atol(argv[2]);
    zones("early", 10);
    if (fork() != 0)
        return 0;
    const struct timespec nap = { 0, 300000000L / 30 };
    for (int i = 0; i < 30; i++) {
        zones("late", count / 30);
        (void)nanosleep(&nap, NULL);
    }
    return 0;
}

static void at_exit(void)
{
    zones("at exit", 5);
}

static int record_at_end;

__attribute__((destructor)) static void at_end(void)
{
    if (record_at_end)
        zones("destructor", 7);
}

static int exits(char **argv)
{
    (void)argv;
    record_at_end = 1;
    (void)atexit(at_exit);
    zones("main", 3);
    return 0;
}

static pthread_key_t key;

static void thread_destructor(void *arg)
{
    (void)arg;
    zones("thread destructor", 1);
}

static void *leave(void *arg)
{
    (void)pthread_setspecific(key, &key);
    sonde_begin(sonde_site_named("left open", SONDE_OTHER, NULL, NULL, NULL));
    zones("inside", 2);
    pthread_exit(arg);
}

static void *stay(void *arg)
{
    zones("right", 1);
    return arg;
}

static int thread_exits(char **argv)
{
    (void)pthread_key_create(&key, thread_destructor);
    for (int i = 0; i < atoi(argv[2]); i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, leave, NULL) != 0)
            return 3;
        (void)pthread_join(thread, NULL);
        if (pthread_create(&thread, NULL, stay, NULL) != 0)
            return 3;
        (void)pthread_join(thread, NULL);
    }
    return 0;
}

static int close_all(char **argv)
{
    zones("zone", 1000);
    for (int fd = 3; fd < 256; fd++)
        (void)close(fd);
    const int victim = open(argv[2], O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 32; i++)
        if (dup(victim) < 0)
            return 3;
    if (write(victim, "precious", 8) != 8)
        return 3;
    zones("zone", atol(argv[3]));
    return forked_zones("child", 1000);
}

static int change_directory(char **argv)
{
    zones("parent", 10);
    return chdir("/") == 0 ? forked_zones("child", atol(argv[2])) : 3;
}

static int become_nobody(char **argv)
{
    const long count = atol(argv[2]);
    zones("before", 10);
    if (setgid(65534) != 0 || setuid(65534) != 0)
        return 77;
    zones("after", count);
    return forked_zones("child", count);
}

static int die(char **argv)
{
    (void)argv;
    SONDE_ZONE("fatal", SONDE_BACKWARD) {
        abort();
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int arguments;
        int (*run)(char **argv);
    } modes[] = {
        { "replace", 3, replace },
        { "replaced", 3, replaced },
        { "outlive", 3, outlive },
        { "exits", 2, exits },
        { "thread_exits", 3, thread_exits },
        { "close", 4, close_all },
        { "chdir", 3, change_directory },
        { "setuid", 3, become_nobody },
        { "abort", 2, die },
    };
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0 && argc >= modes[i].arguments)
            return modes[i].run(argv);
    return 2;
}
