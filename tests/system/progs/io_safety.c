// link: none
// libs: -lpthread
/* io_safety: things a program may do that bookkeeping of descriptors must survive.
 *
 *     io_safety daemon FILE    closes every descriptor, forks, goes on reading FILE
 *     io_safety cancel         threads cancelled in read, fgets, fread on one FILE
 *     io_safety handler        a signal handler that reads and writes all the time
 *     io_safety vfork FILE     children of vfork close and open; the parent reads on
 *     io_safety errno          errno is what the call left, also when it left it alone
 *     io_safety reuse FILE     threads open, read and close the same numbers
 *     io_safety raw FILE       closes by raw system calls, as libuv does
 *     io_safety storm FILE     32 threads at work while 40 children are forked
 *     io_safety stack FILE     everything for the first time on a signal stack of 8 KiB
 * Each prints "ok" and exits 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn static void fail(const char *what)
{
    char text[200];
    const int n = snprintf(text, sizeof text, "%s: %s\n", what, strerror(errno));
    (void)!write(2, text, (size_t)n);
    _exit(1);
}

static long size_of(const char *path)
{
    char buf[4096];
    long sum = 0;
    const int fd = open(path, O_RDONLY);
    if (fd < 0)
        fail(path);
    for (ssize_t n; (n = read(fd, buf, sizeof buf)) > 0;)
        sum += n;
    (void)close(fd);
    return sum;
}

/* ---- daemon -------------------------------------------------------------------- */

static int as_daemon(const char *file)
{
    const long before = size_of(file);
    const int out = dup(1);
    for (int fd = 0; fd < 2000; fd++)
        if (fd != out)
            (void)close(fd);
    const pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        closefrom(out + 1);
        for (int i = 0; i < 100; i++)
            if (size_of(file) != before)
                _exit(3);
        _exit(0);
    }
    int status = -1;
    (void)waitpid(child, &status, 0);
    if (size_of(file) != before || status != 0)
        _exit(4);
    (void)dup2(out, 1);
    return 0;
}

/* ---- cancel --------------------------------------------------------------------- */

static FILE *shared;
static int ends[2];

static void *blocked_read(void *unused)
{
    char c;
    (void)!read(ends[0], &c, 1);
    return unused;
}

static void *blocked_fgets(void *unused)
{
    char line[100];
    (void)!fgets(line, sizeof line, shared);
    return unused;
}

static void *blocked_fread(void *unused)
{
    char block[100];
    (void)!fread(block, 1, sizeof block, shared);
    return unused;
}

static int cancelled(void)
{
    void *(*const body[])(void *) = { blocked_read, blocked_fgets, blocked_fread };
    char line[100];
    if (pipe(ends) != 0 || !(shared = fdopen(ends[0], "r")))
        fail("pipe");
    for (int round = 0; round < 30; round++) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, NULL, body[round % 3], NULL) != 0)
            fail("pthread_create");
        (void)usleep(2000);
        (void)pthread_cancel(thread);
        (void)pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED)
            fail("not cancelled");
    }
    if (write(ends[1], "still there\n", 12) != 12 ||
        !fgets(line, sizeof line, shared) || strcmp(line, "still there\n") != 0)
        fail("the FILE is locked or broken");
    return 0;
}

/* ---- handler -------------------------------------------------------------------- */

static volatile sig_atomic_t handled;
static int null_fd, zero_fd;

static void on_alarm(int signal)
{
    char c[64];
    const int saved = errno;
    (void)signal;
    (void)!read(zero_fd, c, sizeof c);
    (void)!write(null_fd, c, sizeof c);
    handled++;
    errno = saved;
}

static int with_handler(void)
{
    const struct itimerval often = { { 0, 200 }, { 0, 200 } };
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
    char buf[512];
    null_fd = open("/dev/null", O_WRONLY);
    zero_fd = open("/dev/zero", O_RDONLY);
    (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 20000 || handled < 20; i++) {
        const int fd = open("/dev/zero", O_RDONLY);
        if (fd < 0 || read(fd, buf, sizeof buf) != sizeof buf || close(fd) != 0)
            fail("interrupted");
    }
    (void)setitimer(ITIMER_REAL, &never, NULL);
    return 0;
}

/* ---- vfork ----------------------------------------------------------------------- */

static int with_vfork(const char *file)
{
    char buf[100];
    const int fd = open(file, O_RDONLY);
    for (int i = 0; i < 100; i++) {
        const pid_t child = vfork();
        if (child == 0) {
            (void)close(fd);
            (void)dup2(2, fd);
            (void)execl("/bin/true", "true", (char *)NULL);
            _exit(127);
        }
        int status = -1;
        if (waitpid(child, &status, 0) != child || status != 0)
            fail("vfork");
        if (read(fd, buf, sizeof buf) != sizeof buf)
            fail("read after vfork");
    }
    (void)close(fd);
    return 0;
}

/* ---- errno ----------------------------------------------------------------------- */

