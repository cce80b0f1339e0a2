// link: none
// libs: -lpthread
/* kinds: programs of many kinds that know nothing of Sonde. Each prints what it saw and
 * ends with a status of its own; tests compare that with and without a profiler. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char **arguments;
static volatile sig_atomic_t ticks;

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void on_prof(int signal)
{
    (void)signal;
    ticks++;
}

static int own_sigprof(void)
{
    struct sigaction action = { .sa_handler = on_prof, .sa_flags = SA_RESTART };
    const struct itimerval every = { { 0, 2000 }, { 0, 2000 } };
    if (sigaction(SIGPROF, &action, NULL) < 0 ||
        setitimer(ITIMER_PROF, &every, NULL) < 0)
        return 1;
    while (ticks < 5)
        ;
    const struct itimerval off = { 0 };
    (void)setitimer(ITIMER_PROF, &off, NULL);
    struct sigaction found;
    (void)sigaction(SIGPROF, NULL, &found);
    printf("handler kept %d\n", found.sa_handler == on_prof);
    return 4;
}

static int fork_exec(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("sh", "sh", "-c", "echo child; exit 9", (char *)NULL);
        _exit(127);
    }
    return wait_for(pid);
}

static int vfork_exec(void)
{
    const pid_t pid = vfork();
    if (pid == 0) {
        (void)execlp("sh", "sh", "-c", "exit 8", (char *)NULL);
        _exit(127);
    }
    return wait_for(pid);
}

static int spawned(void)
{
    char sh[] = "sh", flag[] = "-c", text[] = "exit 7";
    char *argv[] = { sh, flag, text, NULL };
    pid_t pid;
    if (posix_spawnp(&pid, "sh", NULL, NULL, argv, environ) != 0)
        return 1;
    return wait_for(pid);
}

static int exec_chain(void)
{
    const int left = arguments[2] ? atoi(arguments[2]) : 20;
    char number[16];
    if (left == 0) {
        puts("end of the chain");
        return 6;
    }
    (void)snprintf(number, sizeof number, "%d", left - 1);
    (void)execl("/proc/self/exe", arguments[0], "exec_chain", number, (char *)NULL);
    return 1;
}

static int limit(int which, rlim_t value)
{
    const struct rlimit l = { value, value };
    return setrlimit(which, &l);
}

static int small_files(void)
{
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)limit(RLIMIT_FSIZE, 8192);
    char name[] = "/tmp/kinds-XXXXXX";
    static char block[16384];
    const int fd = mkstemp(name);
    const ssize_t n = write(fd, block, sizeof block), m = write(fd, block, 1);
    printf("%zd %zd %d\n", n, m, errno == EFBIG);
    (void)unlink(name);
    return 3;
}

static int small_files_fatal(void)
{
    (void)limit(RLIMIT_FSIZE, 4096);
    (void)limit(RLIMIT_CORE, 0);
    char name[] = "/tmp/kinds-XXXXXX";
    static char block[16384];
    const int fd = mkstemp(name);
    (void)unlink(name);
    (void)!write(fd, block, sizeof block);
    (void)!write(fd, block, sizeof block);
    return 0;
}

static int few_files(void)
{
    (void)limit(RLIMIT_NOFILE, 12);
    int count = 0;
    while (open("/dev/null", O_RDONLY) >= 0)
        count++;
    printf("%d more, %d\n", count, errno == EMFILE);
    return 3;
}

static int few_addresses(void)
{
    (void)limit(RLIMIT_AS, 512UL << 20);
    void *p = malloc(1UL << 30), *q = malloc(1 << 20);
    printf("%d %d\n", p == NULL, q != NULL);
    return 3;
}

static int deep(int n)
{
    volatile char room[1024];
    room[0] = (char)n;
    return n == 0 ? room[0] : deep(n - 1) + room[0] * 0;
}

static int small_stack(void)
{
    (void)limit(RLIMIT_STACK, 1 << 20);
    return deep(100) + 3;
}

static int closed_stdio(void)
{
    for (int fd = 0; fd < 3; fd++)
        (void)close(fd);
    const int fd = open("/dev/null", O_RDWR);
    return fd == 0 ? 5 : 1;
}

static int close_all(void)
{
    /* As daemons do, with numbers that may be somebody else's. */
    puts("before");
    (void)fflush(stdout);
    for (int fd = 3; fd < 1024; fd++)
        (void)close(fd);
    void *p = malloc(100000);
    const int fd = open("/dev/null", O_RDWR);
    printf("next is %d\n", fd);
    free(p);
    return 5;
}

/* The grandchild outlives the program and tells its parent's number, as daemons check. */
static int daemonise(void)
{
    int fds[2];
    char seen[64] = "";
    if (pipe(fds) < 0)
        return 1;
    if (fork() == 0) {
        (void)setsid();
        if (fork() != 0)
            _exit(0);
        while (getppid() != 1)
            (void)usleep(1000);
        (void)!write(fds[1], "orphan of 1", 11);
        _exit(0);
    }
    (void)wait(NULL);
    (void)close(fds[1]);
    (void)!read(fds[0], seen, sizeof seen - 1);
    puts(seen);
    return 2;
}

static int traced(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)raise(SIGSTOP);
        _exit(11);
    }
    int status, stops = 0;
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        stops++;
        (void)ptrace(PTRACE_CONT, pid, NULL, NULL);
    }
    printf("%d stop, exit %d\n", stops, WEXITSTATUS(status));
    return 2;
}

static int ignored_children(void)
{
    (void)signal(SIGCHLD, SIG_IGN);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(1);
    int status;
    const pid_t got = waitpid(pid, &status, 0);
    printf("%d %d\n", got == -1, errno == ECHILD);
    return 2;
}

