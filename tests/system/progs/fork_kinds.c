// link: a
// libs: -ldl
/* fork_kinds: children of every kind, each recording zones of its own.
 *
 *     fork_kinds fork|exec|vfork|clone|_Fork|nested|thread [CHILD_ZONES]
 *
 * The parent records 100 zones "parent", and makes its child inside an open zone
 * "around". The child records zones "child" (for exec and vfork: the program is
 * started anew as `fork_kinds record N`). "after" follows in the parent.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sonde/sonde.h>

static int child_zones = 50;

static void record(const char *name, int count)
{
    struct sonde_site *site = sonde_site_named(name, SONDE_FORWARD, NULL, NULL, NULL);
    for (int i = 0; i < count; i++)
        SONDE_ZONE_OF(site)
        {
            SONDE_ZONE("inside", SONDE_NO_PHASE) {}
        }
}

static void become_recorder(void)
{
    char number[16];
    (void)snprintf(number, sizeof number, "%d", child_zones);
    execl("/proc/self/exe", "fork_kinds", "record", number, (char *)NULL);
    _exit(127);
}

static pid_t start_by_vfork(void)
{
    static char number[16];
    (void)snprintf(number, sizeof number, "%d", child_zones);
    const pid_t pid = vfork();
    if (pid == 0) {
        execl("/proc/self/exe", "fork_kinds", "record", number, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static pid_t start_by_underscore_fork(void)
{
    pid_t (*underscore_fork)(void);
    *(void **)&underscore_fork = dlsym(RTLD_DEFAULT, "_Fork");
    if (!underscore_fork)
        exit(77); /* glibc before 2.34 */
    return underscore_fork();
}

static void *fork_in_thread(void *ret_pid)
{
    record("thread", 10);
    const pid_t pid = fork();
    if (pid == 0) {
        record("child", child_zones);
        exit(0);
    }
    *(pid_t *)ret_pid = pid;
    return NULL;
}

static pid_t start_from_thread(void)
{
    pthread_t thread;
    pid_t pid = -1;
    if (pthread_create(&thread, NULL, fork_in_thread, &pid) != 0)
        exit(2);
    (void)pthread_join(thread, NULL);
    return pid;
}

static pid_t start_child(const char *kind)
{
    pid_t pid = -1;
    if (strcmp(kind, "vfork") == 0)
        return start_by_vfork();
    if (strcmp(kind, "thread") == 0)
        return start_from_thread();
    if (strcmp(kind, "clone") == 0)
        pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    else if (strcmp(kind, "_Fork") == 0)
        pid = start_by_underscore_fork();
    else
        pid = fork();
    if (pid != 0)
        return pid;

    if (strcmp(kind, "exec") == 0)
        become_recorder();
    record("child", child_zones);
    if (strcmp(kind, "nested") == 0) {
        const pid_t grandchild = fork();
        record(grandchild == 0 ? "grandchild" : "child again", child_zones);
        if (grandchild > 0)
            (void)waitpid(grandchild, NULL, 0);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (argc > 2)
        child_zones = atoi(argv[2]);
    if (strcmp(argv[1], "record") == 0) {
        record("child", child_zones);
        return 0;
    }
    record("parent", 100);
    pid_t pid = -1;
    SONDE_ZONE("around", SONDE_OTHER) {
        pid = start_child(argv[1]);
        record("parent", 1);
    }
    int status = -1;
    if (pid <= 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return 3;
    record("after", 30);
    (void)printf("%d\n", (int)pid);
    return 0;
}
