// link: all
/* sample.c: what sampling stacks costs, the program and the supervisor.
 *
 *     sample [who=sonde|perf|self] [rate=99] [depth=20] [passes=10] [ms=500] [output=DIR]
 *
 * A child does the same work again and again; every other time it is sampled. The ratio
 * of CPU times is what the program pays, the sampler's CPU time over the program's its
 * share of a core. `perf`: `perf record --call-graph dwarf` on the same child. `self`: only
 * the work, once, for whoever samples the process itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "capture/sample/sample.h"
#include "measure.h"

static volatile uint64_t sink;

/* No frame pointers, some registers to restore: what unwinding has to cope with. */
__attribute__((noinline)) static uint64_t dig(unsigned depth, uint64_t n)
{
    volatile uint64_t room[12];
    room[n % 12] = n;
    if (depth > 0)
        return dig(depth - 1, n) + room[n % 12];
    uint64_t x = n;
    for (uint64_t i = 0; i < n; i++) {
        x = x * 6364136223846793005ULL + 1;
        OPAQUE();
    }
    return x;
}

static void __attribute__((noreturn))
be_worker(int in, int out, unsigned depth, unsigned long loops)
{
    char go;
    while (read(in, &go, 1) == 1) {
        double answer[2] = { clock_ns(CLOCK_THREAD_CPUTIME_ID),
                             clock_ns(CLOCK_MONOTONIC) };
        for (unsigned i = 0; i < 100; i++)
            sink += dig(depth, loops / 100);
        answer[0] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - answer[0];
        answer[1] = clock_ns(CLOCK_MONOTONIC) - answer[1];
        if (write(out, answer, sizeof answer) != sizeof answer)
            break;
    }
    _exit(0);
}

struct worker {
    pid_t pid;
    int to, from;
};

static struct worker worker_start(unsigned depth, unsigned long loops)
{
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        die("pipe", strerror(errno));
    struct worker w = { fork(), to[1], from[0] };
    if (w.pid == 0) {
        (void)close(to[1]);
        pin(0, 1);
        be_worker(to[0], from[1], depth, loops);
    }
    return w;
}

/* One portion of work; meanwhile `sampler` (may be NULL) is ticked. Its CPU ns. */
static double work(const struct worker *w, struct sampler *sampler, double *ret_wall_ns)
{
    double answer[2];
    if (write(w->to, "g", 1) != 1)
        die("worker", "gone");
    for (;;) {
        const uint64_t now = (uint64_t)clock_ns(CLOCK_MONOTONIC);
        const uint64_t next = sampler ? sampler_tick(sampler, now) : 0;
        struct pollfd p = { .fd = w->from, .events = POLLIN };
        if (poll(&p, 1, sampler ? (int)(next / 1000000) + 1 : -1) > 0)
            break;
    }
    if (read(w->from, answer, sizeof answer) != sizeof answer)
        die("worker", "gone");
    *ret_wall_ns = answer[1];
    return answer[0];
}

struct sums {
    double off[MAX_PASSES], on[MAX_PASSES], share[MAX_PASSES];
    unsigned count;
};

/* ---- Ours --------------------------------------------------------------------------- */

static void pass_sonde(const struct worker *w, unsigned rate, const char *dir,
                       struct sums *s)
{
    const struct sampler_options options = { .pid = w->pid,
                                             .rate_hz = rate,
                                             .dir = dir };
    struct sampler *sampler;
    const char *why;
    double wall;
    s->off[s->count] = work(w, NULL, &wall);
    if (sampler_open(&options, &sampler, &why) < 0)
        die("sampling", why);
    const double before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    s->on[s->count] = work(w, sampler, &wall);
    s->share[s->count] = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / s->on[s->count];
    s->count++;
    sampler_close(sampler);
}

/* ---- perf ---------------------------------------------------------------------------- */

static pid_t start_perf(pid_t pid, unsigned rate, const char *dir)
{
    char of[16], hz[16], output[4200];
    (void)snprintf(of, sizeof of, "%d", (int)pid);
    (void)snprintf(hz, sizeof hz, "%u", rate);
    (void)snprintf(output, sizeof output, "%s/perf.data", dir);
    const pid_t perf = fork();
    if (perf == 0) {
        const int null = open("/dev/null", O_RDWR);
        (void)dup2(null, 1);
        (void)dup2(null, 2);
        (void)execlp("perf", "perf", "record", "-e", "task-clock", "-F", hz,
                     "--call-graph", "dwarf,16384", "-p", of, "-o", output,
                     (char *)NULL);
        _exit(127);
    }
    return perf;
}

static void pass_perf(const struct worker *w, unsigned rate, const char *dir,
                      struct sums *s)
{
    double wall;
    int status;
    struct rusage used;
    s->off[s->count] = work(w, NULL, &wall);
    const pid_t perf = start_perf(w->pid, rate, dir);
    (void)usleep(700000);
    s->on[s->count] = work(w, NULL, &wall);
    (void)kill(perf, SIGINT);
    if (wait4(perf, &status, 0, &used) != perf ||
        (WIFEXITED(status) && WEXITSTATUS(status) == 127))
        die("perf", "not installed");
    const double cpu = ((double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec) *
                           1e9 +
                       ((double)used.ru_utime.tv_usec + (double)used.ru_stime.tv_usec) *
                           1e3;
    s->share[s->count] = cpu / s->on[s->count];
    s->count++;
}

static int only_work(unsigned depth, unsigned long loops)
{
    double ns[2] = { 0, 0 };
    pin(0, 1);
    for (unsigned pass = 0; pass < 2; pass++) { /* the first is warmth */
        const double before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        for (unsigned i = 0; i < 100; i++)
            sink += dig(depth, loops / 100);
        ns[pass] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    }
    put_numbers("work_ns", ns + 1, 1);
    put_end();
    return 0;
}

int main(int argc, char **argv)
{
    (void)argc;
    static struct sums sums;
    const unsigned rate = (unsigned)argument_number(argv, "rate", 99);
    const unsigned passes = (unsigned)argument_number(argv, "passes", 10);
    const unsigned long ms = argument_number(argv, "ms", 500);
    const char *dir = argument(argv, "output", "sample.run");
    const bool ours = strcmp(argument(argv, "who", "sonde"), "sonde") == 0;
    if (strcmp(argument(argv, "who", "sonde"), "self") == 0)
        return only_work((unsigned)argument_number(argv, "depth", 20), ms * 600000);
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        die(dir, strerror(errno));
    const struct worker w = worker_start((unsigned)argument_number(argv, "depth", 20),
                                         ms * 600000);
    pin(0, 0);
    double wall;
    (void)work(&w, NULL, &wall); /* warm */
    for (unsigned i = 0; i < passes && i < MAX_PASSES; i++)
        (ours ? pass_sonde : pass_perf)(&w, rate, dir, &sums);
    (void)kill(w.pid, SIGKILL);
    put_numbers("off_ns", sums.off, sums.count);
    put_numbers("on_ns", sums.on, sums.count);
    put_numbers("share", sums.share, sums.count);
    put_end();
    return 0;
}
