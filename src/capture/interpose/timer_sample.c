/* timer_sample.c: samples of native stacks from inside, where perf_event is forbidden.
 *
 * Every thread has a timer on its own CPU time that sends it a real-time signal
 * (timer_create, SIGEV_THREAD_ID): no SIGPROF, no setitimer, which programs use
 * themselves. The handler walks the interrupted stack and puts the addresses into a slot
 * of a mapped file; everything else is the supervisor's work (trace/timer_ring.h).
 *
 * The handler makes one system call (the thread's name), takes no lock, allocates nothing
 * and needs less than 2 KiB of stack, because it runs on the program's signal stack
 * where there is one. All other signals wait meanwhile: nobody jumps out of it. A thread
 * that waits has no CPU time and is not interrupted.
 *
 * Children: timers are not inherited; after fork() the child makes its own ring and arms
 * its only thread. exec ends timers and the kernel drops their pending signals. A child
 * of vfork shares our memory but has no timer.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "capture/interpose/inside.h"
#include "trace/clock.h"
#include "trace/ownfile.h"
#include "trace/space.h"
#include "trace/timer_ring.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
    THREADS = 4096,
    SIGNALS_TRIED = 16,
    MAIN_STACK_MOST = 128 << 20, /* the kernel maps nothing else there */
};
static const long SECOND_NS = 1000000000;

struct thread {
    uint32_t taken;
    uint32_t timer; /* + 1; 0: none */
    void *(*start)(void *);
    void *arg;
    size_t stack_size;
};

/* A child finds this zeroed. */
struct timers {
    struct timer_ring *ring;
    uint32_t next; /* where to look for a free thread */
    struct thread thread[THREADS];
};

int timer_signal;
static long period_ns; /* 0: nobody samples */
static struct timers *timers;
static struct timer_ring *mapped; /* what a child has to unmap */
static char cookie;
static pthread_key_t end_key;
static bool has_end_key;

static THREAD_LOCAL struct {
    uint32_t tid;
    struct thread *thread;
    uint64_t low, high; /* of its stack */
} self;

typedef int sigaction_fn(int, const struct sigaction *, struct sigaction *);
typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static sigaction_fn *real_sigaction;
static create_fn *real_pthread_create;

/* ---- In the handler ---------------------------------------------------------------- */

static struct timer_slot *take_slot(struct timer_ring *ring, uint32_t weight)
{
    const uint64_t n = __atomic_fetch_add(&ring->head, 1, __ATOMIC_RELAXED);
    struct timer_slot *slot = &ring->slot[n % TIMER_SLOTS];
    uint8_t state = TIMER_FREE;
    if (__atomic_compare_exchange_n(&slot->state, &state, TIMER_TAKEN, false,
                                    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return slot;
    (void)__atomic_fetch_add(&ring->lost, weight, __ATOMIC_RELAXED);
    return NULL;
}

/* Of a stack that is not the thread's own (a coroutine's, a signal stack) only the page
 * of the stack pointer is certain to be there. */
static uint64_t stack_end(uint64_t sp)
{
    return sp >= self.low && sp < self.high ? self.high : (sp | 4095) + 1;
}

static void read_registers(const ucontext_t *context, struct inside_registers *ret_r)
{
#if defined(__x86_64__)
    ret_r->pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    ret_r->sp = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
    ret_r->fp = (uint64_t)context->uc_mcontext.gregs[REG_RBP];
#elif defined(__aarch64__)
    ret_r->pc = context->uc_mcontext.pc;
    ret_r->sp = context->uc_mcontext.sp;
    ret_r->fp = context->uc_mcontext.regs[29];
#else
    (void)context;
    *ret_r = (struct inside_registers){ 0 };
#endif
    ret_r->stack_end = stack_end(ret_r->sp);
}

/* The function that threads begin in is in a section of its own: it is no part of their
 * stacks. */
extern const char __start_sonde_thread[] __attribute__((visibility("hidden")));
extern const char __stop_sonde_thread[] __attribute__((visibility("hidden")));

static bool is_beginning(uint64_t address)
{
    return address > (uintptr_t)__start_sonde_thread &&
           address <= (uintptr_t)__stop_sonde_thread;
}

static unsigned without_beginning(uint64_t *frames, unsigned count)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++)
        if (!is_beginning(frames[i]))
            frames[kept++] = frames[i];
    return kept;
}

