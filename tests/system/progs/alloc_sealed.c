// link: none
// flags: -O1 -fno-builtin
/* alloc_sealed: gives up the system calls that files need, then allocates a lot.
 *
 *     alloc_sealed prctl|syscall
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILL_ON(name)                                                                  \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                             \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    KILL_ON(openat),
    KILL_ON(fallocate),
    KILL_ON(newfstatat),
    KILL_ON(fstat),
    KILL_ON(ftruncate),
    KILL_ON(fcntl),
    KILL_ON(gettid),
    KILL_ON(readlink),
    KILL_ON(getrandom),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static void *work(void *arg)
{
    static void *kept[20000];
    for (unsigned i = 0; i < 20000; i++) {
        kept[i] = malloc(2049 + i % 2000);
        if (i >= 5000)
            free(kept[i - 5000]);
    }
    return arg;
}

int main(int argc, char **argv)
{
    const struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    pthread_t thread;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return 3;
    const int by_syscall = argc > 1 && strcmp(argv[1], "syscall") == 0;
    free(malloc(3000));
    if (by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0
                   : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 4;
    if (pthread_create(&thread, NULL, work, NULL) != 0)
        return 5;
    (void)pthread_join(thread, NULL);
    (void)work(NULL);
    return 0;
}
