/* inside.h: what the parts of libsonde-preload.so share.
 *
 * The library lives in front of libc in other people's programs, from before main()
 * until after exit(). Four rules keep that safe:
 *  - Nothing of Sonde's own doing is recorded, and nothing is recorded twice: while
 *    inside_busy is set on a thread, interposed calls go straight through.
 *  - Until inside_ready() says so (early start-up, SONDE_DISABLE, setuid, sanitised
 *    programs), calls go straight through too.
 *  - errno is the program's: whatever an interposer does around the real call leaves it
 *    as the real call set it.
 *  - A child of any kind of fork finds what inside_wiped() gave zeroed, and begins anew
 *    at its first captured call. The child of a vfork has its parent's memory and counts
 *    as its parent, which waits meanwhile.
 *
 *     inside.c    start-up, fork, threads, zones, the functions behind ours
 *     modules.c   which code lies where, so that frames can be resolved later
 *     unwind*.c   the stack of the calling thread
 *     heap*.c     malloc family (tables "heap")
 *     maps.c      mmap family (counted with the heap; files told to io_mapped())
 *     io*.c       files and sockets (tables "io")
 *     crash.c     last words of a process that faults (crash-PID.fault)
 *     timer*.c    samples of stacks where perf_event is forbidden (timer-….ring)
 *
 * An interposed function looks like this:
 *
 *     EXPORTED int close(int fd)
 *     {
 *         if (inside_busy || !inside_ready())
 *             return real_close(fd);
 *         ...
 *     }
 */
#ifndef SONDE_CAPTURE_INTERPOSE_INSIDE_H
#define SONDE_CAPTURE_INTERPOSE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sonde/sonde.h>

#include "trace/control.h"
#include "trace/tables.h"

#define EXPORTED     __attribute__((visibility("default")))
#define LIKELY(x)    __builtin_expect(!!(x), 1)
#define UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))

/* > 0: this thread is in our code. */
extern __thread uint32_t inside_busy __attribute__((tls_model("initial-exec")));

/* ---- Whether to capture -----------------------------------------------------------
 *
 * inside_ready(): whether this process is to be captured. The first call in a process
 * (also in the child of any kind of fork) sets things up on a cold path. May be called
 * from malloc in a signal handler: it never waits for a lock its own thread holds. */
enum inside_state { INSIDE_UNKNOWN, INSIDE_ON, INSIDE_OFF };
enum { INSIDE_THREADS = 1024 };

/* In memory that a forked child finds zeroed; before start-up, in a static one. */
struct inside_shared {
    uint32_t state; /* enum inside_state, atomic */
    uint32_t lock;
    const void *holder[INSIDE_THREADS]; /* of a thread's number; atomic */
};
extern struct inside_shared *inside_shared;

bool inside_arm(void); /* the cold path */

static inline bool inside_ready(void)
{
    const uint32_t state = __atomic_load_n(&inside_shared->state, __ATOMIC_ACQUIRE);
    return state == INSIDE_ON || (state == INSIDE_UNKNOWN && inside_arm());
}

/* What the program is built with, in words; NULL: no sanitizer. Until our constructor has
 * run, such a process must be passed through without a single call of libc. */
const char *inside_sanitizer(void);
/* Told once, when a process is left alone although it is part of a run: leaves a note for
 * the report. */
void heap_stays_out(const char *why) __attribute__((weak));
/* Told once, when this library's constructor runs in a process that is captured. */
void heap_start(void) __attribute__((weak));

/* The run directory and its control file; valid while inside_ready(). */
const char *inside_dir(void);
struct control *inside_control(void);
/* Whether `what` ("alloc", "io") is in the list SONDE_TRACE: every event. */
bool inside_traces(const char *what);

/* Zeroed memory that a child finds zeroed again (MADV_WIPEONFORK; on kernels before
 * 4.14 fork() alone is caught). For pointers to what belongs to this process alone:
 * mapped files, locks, threads' state. NULL: none to be had. */
void *inside_wiped(size_t bytes);

/* Spin locks in wiped memory. `false`: this thread is inside already (a signal handler
 * came between), do without. While one is held the thread is busy. */
bool inside_lock(uint32_t *lock);
void inside_unlock(uint32_t *lock);

/* Of a clock without a system call, to a tick of the kernel's. */
uint64_t inside_now_ms(void);

/* The program has given up system calls (sealed.c): make none any more. Either half may
 * define its own to be told, before it happens. */
extern bool inside_sealed;
void heap_sealed(void) __attribute__((weak));
void io_sealed(void) __attribute__((weak));
void timer_sealed(void) __attribute__((weak));

/* The real-time signal that sampling uses (timer_sample.c); 0: none. Whoever stands in
 * front of functions of signals keeps it out of the program's sight. */
extern int timer_signal;
/* The program sets an action of its own for it: true when it should not get through,
 * because it would be no handler but the end of the process. */
bool timer_signal_wanted(bool has_handler);
bool timer_is_handler(const void *handler);

/* ---- Threads ---------------------------------------------------------------------- */

/* A dense number of the calling thread, below INSIDE_THREADS, kept for as long as it
 * lives and reused after; INSIDE_THREADS when all are taken or the thread is about to
 * end (use atomic adds on a shared slot then). */