static void fill_slot(struct timer_slot *slot, const ucontext_t *context)
{
    struct inside_registers r;
    bool whole;
    read_registers(context, &r);
    slot->frame[0] = r.pc;
    const unsigned n = inside_stack_from(&r, slot->frame + 1, TIMER_FRAMES - 1, &whole);
    slot->count = (uint16_t)(1 + without_beginning(slot->frame + 1, n));
    slot->flags = whole ? 0 : TIMER_CUT;
    slot->tid = self.tid;
    slot->name[0] = '\0';
    (void)syscall(SYS_prctl, PR_GET_NAME, slot->name, 0, 0, 0);
}

static void take_sample(const siginfo_t *info, const ucontext_t *context)
{
    struct timer_ring *ring = timers->ring;
    const uint32_t weight = 1 + (uint32_t)(info->si_overrun > 0 ? info->si_overrun : 0);
    struct timer_slot *slot = ring && !inside_sealed ? take_slot(ring, weight) : NULL;
    if (!slot)
        return;
    slot->weight = weight;
    fill_slot(slot, context);
    __atomic_store_n(&slot->state, TIMER_FULL, __ATOMIC_RELEASE);
}

/* Somebody sent this signal to a program that has no handler of it: it would end. */
static void not_ours(int signal, siginfo_t *info)
{
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    (void)real_sigaction(signal, &standard, NULL);
    (void)syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid), syscall(SYS_gettid),
                  signal, info);
}

static void on_timer(int signal, siginfo_t *info, void *context)
{
    const int error = errno;
    if (info->si_code == SI_TIMER && info->si_value.sival_ptr == &cookie) {
        inside_busy++;
        take_sample(info, context);
        inside_busy--;
    } else if (!inside_sealed) {
        not_ours(signal, info);
    }
    errno = error;
}

/* ---- Threads ----------------------------------------------------------------------- */