static int errno_kept(void)
{
    char c;
    errno = 77;
    const int fd = open("/dev/zero", O_RDONLY);
    if (fd < 0 || errno != 77)
        fail("open changed errno");
    if (read(fd, &c, 1) != 1 || errno != 77)
        fail("read changed errno");
    if (read(-1, &c, 1) != -1 || errno != EBADF)
        fail("read of −1");
    if (read(54321, &c, 1) != -1 || errno != EBADF)
        fail("read of nothing");
    if (open("/nowhere/at/all", O_RDONLY) != -1 || errno != ENOENT)
        fail("open of nothing");
    if (send(fd, &c, 1, 0) != -1 || errno != ENOTSOCK)
        fail("send to a file");
    FILE *f = fopen("/dev/full", "w");
    if (!f || fputs("x", f) < 0 || fflush(f) != EOF || errno != ENOSPC)
        fail("a full disk");
    errno = 77;
    (void)setvbuf(f, NULL, _IONBF, 0);
    (void)fclose(f);
    errno = 77;
    if (close(fd) != 0 || errno != 77)
        fail("close changed errno");
    if (close(fd) != -1 || errno != EBADF)
        fail("close twice");
    return 0;
}

/* ---- reuse ----------------------------------------------------------------------- */

static const char *reused;

static void *open_and_close(void *unused)
{
    const long size = size_of(reused);
    for (int i = 0; i < 500; i++)
        if (size_of(i % 2 ? reused : "/etc/passwd") < (i % 2 ? size : 1))
            fail("reuse");
    return unused;
}

static int with_reuse(const char *file)
{
    pthread_t thread[8];
    reused = file;
    for (int i = 0; i < 8; i++)
        if (pthread_create(&thread[i], NULL, open_and_close, NULL) != 0)
            fail("pthread_create");
    for (int i = 0; i < 8; i++)
        (void)pthread_join(thread[i], NULL);
    return 0;
}

/* ---- raw ------------------------------------------------------------------------- */

static int with_raw_close(const char *file)
{
    for (int i = 0; i < 50; i++) {
        int fd[8];
        for (int k = 0; k < 8; k++)
            fd[k] = open(file, O_RDONLY);
        for (int k = 0; k < 8; k++)
            if (syscall(SYS_close, fd[k]) != 0)
                fail("close");
    }
    return 0;
}

/* ---- storm ----------------------------------------------------------------------- */

static volatile int calm;

static void *storm(void *unused)
{
    FILE *f = fopen("/dev/null", "w");
    char line[200];
    while (!calm) {
        (void)size_of(reused);
        FILE *in = fopen(reused, "r");
        while (in && fgets(line, sizeof line, in))
            (void)fprintf(f, "%s", line);
        (void)fclose(in);
    }
    (void)fclose(f);
    return unused;
}

static int with_storm(const char *file)
{
    pthread_t thread[32];
    reused = file;
    for (int i = 0; i < 32; i++)
        if (pthread_create(&thread[i], NULL, storm, NULL) != 0)
            fail("pthread_create");
    for (int i = 0; i < 40; i++) {
        const pid_t child = fork();
        if (child == 0) {
            (void)size_of(file);
            _exit(0);
        }
        int status = -1;
        if (waitpid(child, &status, 0) != child || status != 0)
            fail("a child");
    }
    calm = 1;
    for (int i = 0; i < 32; i++)
        (void)pthread_join(thread[i], NULL);
    return 0;
}

/* ---- stack ----------------------------------------------------------------------- */

static volatile sig_atomic_t read_there;

static void on_small_stack(int signal)
{
    char c;
    const int fd = open(reused, O_RDONLY);
    (void)signal;
    read_there = fd >= 0 && read(fd, &c, 1) == 1 && write(2, "", 0) == 0;
    (void)close(fd);
}

static int with_small_stack(const char *file)
{
    enum { SMALL = 8192, GUARD = 64 };
    static _Alignas(64) unsigned char stack[GUARD + SMALL];
    const stack_t small = { .ss_sp = stack + GUARD, .ss_size = SMALL };
    struct sigaction action = { .sa_handler = on_small_stack, .sa_flags = SA_ONSTACK };
    reused = file;
    memset(stack, 0xA5, sizeof stack);
    if (sigaltstack(&small, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        fail("sigaltstack");
    (void)raise(SIGUSR1);
    for (int i = 0; i < GUARD; i++)
        if (stack[i] != 0xA5)
            fail("the stack overflowed");
    return read_there ? 0 : 5;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const char *file = argc > 2 ? argv[2] : "/etc/passwd";
    const int rc = strcmp(what, "daemon") == 0    ? as_daemon(file)
                   : strcmp(what, "cancel") == 0  ? cancelled()
                   : strcmp(what, "handler") == 0 ? with_handler()
                   : strcmp(what, "vfork") == 0   ? with_vfork(file)
                   : strcmp(what, "errno") == 0   ? errno_kept()
                   : strcmp(what, "reuse") == 0   ? with_reuse(file)
                   : strcmp(what, "stack") == 0   ? with_small_stack(file)
                   : strcmp(what, "storm") == 0   ? with_storm(file)
                   : strcmp(what, "raw") == 0     ? with_raw_close(file)
                                                  : 2;
    if (rc == 0)
        (void)!write(1, "ok\n", 3);
    return rc;
}
