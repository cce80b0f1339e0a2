/* io_vfork.c: whether this thread may be in a child of vfork.
 *
 * Such a child runs in its parent's memory, on its parent's thread, with descriptors and
 * a pid of its own. Whatever it opens and closes must not be noted in the memory it
 * shares. To ask for the pid at each open and close would cost a third of a microsecond
 * per pair, so vfork() leaves a mark on the thread instead, and only a marked thread
 * asks: in the parent, when it runs again, the answer takes the mark away.
 *
 * vfork returns twice, into the frame of its caller: nothing may be between the caller
 * and libc's own. Ours sets the mark and jumps. Where there is no such few lines of
 * assembler, every thread counts as marked. Children of clone(CLONE_VM | CLONE_VFORK) by
 * other hands are not known; glibc's posix_spawn, which is one, opens and closes without
 * coming by here.
 */
#include "capture/interpose/io.h"

#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

THREAD_LOCAL uint32_t io_vforked;

/* Until our constructor has found the real one: a child with memory of its own is right,
 * if slower. */
static pid_t early_vfork(void)
{
    return fork();
}
__attribute__((used, visibility("hidden"))) pid_t (*io_vfork_real)(void) = early_vfork;

__asm__(".text\n"
        ".globl vfork\n"
        ".type vfork, @function\n"
        "vfork:\n"
        "    endbr64\n"
        "    movq io_vforked@gottpoff(%rip), %rax\n"
        "    movl $1, %fs:(%rax)\n"
        "    jmp *io_vfork_real(%rip)\n"
        ".size vfork, . - vfork\n");

__attribute__((constructor)) static void find_vfork(void)
{
    void *real = inside_real("vfork");
    if (real)
        __atomic_store_n((void **)&io_vfork_real, real, __ATOMIC_RELAXED);
}

#else
THREAD_LOCAL uint32_t io_vforked = 1;
#endif

bool io_in_vfork_slow(void)
{
    const bool child = io->pid != (int32_t)syscall(SYS_getpid);
#if defined(__x86_64__)
    if (!child)
        io_vforked = 0;
#endif
    return child;
}
