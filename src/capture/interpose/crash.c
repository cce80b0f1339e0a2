/* crash.c: the last words of a process that faults: crash-PID.fault in the run.
 *
 * A handler of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT where the program has none
 * of its own: it writes the registers, the stack and the mappings with plain writes,
 * gives the signal its default action back and lets the fault happen again. The program
 * dies of the same signal at the same instruction, with the same core file.
 *
 * The program must not notice. Whoever asks for the action of these signals is told it
 * is the default one; whoever sets his own replaces ours. Only the main thread gets a
 * stack for signals, and only if it has none, so that an overflow of its stack can be
 * told too.
 *
 * In the handler: no allocation, no locks, no libc but system calls. RLIMIT_FSIZE is
 * looked at first: its signal would come instead of the one we die of.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <ucontext.h>
#include <unistd.h>

#include "capture/interpose/inside.h"
#include "trace/crash_rows.h"

enum { SIGNAL_STACK = 1 << 16, PIECE = 4096 };

static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
enum { FAULTS = sizeof faults / sizeof *faults };

typedef int sigaction_fn(int, const struct sigaction *, struct sigaction *);
typedef void (*handler)(int);
typedef handler signal_fn(int, handler);
static sigaction_fn *real_sigaction;
static signal_fn *real_signal;

/* ---- In the handler ---------------------------------------------------------------- */

static char *put_text(char *at, const char *text)
{
    while (*text)
        *at++ = *text++;
    return at;
}

static char *put_number(char *at, unsigned long number)
{
    char digits[24];
    unsigned n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

static int open_file(void)
{
    char path[PATH_MAX];
    struct rlimit limit;
    const size_t most = sizeof(struct crash_record) + CRASH_MAPS_MAX;
    if (syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) != 0 ||
        limit.rlim_cur < most || strlen(inside_dir()) > PATH_MAX - 64)
        return -1;
    char *at = put_text(path, inside_dir());
    at = put_text(at, "/crash-");
    at = put_number(at, (unsigned long)syscall(SYS_getpid));
    at = put_text(at, CRASH_SUFFIX);
    *at = '\0';
    return (int)syscall(SYS_openat, AT_FDCWD, path,
                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static void put_registers(struct crash_record *r, const ucontext_t *context)
{
#if defined(__x86_64__)
    r->pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    r->sp = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
    r->bp = (uint64_t)context->uc_mcontext.gregs[REG_RBP];
#elif defined(__aarch64__)
    r->pc = context->uc_mcontext.pc;
    r->sp = context->uc_mcontext.sp;
    r->bp = context->uc_mcontext.regs[29];
#else
    (void)r, (void)context;
#endif
}

static void describe(struct crash_record *r, const siginfo_t *info, const void *context)
{
    struct statfs shm;
    r->magic = CRASH_MAGIC;
    r->signal = (uint32_t)info->si_signo;
    r->code = info->si_code;
    r->pid = (uint32_t)syscall(SYS_getpid);
    r->tid = (uint32_t)syscall(SYS_gettid);
    r->address = (uint64_t)(uintptr_t)info->si_addr;
    put_registers(r, context);
    r->zone = inside_zone();
    r->shm_free = syscall(SYS_statfs, "/dev/shm", &shm) == 0
                      ? (uint64_t)shm.f_bavail * (uint64_t)shm.f_bsize
                      : UINT64_MAX;
    r->frame[0] = r->pc;
    r->frame_count = 1;
}

/* Above the handler the walk meets the faulting instruction, and then its callers. */
static void put_stack(struct crash_record *r)
{
    uint64_t frames[CRASH_FRAMES + 8];
    const unsigned n = inside_stack(frames, CRASH_FRAMES + 8);
    unsigned at = 0;
    while (at < n && frames[at] != r->pc + 1 && frames[at] != r->pc)
        at++;
    for (at++; at < n && r->frame_count < CRASH_FRAMES; at++)
        r->frame[r->frame_count++] = frames[at];
}

static void copy_maps(int to)
{
    char piece[PIECE];
    const int from = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps",
                                  O_RDONLY | O_CLOEXEC);
    long n, total = 0;
    while (from >= 0 && total < CRASH_MAPS_MAX - PIECE &&
           (n = syscall(SYS_read, from, piece, sizeof piece)) > 0) {
        (void)syscall(SYS_write, to, piece, n);
        total += n;
    }
    if (from >= 0)
        (void)syscall(SYS_close, from);
}

/* The record comes first without its stack: walking a broken one may be the end. */
static void leave_words(const siginfo_t *info, const void *context)
{
    struct crash_record r;
    memset(&r, 0, sizeof r);
    const int fd = open_file();
    if (fd < 0)
        return;
    describe(&r, info, context);
    (void)syscall(SYS_write, fd, &r, sizeof r);
    copy_maps(fd);
    put_stack(&r);
    (void)syscall(SYS_pwrite64, fd, &r, sizeof r, 0);
    (void)syscall(SYS_close, fd);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    static uint32_t once; /* threads may fault together */
    const int error = errno;
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    inside_busy++;
    if (!__atomic_exchange_n(&once, 1, __ATOMIC_RELAXED))
        leave_words(info, context);
    (void)real_sigaction(signal, &standard, NULL);
    /* A fault happens again when we return; what was sent must be sent again. */
    if (info->si_code <= 0)
        (void)syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid), syscall(SYS_gettid),
                      signal, info);
    inside_busy--;
    errno = error;
}