static struct thread *take_thread(void)
{
    for (uint32_t tried = 0; tried < THREADS; tried++) {
        struct thread *t =
            &timers->thread[__atomic_fetch_add(&timers->next, 1, __ATOMIC_RELAXED) %
                            THREADS];
        uint32_t nobody = 0;
        if (!__atomic_load_n(&t->taken, __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(&t->taken, &nobody, 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return t;
    }
    return NULL;
}

static void disarm(struct thread *t)
{
    const uint32_t timer = __atomic_exchange_n(&t->timer, 0, __ATOMIC_ACQ_REL);
    if (timer)
        (void)syscall(SYS_timer_delete, timer - 1);
}

static void give_thread(struct thread *t)
{
    if (!inside_sealed)
        disarm(t);
    __atomic_store_n(&t->taken, 0, __ATOMIC_RELEASE);
}

/* Somewhere in the first period, so that short threads are seen as often as they should. */
static long first_ns(void)
{
    struct timespec now = { 0, 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t mixed = ((uint64_t)now.tv_nsec ^ (uint64_t)self.tid << 32) *
                           0x9E3779B97F4A7C15ULL;
    return 1 + (long)((mixed >> 20) % (uint64_t)period_ns);
}

static struct timespec timespec_of(long ns)
{
    return (struct timespec){ ns / SECOND_NS, ns % SECOND_NS };
}

static void arm(struct thread *t)
{
    struct sigevent event;
    int timer = -1;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = timer_signal;
    event.sigev_value.sival_ptr = &cookie;
    self.tid = (uint32_t)syscall(SYS_gettid);
    self.thread = t;
    event.sigev_notify_thread_id = (int)self.tid;
    if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0)
        return; /* RLIMIT_SIGPENDING: the thread is not sampled */
    const struct itimerspec when = { .it_interval = timespec_of(period_ns),
                                     .it_value = timespec_of(first_ns()) };
    __atomic_store_n(&t->timer, (uint32_t)timer + 1, __ATOMIC_RELEASE);
    (void)syscall(SYS_timer_settime, timer, 0, &when, NULL);
}

static void on_thread_end(void *arg)
{
    inside_busy++;
    if (self.thread == arg && arg)
        give_thread(arg);
    self.thread = NULL;
    inside_busy--;
}

/* A thread's descriptor is at the upper end of its stack. pthread_getattr_np() would tell
 * too, but it allocates, in threads that may never do. */
static void find_thread_stack(size_t size)
{
    enum { ABOVE = 16384 }; /* the descriptor, and what it is aligned to */
    self.high = (uint64_t)pthread_self();
    self.low = size > ABOVE ? self.high - (size - ABOVE) : self.high;
}

static size_t stack_size_of(const pthread_attr_t *attr)
{
    pthread_attr_t standard;
    size_t size = 0;
    if (attr) {
        (void)pthread_attr_getstacksize(attr, &size);
    } else if (pthread_getattr_default_np(&standard) == 0) {
        (void)pthread_attr_getstacksize(&standard, &size);
        (void)pthread_attr_destroy(&standard);
    }
    return size;
}

static void begin_thread(struct thread *t)
{
    const int error = errno;
    inside_busy++;
    find_thread_stack(t->stack_size);
    (void)pthread_setspecific(end_key, t);
    if (timer_signal && !inside_sealed)
        arm(t);
    inside_busy--;
    errno = error;
}

__attribute__((section("sonde_thread"), noinline)) static void *run_thread(void *arg)
{
    struct thread *t = arg;
    void *(*const start)(void *) = t->start;
    void *const start_arg = t->arg;
    begin_thread(t);
    void *result = start(start_arg);
    __asm__ volatile("" : "+r"(result)); /* no tail call: this frame is known */
    return result;
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                            void *(*start)(void *), void *arg)
{
    INSIDE_REAL(real_pthread_create, "pthread_create");
    struct thread *t = period_ns && timer_signal && timers->ring && !inside_sealed
                           ? take_thread()
                           : NULL;
    if (!t)
        return real_pthread_create(thread, attr, start, arg);
    t->start = start;
    t->arg = arg;
    t->stack_size = stack_size_of(attr);
    const int rc = real_pthread_create(thread, attr, run_thread, t);
    if (rc != 0)
        __atomic_store_n(&t->taken, 0, __ATOMIC_RELEASE);
    return rc;
}

/* ---- The end of it ----------------------------------------------------------------- */

static void stop(enum timer_end why)
{
    timer_signal = 0;
    if (!timers || !timers->ring)
        return;
    __atomic_store_n(&timers->ring->ended, why, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < THREADS; i++)
        if (__atomic_load_n(&timers->thread[i].timer, __ATOMIC_RELAXED))
            disarm(&timers->thread[i]);
}

/* Before the filter is there: the return from a handler is a system call too. */
void timer_sealed(void)
{
    if (period_ns)
        stop(TIMER_SEALED);
}

bool timer_signal_wanted(bool has_handler)
{
    if (has_handler)
        stop(TIMER_SIGNAL_TAKEN);
    return !has_handler;
}

bool timer_is_handler(const void *handler)
{
    return handler == (const void *)(uintptr_t)on_timer;
}

/* ---- The ring ---------------------------------------------------------------------- */

static struct timer_ring *map_ring(void)
{
    char path[1024];
    struct ownfile_id id;
    struct clock_reading now;
    int fd = -1;
    void *p = MAP_FAILED;
    clock_read(&now);
    if (ownfile_create(inside_dir(), TIMER_RING_PREFIX, now.real_ns, TIMER_RING_SUFFIX,
                       path, sizeof path, &fd, &id) < 0)
        return NULL;
    if (space_reserve(fd, 0, sizeof(struct timer_ring)) == 0)
        p = mmap(NULL, sizeof(struct timer_ring), PROT_READ | PROT_WRITE, MAP_SHARED,
                 fd, 0);
    if (p == MAP_FAILED)
        (void)unlink(path);
    (void)close(fd);
    return p == MAP_FAILED ? NULL : p;
}

/* As all captures, of half of what the run may use. */
static bool take_budget(struct control *c)
{
    return __atomic_load_n(&c->used_blocks, __ATOMIC_RELAXED) + TIMER_BLOCKS <=
               c->max_blocks / 2 &&
           control_take(c, TIMER_BLOCKS);
}

static bool make_ring(void)
{
    struct stat space;
    struct timer_ring *r = NULL;
    if (!take_budget(inside_control()))
        return false;
    r = map_ring();
    if (!r) {
        control_give(inside_control(), TIMER_BLOCKS);
        return false;
    }
    r->pid = (uint32_t)syscall(SYS_getpid);
    r->pid_space = stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
    (void)prctl(PR_GET_NAME, r->process, 0, 0, 0);
    r->maps_len[0] = (uint32_t)inside_code_lines(r->maps[0], TIMER_MAPS);
    __atomic_store_n(&r->magic, TIMER_RING_MAGIC, __ATOMIC_RELEASE);
    mapped = r;
    __atomic_store_n(&timers->ring, r, __ATOMIC_RELEASE);
    return true;
}

/* What was loaded later, for a process that is gone before the supervisor looks. */
__attribute__((destructor)) static void leave_maps(void)
{
    struct timer_ring *r = period_ns && timers ? timers->ring : NULL;
    if (!r || inside_sealed || !r->head)
        return;
    inside_busy++;
    const size_t len = inside_code_lines(r->maps[1], TIMER_MAPS);
    __atomic_store_n(&r->maps_len[1], (uint32_t)len, __ATOMIC_RELEASE);
    inside_busy--;
}

/* ---- Start ------------------------------------------------------------------------- */

static int find_signal(void)
{
    struct sigaction now;
    for (int s = SIGRTMAX - 1; s > SIGRTMAX - SIGNALS_TRIED && s > SIGRTMIN; s--)
        if (real_sigaction(s, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            return s;
    return 0;
}

static bool install(void)
{
    struct sigaction action;
    sigset_t ours;
    timer_signal = find_signal();
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_timer;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    (void)sigfillset(&action.sa_mask);
    if (!timer_signal || real_sigaction(timer_signal, &action, NULL) != 0)
        return timer_signal = 0, false;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, timer_signal);
    (void)pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
    return true;
}

static void arm_this_thread(void)
{
    struct thread *t = take_thread();
    if (!t)
        return;
    (void)pthread_setspecific(end_key, t);
    arm(t);
}

static void find_main_stack(void)
{
    uint64_t start;
    if (!inside_mapping((uintptr_t)__builtin_frame_address(0), &start, &self.high))
        self.high = 0;
    self.low = self.high > MAIN_STACK_MOST ? self.high - MAIN_STACK_MOST : 0;
}

static void in_child(void)
{
    inside_busy++;
    if (mapped)
        (void)munmap(mapped, sizeof *mapped);
    mapped = NULL;
    self.thread = NULL;
    if (timer_signal && !inside_sealed && make_ring())
        arm_this_thread();
    inside_busy--;
}

static long asked_period(void)
{
    const char *hz = secure_getenv("SONDE_TIMER_HZ");
    const long n = hz ? strtol(hz, NULL, 10) : 0;
    return n > 0 && n <= 10000 ? SECOND_NS / n : 0;
}

__attribute__((constructor)) static void start(void)
{
    INSIDE_REAL(real_sigaction, "sigaction");
    INSIDE_REAL(real_pthread_create, "pthread_create");
    const long asked = asked_period();
    if (!asked || !real_sigaction || !real_pthread_create || !inside_ready())
        return;
    inside_busy++;
    timers = inside_wiped(sizeof *timers);
    has_end_key = timers && pthread_key_create(&end_key, on_thread_end) == 0;
    if (has_end_key && make_ring() && install()) {
        (void)pthread_atfork(NULL, NULL, in_child);
        period_ns = asked;
        find_main_stack();
        arm_this_thread();
    }
    inside_busy--;
}
