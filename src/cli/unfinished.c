/* unfinished.c: see unfinished.h.
 *
 * The work is done in the handler: it has stopped the thread that fills the folder, and
 * no other does. So nothing here may allocate or lock; the folder is flat.
 */
#include "cli/unfinished.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
static char folder[PATH_MAX];
static volatile sig_atomic_t is_held, is_made;

/* As getdents64 has it; glibc's is for readdir, which allocates. */
struct entry {
    uint64_t inode, offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

static bool unlink_some(int dir)
{
    _Alignas(struct entry) char bytes[4096];
    const long len = syscall(SYS_getdents64, dir, bytes, sizeof bytes);
    bool any = false;
    for (long at = 0; at < len;) {
        const struct entry *e = (const struct entry *)(bytes + at);
        any |= unlinkat(dir, e->name, 0) == 0; /* not "." and ".." */
        at += e->size;
    }
    return any;
}

static void on_interrupt(int number)
{
    const int dir = folder[0] ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    while (dir >= 0 && unlink_some(dir))
        (void)lseek(dir, 0, SEEK_SET);
    if (dir >= 0)
        (void)close(dir);
    if (folder[0] && is_made)
        (void)rmdir(folder);
    (void)raise(number); /* SA_RESETHAND: now it ends the process */
}

static void block(int how)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        (void)sigaddset(&set, numbers[i]);
    (void)sigprocmask(how, &set, NULL);
}

static void let_go(void)
{
    if (is_held)
        block(SIG_UNBLOCK);
    is_held = 0;
}

void unfinished_hold(void)
{
    block(SIG_BLOCK);
    is_held = 1;
}

void unfinished_folder(const char *path, bool made)
{
    struct sigaction before, ours = { .sa_handler = on_interrupt,
                                      .sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };
    const int len = snprintf(folder, sizeof folder, "%s", path);
    if (len < 0 || (size_t)len >= sizeof folder)
        folder[0] = '\0'; /* the kernel would not know such a path either */
    is_made = made;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            (void)sigaction(numbers[i], &ours, NULL);
    let_go();
}

void unfinished_done(void)
{
    block(SIG_BLOCK);
    folder[0] = '\0';
    is_held = 1;
    let_go();
}