/* ---- Unseen ------------------------------------------------------------------------ */

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) &&
           (action->sa_sigaction == on_fault ||
            timer_is_handler((const void *)(uintptr_t)action->sa_sigaction));
}

EXPORTED int sigaction(int signum, const struct sigaction *act,
                       struct sigaction *oldact)
{
    INSIDE_REAL(real_sigaction, "sigaction");
    const bool keep = act && signum && signum == timer_signal &&
                      timer_signal_wanted(act->sa_handler != SIG_DFL &&
                                          act->sa_handler != SIG_IGN);
    const int rc = real_sigaction(signum, keep ? NULL : act, oldact);
    if (rc == 0 && oldact && is_ours(oldact))
        memset(oldact, 0, sizeof *oldact);
    return rc;
}

EXPORTED handler signal(int signum, handler action)
{
    INSIDE_REAL(real_signal, "signal");
    if (signum && signum == timer_signal &&
        timer_signal_wanted(action != SIG_DFL && action != SIG_IGN))
        return SIG_DFL;
    const handler old = real_signal(signum, action);
    if (timer_is_handler((const void *)(uintptr_t)old))
        return SIG_DFL;
    return old == (handler)(uintptr_t)on_fault ? SIG_DFL : old;
}

/* ---- Start ------------------------------------------------------------------------- */

static void give_stack(void)
{
    static char room[SIGNAL_STACK] __attribute__((aligned(64)));
    stack_t now;
    const stack_t ours = { .ss_sp = room, .ss_size = sizeof room };
    if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE))
        (void)sigaltstack(&ours, NULL);
}

static void watch(int signum)
{
    struct sigaction now, action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)sigfillset(&action.sa_mask);
    if (real_sigaction(signum, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        (void)real_sigaction(signum, &action, NULL);
}

__attribute__((constructor)) static void start(void)
{
    /* Also where nothing is captured: the first call may come from a handler, where
     * nobody should look up symbols. */
    inside_busy++;
    INSIDE_REAL(real_sigaction, "sigaction");
    INSIDE_REAL(real_signal, "signal");
    inside_busy--;
    if (!inside_ready())
        return;
    inside_busy++;
    if (real_sigaction && real_signal) {
        give_stack();
        for (int i = 0; i < FAULTS; i++)
            watch(faults[i]);
    }
    inside_busy--;
}
