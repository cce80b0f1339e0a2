/* inside.c: start-up, fork, threads. See inside.h.
 *
 * Start-up. The first call of malloc comes from the dynamic loader, long before any
 * constructor. Nothing is decided before libc knows the environment; from then on (other
 * libraries' constructors) calls are captured. What needs the loader itself, the meeting
 * with other copies of the recorder, waits for our constructor.
 *
 * Fork. `inside_shared` is zeroed in every child (MADV_WIPEONFORK), so that the first
 * call there finds INSIDE_UNKNOWN. What was decided (directory, control file) is in
 * plain memory and holds for the child too.
 *
 * Threads. A number is held by the address of a thread variable: a forked child has the
 * same address but finds the table empty.
 */
#include "capture/interpose/inside.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/copies.h"

__thread uint32_t inside_busy __attribute__((tls_model("initial-exec")));
__thread uint32_t inside_resolving __attribute__((tls_model("initial-exec")));

uint64_t inside_own_bytes;

static struct inside_shared before_start;
struct inside_shared *inside_shared = &before_start;

/* Survives forks: decided once. */
static struct {
    uint32_t state; /* enum inside_state */
    const char *stays_out;
    struct control *control;
    char dir[900];
    char trace[64];
} decided;

static bool constructed; /* our constructor runs: those of sanitizers have run */
static const struct table *recorder_table; /* NULL until our constructor ran */

/* ---- Locks ------------------------------------------------------------------------ */

static THREAD_LOCAL int cancel_before;

/* What is done under a lock may open files, where a cancelled thread would end. */
bool inside_lock(uint32_t *lock)
{
    if (inside_busy)
        return false;
    inside_busy = 1;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (unsigned n = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); n++)
        if (n > 100 && !inside_sealed)
            (void)sched_yield();
    return true;
}

void inside_unlock(uint32_t *lock)
{
    const int before = cancel_before;
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    inside_busy = 0;
    (void)pthread_setcancelstate(before, NULL);
}

uint64_t inside_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- Memory that children find zeroed --------------------------------------------- */

enum { FALLBACKS = 16 };
static struct {
    void *at;
    size_t len;
} fallback[FALLBACKS]; /* what this kernel does not wipe */
static uint32_t fallback_count;

static void wipe_after_fork(void)
{
    for (uint32_t i = 0; i < fallback_count && i < FALLBACKS; i++)
        memset(fallback[i].at, 0, fallback[i].len);
}

static void remember_to_wipe(void *at, size_t len)
{
    const uint32_t i = __atomic_fetch_add(&fallback_count, 1, __ATOMIC_RELAXED);
    if (i == 0)
        (void)pthread_atfork(NULL, NULL, wipe_after_fork);
    if (i < FALLBACKS)
        fallback[i].len = len, fallback[i].at = at;
}

void *inside_wiped(size_t bytes)
{
    const uint32_t busy = inside_busy;
    inside_busy = 1;
    const size_t len = (bytes + 4095) & ~(size_t)4095;
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        p = NULL;
    else if (madvise(p, len, MADV_WIPEONFORK) != 0)
        remember_to_wipe(p, len);
    inside_busy = busy;
    return p;
}

/* ---- The functions behind ours ---------------------------------------------------- */

/* Not a tail call: RTLD_NEXT looks at the return address, which must be in this
 * library. */
__attribute__((noinline)) void *inside_real(const char *name)
{
    const uint32_t resolving = inside_resolving;
    inside_resolving = 1;
    void *f = dlsym(RTLD_NEXT, name);
    __asm__ volatile("" : "+r"(f));
    inside_resolving = resolving;
    return f;
}

/* ---- Deciding --------------------------------------------------------------------- */

/* A sanitizer replaces the same functions and checks every access: two of a kind in one
 * process do not go together. It also stands in front of strlen and its like, which must
 * not be called before it is ready: nothing but dlsym here. */
static const char *find_sanitizer(void)
{
    static const char *const runtime[][2] = {
        { "__asan_init", "built with AddressSanitizer" },
        { "__tsan_init", "built with ThreadSanitizer" },
        { "__msan_init", "built with MemorySanitizer" },
        { "__hwasan_init", "built with HWAddressSanitizer" },
        { "__lsan_init", "built with LeakSanitizer" },
    };
    const char *found = NULL;
    inside_resolving++;
    for (size_t i = 0; i < sizeof runtime / sizeof *runtime && !found; i++)
        if (dlsym(RTLD_DEFAULT, runtime[i][0]))
            found = runtime[i][1];
    inside_resolving--;
    return found;
}

const char *inside_sanitizer(void)
{
    static const char *found;
    static uint32_t looked;
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        found = find_sanitizer();
        __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    }
    return found;
}

static bool wanted(const char **ret_dir)
{
    const char *disable = secure_getenv("SONDE_DISABLE");
    const char *dir = secure_getenv("SONDE_RUN");
    *ret_dir = dir;
    return dir && *dir && strlen(dir) < sizeof decided.dir &&
           !(disable && *disable && strcmp(disable, "0") != 0);
}

/* Once per program. Busy; under the lock of the first page or alone. */
static void decide(void)
{
    const char *dir;
    decided.state = INSIDE_OFF;
    if (!wanted(&dir) || control_map(dir, true, &decided.control) < 0)
        return;
    snprintf(decided.dir, sizeof decided.dir, "%s", dir);
    const char *trace = secure_getenv("SONDE_TRACE");
    snprintf(decided.trace, sizeof decided.trace, "%s", trace ? trace : "");
    decided.stays_out = inside_sanitizer();
    __atomic_store_n(&decided.state, INSIDE_ON, __ATOMIC_RELEASE);
}