uint32_t inside_thread(void);
/* The kernel's number of it, after inside_thread(). */
uint32_t inside_tid(void);
/* Told when a thread gives its number back, on that thread, busy. Either half may
 * define its own. */
void heap_thread_ended(uint32_t thread) __attribute__((weak));
void io_thread_ended(uint32_t thread) __attribute__((weak));

/* The innermost open zone of the calling thread as the site's number in this process's
 * trace; 0: none. */
static inline uint32_t inside_zone(void)
{
    const struct sonde_lane *lane = sonde_lane_;
    uint32_t zone = 0;
    if (lane && lane->depth) {
        const uint32_t depth = lane->depth;
        zone = lane->open[depth <= SONDE_OPEN_ZONES ? depth - 1 : SONDE_OPEN_ZONES - 1];
    }
    return zone >> 1;
}
/* Steps the process has begun so far (sonde_step()); 0 without a recorder. */
uint64_t inside_step(void);

/* ---- The functions behind ours ----------------------------------------------------
 *
 * The function that would be called without us; NULL when there is none. dlsym may
 * itself allocate: while inside_resolving is set on a thread, the malloc family serves
 * it from a small arena. Keep the result; each look-up costs microseconds. */
extern __thread uint32_t inside_resolving __attribute__((tls_model("initial-exec")));
void *inside_real(const char *name);

/* Sets `pointer`, a static function pointer, at first use. */
#define INSIDE_REAL(pointer, name)                                                     \
    do {                                                                               \
        if (UNLIKELY(!__atomic_load_n(&(pointer), __ATOMIC_RELAXED)))                  \
            __atomic_store_n(&(pointer), (__typeof__(pointer))inside_real(name),       \
                             __ATOMIC_RELAXED);                                        \
    } while (0)

/* Bytes this library reads by raw system calls: the kernel counts them as the program's,
 * whoever compares with its count takes them off. */
extern uint64_t inside_own_bytes;

/* ---- Mappings of files ------------------------------------------------------------
 *
 * maps.c stands in front of mmap; the half that looks at files may define these. Called
 * after the call succeeded, not busy, errno saved. */
void io_mapped(void *at, size_t len, int prot, int flags, int fd, off_t offset)
    __attribute__((weak));
void io_unmapped(void *at, size_t len) __attribute__((weak));
/* Called before the pages go, whether or not the call will succeed. */
void io_unmapping(void *at, size_t len) __attribute__((weak));

/* ---- Stacks and modules -----------------------------------------------------------
 *
 * inside_stack(): return addresses of the caller's stack, innermost first, without
 * allocation or locks; at most `max`. Frames of this library are left out.
 * inside_modules(): rows of struct module_row (trace/module_rows.h) for the modules
 * that hold these addresses, unless they are in the table already. Give each file of
 * tables a struct of its own, in wiped memory. */
unsigned inside_stack(uint64_t *ret_frames, unsigned max);
/* The same from the registers a signal handler was given, for the handler of any signal:
 * it reads the stack only between sp and stack_end and does not look up mappings. */
struct inside_registers {
    uint64_t pc, sp, fp, stack_end;
};
unsigned inside_stack_from(const struct inside_registers *from, uint64_t *ret_frames,
                           unsigned max, bool *ret_whole);

/* For who walks at every call: programs come by the same stacks over and over. A walk is
 * determined by the registers it began with and the words it read; when all of them are
 * what they were, so is the stack. Gives the walk with the `answer` the caller put there
 * (count 0), or walks and gives a fresh one to put it in; NULL: no stack. In memory of
 * the thread's own. */
enum { INSIDE_WALK_LOADS = 80, INSIDE_WALK_SETS = 16, INSIDE_WALK_WAYS = 4 };
struct inside_walk {
    uint64_t sp, fp;
    uint64_t answer; /* the caller's; 0: none yet */
    uint32_t count;
    bool uses_fp;
    struct {
        uint64_t at, value;
    } load[INSIDE_WALK_LOADS];
};
struct inside_walks {
    uint32_t next;
    struct inside_walk walk[INSIDE_WALK_SETS][INSIDE_WALK_WAYS];
};
struct inside_walk *inside_stack_again(struct inside_walks *walks, uint64_t *ret_frames,
                                       unsigned max, unsigned *ret_count);

enum { INSIDE_MODULES = 512 };
struct inside_modules {
    struct tables *tables;
    unsigned table;
    uint32_t count;
    uint64_t looked_ms; /* when /proc/self/maps was last read, and how often */
    uint32_t looks;
    uint32_t lock;
    bool missed; /* a frame was unknown while it was too early to look again */
    struct {
        uint64_t start, end;
    } known[INSIDE_MODULES];
};
void inside_modules(struct inside_modules *modules, const uint64_t *frames,
                    unsigned count);
/* Looking a stack's frames up takes microseconds: once for each stack will do, and again
 * while this says so. */
static inline bool inside_modules_missed(const struct inside_modules *modules)
{
    return __atomic_load_n(&modules->missed, __ATOMIC_RELAXED);
}
/* Copies the lines of /proc/self/maps that have code, as many as fit; their length. */
size_t inside_code_lines(char *ret_text, size_t size);
/* The mapping that holds an address; tens of microseconds. */
bool inside_mapping(uint64_t address, uint64_t *ret_start, uint64_t *ret_end);

#endif
