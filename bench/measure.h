/* measure.h: what all benchmark programs share, peers' programs too.
 *
 * A benchmark program measures one variant in one process and prints one JSON object;
 * tools/bench runs them and makes the tables. Arguments are KEY=VALUE in any order.
 * Floor and subject alternate inside the process, pass by pass: what disturbs the
 * machine disturbs both. Needs libc alone.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The compiler may keep nothing in registers across this, as across any real work. */
#define OPAQUE() __asm__ volatile("" ::: "memory")
/* A measured loop: of its own, and where it does not straddle cache lines by luck. */
#define MEASURED __attribute__((noinline, aligned(64)))

/* ---- Arguments ------------------------------------------------------------- */

static inline const char *argument(char **argv, const char *key, const char *fallback)
{
    const size_t len = strlen(key);
    for (char **a = argv + 1; *a; a++)
        if (strncmp(*a, key, len) == 0 && (*a)[len] == '=')
            return *a + len + 1;
    return fallback;
}

static inline unsigned long argument_number(char **argv, const char *key,
                                            unsigned long fallback)
{
    const char *text = argument(argv, key, NULL);
    return text ? strtoul(text, NULL, 10) : fallback;
}

_Noreturn static inline void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

/* ---- Clocks and cores ------------------------------------------------------ */

static inline double clock_ns(clockid_t clock)
{
    struct timespec ts;
    (void)clock_gettime(clock, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Pins a process, or with 0 the calling thread and all it creates, to the n-th core
 * we may use; to the last one when there are fewer. */
static inline void pin(pid_t pid, unsigned nth)
{
    static cpu_set_t allowed;
    static bool known;
    if (!known)
        known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed)) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            if (nth-- == 0)
                break;
        }
    (void)sched_setaffinity(pid, sizeof one, &one);
}

/* Waits until the threads of this process have nothing to do, 3 s at most. */
static inline void settle(void)
{
    const struct timespec nap = { 0, 10000000 };
    double before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < 300; i++) {
        (void)nanosleep(&nap, NULL);
        const double now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        if (now - before < 300e3)
            return;
        before = now;
    }
}

/* ---- Memory ---------------------------------------------------------------- */

/* Resident KiB: memory of our own, and pages of mapped files. */
struct resident {
    long own_kb, file_kb;
};

static inline struct resident resident_now(void)
{
    struct resident r = { 0, 0 };
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    long kb;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "RssAnon: %ld", &kb) == 1)
            r.own_kb += kb;
        else if (sscanf(line, "RssFile: %ld", &kb) == 1 ||
                 sscanf(line, "RssShmem: %ld", &kb) == 1)
            r.file_kb += kb;
    }
    if (f)
        (void)fclose(f);
    return r;
}

/* ---- Passes ---------------------------------------------------------------- */

typedef void loop_fn(unsigned long n);
enum { MAX_PASSES = 101 };

/* One run of a loop, nanoseconds per iteration. Wall time is without the time in which
 * the thread was ready and something else had the core; a thread that sleeps is not
 * ready: waiting for a drainer is a cost, being robbed of the core is not.
 * `robbed` is that time as a share of all; `starved` is the same of its helpers, which
 * it may have had to wait for. */
struct timing {
    double ns, cpu_ns, robbed, starved;
};

/* Pass by pass. */
struct passes {
    unsigned count;
    struct timing floor[MAX_PASSES], subject[MAX_PASSES];
    /* CPU time of the whole process per zone, until its helpers were quiet. */
    double process_cpu_ns[MAX_PASSES];
};

/* How long a task was ready without a core so far; 0 where the kernel does not say. */
static inline double ready_ns(const char *path)
{
    double running = 0, ready = 0;
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%lf %lf", &running, &ready) != 2)
        ready = 0;
    if (f)
        (void)fclose(f);
    return ready;
}

/* The same for all other threads of the process, and its parent when it is one of the
 * helpers. */
static inline double helpers_ready_ns(void)
{
    double sum = 0;
    char path[300];
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks));)
        if (e->d_name[0] != '.' && atoi(e->d_name) != gettid()) {
            (void)snprintf(path, sizeof path, "/proc/self/task/%s/schedstat",
                           e->d_name);
            sum += ready_ns(path);
        }
    if (tasks)
        (void)closedir(tasks);
    (void)snprintf(path, sizeof path, "/proc/%d/schedstat", (int)getppid());
    return sum + ready_ns(path);
}

static inline struct timing time_loop(loop_fn *loop, unsigned long n)
{
    const double helpers = helpers_ready_ns();
    const double ready = ready_ns("/proc/thread-self/schedstat");
    const double cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const double start = clock_ns(CLOCK_MONOTONIC);
    loop(n);
    const double wall = clock_ns(CLOCK_MONOTONIC) - start;
    const double cpu_after = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const double robbed = ready_ns("/proc/thread-self/schedstat") - ready;
    return (struct timing){
        .ns = (wall - robbed) / (double)n,
        .cpu_ns = (cpu_after - cpu) / (double)n,
        .robbed = robbed / wall,
        .starved = (helpers_ready_ns() - helpers) / wall,
    };
}

/* `floor` and `subject` in turn, n iterations each. */
static inline void alternate(struct passes *p, unsigned count, unsigned long n,
                             loop_fn *floor, loop_fn *subject)
{
    p->count = count < MAX_PASSES ? count : MAX_PASSES;
    for (unsigned i = 0; i < p->count; i++) {
        p->floor[i] = time_loop(floor, n);
        const double before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        p->subject[i] = time_loop(subject, n);
        settle();
        p->process_cpu_ns[i] = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before) /
                               (double)n;
    }
}

/* ---- Output: members of one JSON object ------------------------------------ */

static inline void put_key(const char *key)
{
    static bool more;
    (void)printf("%s\"%s\": ", more ? ", " : "{", key);
    more = true;
}

static inline void put_number(const char *key, double value)
{
    put_key(key);
    (void)printf("%.17g", value);
}

static inline void put_numbers(const char *key, const double *values, unsigned count)
{
    put_key(key);
    for (unsigned i = 0; i < count; i++)
        (void)printf("%s%.6g", i ? ", " : "[", values[i]);
    (void)printf("]");
}

static inline void put_timings(const char *key, const struct timing *t, unsigned count)
{
    put_key(key);
    for (unsigned i = 0; i < count; i++)
        (void)printf("%s{\"ns\": %.6g, \"cpu_ns\": %.6g, \"robbed\": %.4f, "
                     "\"starved\": %.4f}",
                     i ? ", " : "[", t[i].ns, t[i].cpu_ns, t[i].robbed, t[i].starved);
    (void)printf("]");
}

static inline void put_passes(const struct passes *p)
{
    put_timings("floor", p->floor, p->count);
    put_timings("subject", p->subject, p->count);
    put_numbers("process_cpu_ns", p->process_cpu_ns, p->count);
}

/* Growth since `before`, and the most there ever was, in KiB. */
static inline void put_growth(struct resident before)
{
    const struct resident now = resident_now();
    put_number("own_kb", (double)(now.own_kb - before.own_kb));
    put_number("file_kb", (double)(now.file_kb - before.file_kb));
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    put_number("peak_kb", (double)usage.ru_maxrss);
}

static inline void put_end(void)
{
    (void)printf("}\n");
}

#endif