static bool make_shared(void)
{
    if (__atomic_load_n(&inside_shared, __ATOMIC_ACQUIRE) != &before_start)
        return true;
    struct inside_shared *s = inside_wiped(sizeof *s);
    if (s)
        __atomic_store_n(&inside_shared, s, __ATOMIC_RELEASE);
    return s != NULL;
}

bool inside_arm(void)
{
    static uint32_t once; /* the wiped locks do not exist yet */
    if (inside_busy || inside_resolving || !environ || inside_sealed)
        return false; /* ours, or too early to decide */
    if (inside_sanitizer() && !constructed)
        return false;
    const bool first = __atomic_load_n(&inside_shared, __ATOMIC_ACQUIRE) ==
                       &before_start;
    uint32_t *lock = first ? &once : &inside_shared->lock;
    if (!inside_lock(lock))
        return false;
    if (decided.state == INSIDE_UNKNOWN)
        decide();
    const bool on = decided.state == INSIDE_ON && !decided.stays_out && make_shared();
    __atomic_store_n(&inside_shared->state, on ? INSIDE_ON : INSIDE_OFF,
                     __ATOMIC_RELEASE);
    inside_unlock(lock);
    return on;
}

const char *inside_dir(void)
{
    return decided.dir;
}

struct control *inside_control(void)
{
    return decided.control;
}

bool inside_traces(const char *what)
{
    const size_t len = strlen(what);
    for (const char *p = decided.trace; *p;) {
        const size_t item = strcspn(p, ",");
        if (item == len && memcmp(p, what, len) == 0)
            return true;
        p += item + (p[item] == ',');
    }
    return false;
}

/* ---- Threads ---------------------------------------------------------------------- */

static THREAD_LOCAL struct {
    uint32_t number; /* + 1; 0: none yet */
    uint32_t ending; /* rounds of destructors seen */
    uint32_t asked;  /* how often there was none to be had */
    uint32_t tid;
} self;

static pthread_key_t exit_key;
static uint32_t exit_key_made; /* 0 not yet, 1 being made, 2 made, 3 cannot be */

static void give_number_back(void)
{
    const uint32_t n = self.number - 1;
    if (self.number == 0 || n >= INSIDE_THREADS ||
        __atomic_load_n(&inside_shared->holder[n], __ATOMIC_RELAXED) != &self)
        return;
    if (heap_thread_ended)
        heap_thread_ended(n);
    if (io_thread_ended)
        io_thread_ended(n);
    self.number = 0;
    __atomic_store_n(&inside_shared->holder[n], NULL, __ATOMIC_RELEASE);
}

/* Other destructors allocate and free after ours: wait for the last round. */
static void on_thread_exit(void *arg)
{
    inside_busy++;
    if (++self.ending < PTHREAD_DESTRUCTOR_ITERATIONS)
        (void)pthread_setspecific(exit_key, arg);
    else
        give_number_back();
    inside_busy--;
}

static void watch_exit(void)
{
    uint32_t none = 0;
    if (__atomic_compare_exchange_n(&exit_key_made, &none, 1, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        none = pthread_key_create(&exit_key, on_thread_exit) == 0 ? 2 : 3;
        __atomic_store_n(&exit_key_made, none, __ATOMIC_RELEASE);
    }
    if (none == 2)
        (void)pthread_setspecific(exit_key, &self);
}

static void follow_lane(void)
{
    if (recorder_table && recorder_table->size > offsetof(struct table, lane_follow))
        recorder_table->lane_follow(&sonde_lane_);
}

static uint32_t take_number(void)
{
    for (uint32_t i = 0; i < INSIDE_THREADS; i++) {
        const void *nobody = NULL;
        if (!__atomic_load_n(&inside_shared->holder[i], __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(&inside_shared->holder[i], &nobody, &self,
                                        false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return i;
    }
    return INSIDE_THREADS;
}

static uint32_t join(void)
{
    if (self.ending >= PTHREAD_DESTRUCTOR_ITERATIONS)
        return INSIDE_THREADS;
    inside_busy++;
    const uint32_t n = take_number();
    self.number = n + 1;
    if (!inside_sealed)
        self.tid = (uint32_t)syscall(SYS_gettid);
    if (n < INSIDE_THREADS) {
        watch_exit();
        follow_lane();
    }
    inside_busy--;
    return n;
}

uint32_t inside_tid(void)
{
    return self.tid;
}

uint32_t inside_thread(void)
{
    const uint32_t n = self.number - 1;
    if (n < INSIDE_THREADS &&
        __atomic_load_n(&inside_shared->holder[n], __ATOMIC_RELAXED) == &self)
        return n;
    /* All were taken: looking through a thousand is not for every call. */
    if (self.number == INSIDE_THREADS + 1 && (self.ending || ++self.asked % 256))
        return INSIDE_THREADS;
    return join();
}

/* ---- Our constructor -------------------------------------------------------------- */

uint64_t inside_step(void)
{
    return recorder_table && recorder_table->size > offsetof(struct table, steps)
               ? recorder_table->steps()
               : 0;
}

void copies_preloaded(void) {}

__attribute__((constructor)) static void start(void)
{
    constructed = true;
    const bool on = inside_ready();
    inside_busy++;
    if (decided.stays_out && heap_stays_out)
        heap_stays_out(decided.stays_out);
    if (!on)
        goto done;
    if (heap_start)
        heap_start();
    recorder_table = copies_meet();
    follow_lane();
done:
    inside_busy--;
}