static void *thread(void *arg)
{
    for (int i = 0; i < 2000; i++)
        free(malloc((size_t)i * 7 % 5000 + 1));
    return arg;
}

static int threads(void)
{
    pthread_t t[32];
    for (long i = 0; i < 32; i++)
        if (pthread_create(&t[i], NULL, thread, (void *)i) != 0)
            return 1;
    long sum = 0;
    for (int i = 0; i < 32; i++) {
        void *back;
        (void)pthread_join(t[i], &back);
        sum += (long)back;
    }
    printf("sum %ld\n", sum);
    return 2;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    static const char text[] = "caught\n";
    (void)signal;
    (void)context;
    (void)!write(1, text, sizeof text - 1);
    _exit(info->si_addr == (void *)64 ? 12 : 13);
}

static int own_segv(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, old;
    (void)sigaction(SIGSEGV, &action, &old);
    printf("before it %s\n", old.sa_handler == SIG_DFL ? "default" : "somebody");
    (void)fflush(stdout);
    int *volatile nowhere = (int *)64;
    *nowhere = 1;
    return 1;
}

static int segfault(void)
{
    (void)limit(RLIMIT_CORE, 0);
    int *volatile nowhere = (int *)64;
    *nowhere = 1;
    return 1;
}

static int overflow(void)
{
    (void)limit(RLIMIT_CORE, 0);
    (void)limit(RLIMIT_STACK, 1 << 20);
    return deep(1 << 30);
}

static int aborts(void)
{
    (void)limit(RLIMIT_CORE, 0);
    abort();
}

static int fpe(void)
{
    (void)limit(RLIMIT_CORE, 0);
    volatile int zero = 0;
    return 5 / zero;
}

static int guarded(void)
{
    /* A garbage collector's write barrier: a fault that is mended, again and again. */
    return own_segv();
}

static int masks(void)
{
    sigset_t set;
    unsigned long blocked = 0, ignored = 0;
    (void)sigprocmask(SIG_SETMASK, NULL, &set);
    for (int s = 1; s < 32; s++) {
        struct sigaction action;
        if (sigismember(&set, s) == 1)
            blocked |= 1UL << s;
        if (sigaction(s, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            ignored |= 1UL << s;
    }
    printf("blocked %lx not default %lx umask %o nice %d\n", blocked, ignored,
           (unsigned)umask(0), getpriority(PRIO_PROCESS, 0));
    return 2;
}

static int descriptors(void)
{
    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf("%d ", fd);
    puts("");
    return 2;
}

static int sums(void)
{
    unsigned long sum = 0, count = 0;
    for (int i = 1; arguments[i]; i++, count++)
        for (const unsigned char *p = (unsigned char *)arguments[i]; *p; p++)
            sum = sum * 31 + *p;
    printf("%lu arguments %lx\n", count, sum);
    return 2;
}

static int drops_user(void)
{
    if (getuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
        return 1;
    printf("%u %u\n", (unsigned)getuid(), (unsigned)geteuid());
    free(malloc(1 << 20));
    const pid_t pid = fork();
    if (pid == 0)
        _exit(3);
    return wait_for(pid);
}

static int jailed(void)
{
    if (chroot("/var/empty-or-tmp") < 0 && chroot("/tmp") < 0)
        return 77;
    if (chdir("/") < 0)
        return 1;
    free(malloc(1 << 20));
    printf("%d\n", access("/proc/self", F_OK));
    return 2;
}

static int set_user(void)
{
    printf("%d %d\n", geteuid() != getuid(), getenv("LD_PRELOAD") != NULL);
    return 2;
}

static int dies_with_parent(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)sleep(30);
        _exit(0);
    }
    puts("leaving a child behind");
    return 2;
}

static int raw_clone(void)
{
    const long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        (void)syscall(SYS_exit_group, 14);
    return wait_for((pid_t)pid);
}

static int sockets(void)
{
    int pair[2];
    char text[6] = "";
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        return 1;
    (void)!write(pair[0], "hello", 5);
    (void)!read(pair[1], text, 5);
    puts(text);
    return 2;
}

static int at_exit_hooks(void)
{
    (void)atexit((void (*)(void))(void (*)(void))fork_exec);
    return 2;
}

static const struct {
    const char *name;
    int (*run)(void);
} kinds[] = {
    { "own_sigprof", own_sigprof },
    { "fork_exec", fork_exec },
    { "vfork_exec", vfork_exec },
    { "spawned", spawned },
    { "exec_chain", exec_chain },
    { "small_files", small_files },
    { "small_files_fatal", small_files_fatal },
    { "few_files", few_files },
    { "few_addresses", few_addresses },
    { "small_stack", small_stack },
    { "closed_stdio", closed_stdio },
    { "close_all", close_all },
    { "daemonise", daemonise },
    { "traced", traced },
    { "ignored_children", ignored_children },
    { "threads", threads },
    { "own_segv", own_segv },
    { "guarded", guarded },
    { "segfault", segfault },
    { "overflow", overflow },
    { "aborts", aborts },
    { "fpe", fpe },
    { "masks", masks },
    { "descriptors", descriptors },
    { "sums", sums },
    { "drops_user", drops_user },
    { "jailed", jailed },
    { "set_user", set_user },
    { "dies_with_parent", dies_with_parent },
    { "raw_clone", raw_clone },
    { "sockets", sockets },
    { "at_exit_hooks", at_exit_hooks },
};

int main(int argc, char **argv)
{
    arguments = argv;
    for (size_t i = 0; argc > 1 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, argv[1]) == 0)
            return kinds[i].run();
    return 99;
}
