/* sealed.c: programs that give up system calls (seccomp).
 *
 * From then on a call their filter does not know may end them, and no filter knows ours.
 * So we look out for the moment: after it nothing of ours makes a system call any more.
 * Counting goes on in the memory that is there; what would need a new block of the file
 * is refused and counted.
 */
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/interpose/inside.h"

bool inside_sealed;

static int (*real_prctl)(int, unsigned long, unsigned long, unsigned long,
                         unsigned long);
static long (*real_syscall)(long, long, long, long, long, long, long);

static void seal(void)
{
    inside_sealed = true;
    if (heap_sealed)
        heap_sealed();
    if (io_sealed)
        io_sealed();
    if (timer_sealed)
        timer_sealed();
}

/* The arguments that were not given are whatever is in their registers, as in libc. */
EXPORTED int prctl(int option, ...)
{
    va_list more;
    va_start(more, option);
    const unsigned long a = va_arg(more, unsigned long),
                        b = va_arg(more, unsigned long);
    const unsigned long c = va_arg(more, unsigned long),
                        d = va_arg(more, unsigned long);
    va_end(more);
    INSIDE_REAL(real_prctl, "prctl");
    if (option == PR_SET_SECCOMP)
        seal();
    return real_prctl(option, a, b, c, d);
}

EXPORTED long syscall(long number, ...)
{
    va_list more;
    va_start(more, number);
    const long a = va_arg(more, long), b = va_arg(more, long), c = va_arg(more, long);
    const long d = va_arg(more, long), e = va_arg(more, long), f = va_arg(more, long);
    va_end(more);
    INSIDE_REAL(real_syscall, "syscall");
    const bool sets = number == SYS_seccomp &&
                      (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER);
    const bool old = number == SYS_prctl && a == PR_SET_SECCOMP;
    if (UNLIKELY(sets || old))
        seal();
    return real_syscall(number, a, b, c, d, e, f);
}
