/* watch.c: rounds over processes and threads.
 *
 * The scheduler's own account of a thread (schedstat) tells for the price of one pread
 * whether it ran since the last look. The kernel brings it up to date at each tick and
 * each switch, so a thread counts as idle only when its account has stood still for
 * longer than two ticks.
 *
 * What it ran since then is not the stack's that is seen now: a thread that computes for
 * 40 ms and sleeps for 10 is found asleep in every fifth look, and has run before each of
 * them. A stack that is found running stands for the whole time since the last look, one
 * that is found asleep for none: looks come at random, so they find a thread running
 * there as often as it does run there.
 *
 * On a busy machine a thread that could run mostly waits for a core, and it does not wait
 * just anywhere: the kernel takes the core away where it accounts for time, at ticks and in
 * calls that ask for a thread's CPU clock. To say that it ran there would charge those who
 * look at their clock for everybody's work. Whether it has a core now is not to be read
 * anywhere, but it has one when it was put on one once more than it was taken off. Counting
 * costs another file, so that is asked only of threads that do wait for cores.
 */
#include "capture/python/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/moment.h"
#include "capture/python/book.h"
#include "capture/python/python.h"
#include "trace/process.h"

enum { PROCESSES_MAX = 256, THREADS_MAX = PYTHON_THREADS, FIRST_RETRY_NS = 20000000 };
static const uint64_t LAST_RETRY_NS = 5000000000;
static const uint64_t STILL_NS = 9000000;   /* two ticks of a kernel with HZ=250 */
static const uint64_t PRIOR_NS = 200000000; /* until so much is known, "all of it" */
enum { MUCH_DELAY = 50 }; /* waited for a core for more than 1/50 of the time */

struct thread {
    uint32_t tid;
    int fd;                             /* of its schedstat; −1 none */
    int call_fd;                        /* of syscall: what it waits in */
    int status_fd;                      /* opened when it is needed; −1 none */
    uint64_t run_ns, ran_ns, looked_ns; /* account; when it last moved; last look */
    uint64_t delay_ns;                  /* account: waited for a core */
    int64_t put_on;                     /* … and times it was given one */
    int64_t off_core;   /* put_on less times taken off, when it has none */
    bool waits, waited; /* for cores, since the last look; before that */
    uint64_t cpu_ns;    /* of this look */
    uint64_t found_ns;  /* found running, over all looks */
    uint64_t waits_for; /* address of the futex it sleeps on; 0: none */
    uint32_t task, path, slept_in;
    bool has_path, idle, was_idle, present, runs;
    struct pystack_task_row *row;
};

struct process {
    uint32_t pid;
    uint64_t start_ticks;
    bool present, hopeless;
    uint32_t flags; /* of its rows: enum pystack_task_flags */
    uint64_t retry_ns, wait_ns;
    struct python *python;
    struct book_codes codes;
    struct thread *threads; /* THREADS_MAX; NULL until it is Python */
    size_t thread_count;
};

struct watch {
    struct book *book;
    struct process *processes; /* PROCESSES_MAX */
    size_t count;
    uint64_t now_ns;
    struct python_sample sample;
    struct process *current; /* whose threads `wants` is asked about */
};

int watch_new(const char *dir, struct control *control, uint64_t period_ns,
              struct watch **ret_watch)
{
    struct watch *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->processes = calloc(PROCESSES_MAX, sizeof *w->processes);
    int rc = w->processes ? book_new(dir, control, period_ns, &w->book) : -ENOMEM;
    if (rc < 0) {
        watch_free(w);
        return rc;
    }
    *ret_watch = w;
    return 0;
}

/* ---- Threads ------------------------------------------------------------------------ */

struct account {
    uint64_t run_ns, delay_ns;
    int64_t put_on;
};

/* All 0 when it cannot be read. */
static struct account read_account(int fd)
{
    char text[64], *end = text;
    const ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : 0;
    text[n > 0 ? n : 0] = '\0';
    const uint64_t run = strtoull(end, &end, 10), delay = strtoull(end, &end, 10);
    return (struct account){ run, delay, strtoll(end, NULL, 10) };
}

/* How often a core was taken from it, or given up; −1: not known. */
static int64_t read_taken_off(int fd)
{
    static const char word[] = "voluntary_ctxt_switches:"; /* and "nonvoluntary_…" */
    char text[4096];
    const ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : 0;
    text[n > 0 ? n : 0] = '\0';
    const char *first = strstr(text, word);
    const char *second = first ? strstr(first + sizeof word, word) : NULL;
    return second ? strtoll(first + sizeof word - 1, NULL, 10) +
                        strtoll(second + sizeof word - 1, NULL, 10)
                  : -1;
}

static int open_task(uint32_t pid, uint32_t tid, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%u/task/%u/%s", pid, tid, name);
    return tid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

static void thread_close(struct thread *t)
{
    if (t->fd >= 0)
        (void)close(t->fd);
    if (t->call_fd >= 0)
        (void)close(t->call_fd);
    if (t->status_fd >= 0)
        (void)close(t->status_fd);
    t->fd = t->call_fd = t->status_fd = -1;
}

static struct thread *thread_new(struct watch *w, struct process *p, uint32_t tid)
{
    char name[32];
    if (p->thread_count == THREADS_MAX)
        return NULL;
    struct thread *t = &p->threads[p->thread_count];
    *t = (struct thread){ .tid = tid, .looked_ns = w->now_ns, .status_fd = -1 };
    t->fd = open_task(p->pid, tid, "schedstat");
    t->call_fd = open_task(p->pid, tid, "syscall");
    const struct account a = read_account(t->fd);
    t->run_ns = a.run_ns;
    t->delay_ns = a.delay_ns;
    t->ran_ns = w->now_ns;
    process_task_name(p->pid, tid, name, sizeof name);
    t->row = book_task(w->book, p->pid, tid, name, p->flags, &t->task);
    if (!t->row) {
        thread_close(t);
        return NULL;
    }
    p->thread_count++;
    return t;
}

static struct thread *thread_of(struct watch *w, struct process *p, uint32_t tid)
{
    for (size_t i = 0; i < p->thread_count; i++)
        if (p->threads[i].tid == tid)
            return &p->threads[i];
    return thread_new(w, p, tid);
}

/* Does it run, and if not, what does it wait for? The kernel says "running", or the call
 * and its arguments. Unknown (no right to ask) is taken for running. */
static void look_at_call(struct thread *t)
{
    char text[160];
    unsigned long long address;
    long call;
    const ssize_t n = t->call_fd >= 0 ? pread(t->call_fd, text, sizeof text - 1, 0)
                                      : -1;
    text[n > 0 ? n : 0] = '\0';
    t->runs = n <= 0 || text[0] == 'r';
    t->waits_for = 0;
    if (!t->runs && sscanf(text, "%ld %llx", &call, &address) == 2 && call == SYS_futex)
        t->waits_for = address;
}

/* Of those who could run: does it? When it sleeps, the difference of the two counts is what
 * it is without a core: 0, but for rare switches that the kernel counts only on one side. */
static void look_at_core(const struct process *p, struct thread *t)
{
    if (!t->waits && !t->waited)
        return;
    if (t->status_fd < 0)
        t->status_fd = open_task(p->pid, t->tid, "status");
    const int64_t taken_off = read_taken_off(t->status_fd);
    if (taken_off < 0)
        return;
    if (!t->runs)
        t->off_core = t->put_on - taken_off;
    else
        t->runs = t->put_on - taken_off > t->off_core;
}

/* Accounts for the time since the last look, before the stack is known. */
static void look_at_account(struct watch *w, struct thread *t)
{
    const struct account a = read_account(t->fd);
    t->cpu_ns = a.run_ns > t->run_ns ? a.run_ns - t->run_ns : 0;
    if (a.run_ns != t->run_ns || t->fd < 0)
        t->ran_ns = w->now_ns;
    t->waited = t->waits;
    t->waits = (a.delay_ns - t->delay_ns) * MUCH_DELAY > w->now_ns - t->looked_ns;
    t->run_ns = a.run_ns;
    t->delay_ns = a.delay_ns;
    t->put_on = a.put_on;
    t->was_idle = t->idle && t->has_path;
    t->slept_in = t->path;
    t->idle = w->now_ns - t->ran_ns > STILL_NS;
}

/* Asked by python_sample() for every thread: is its stack to be read? */
static bool wants(void *arg, uint32_t tid)
{
    struct watch *w = arg;
    struct thread *t = thread_of(w, w->current, tid);
    if (!t)
        return false;
    t->present = true;
    look_at_account(w, t);
    t->runs = false;
    if (t->idle && t->has_path)
        return false;
    look_at_call(t);
    look_at_core(w->current, t);
    return true;
}

/* ---- Time --------------------------------------------------------------------------- */

static void add(uint64_t *sum, uint64_t ns)
{
    __atomic_store_n(sum, *sum + ns, __ATOMIC_RELAXED);
}

/* The part of the time since the last look for which a thread that is found running ran,
 * as its account has it on the whole. */
static uint64_t cpu_of_look(struct thread *t, uint64_t wall)
{
    t->found_ns += wall;
    if (!t->row->cpu_ns)
        return wall; /* a kernel without accounts */
    const double part = (double)(t->row->cpu_ns + PRIOR_NS) /
                        (double)(t->found_ns + PRIOR_NS);
    return (uint64_t)((double)wall * part);
}

static void account(struct watch *w, struct thread *t, bool known)
{
    uint64_t wall = w->now_ns - t->looked_ns;
    struct pystack_info_row *info = book_info(w->book);
    add(&t->row->cpu_ns, t->cpu_ns);
    const uint64_t cpu = t->runs ? cpu_of_look(t, wall) : 0;
    t->looked_ns = w->now_ns;
    add(&t->row->wall_ns, wall);
    if (t->was_idle && !t->idle && wall > t->cpu_ns) {
        /* It slept on and has run since it woke: so long is the new stack's. */
        book_add(w->book, t->slept_in, t->task, wall - t->cpu_ns, 0);
        wall = t->cpu_ns;
    }
    add(&info->samples, 1);
    if (!known) {
        add(&t->row->invalid_ns, wall);
        return;
    }
    book_add(w->book, t->path, t->task, wall, cpu);
}

static void account_lock(const struct python *python, const struct python_sample *s,
                         const struct python_thread *seen, struct thread *t,
                         uint64_t wall)
{
    if (seen->has_gil)
        add(&t->row->gil_ns, wall);
    /* Those who wait for it wake every few milliseconds to ask for it, so they are never
     * taken for idle. */
    else if (s->gil_held && t->waits_for && python_is_lock(python, t->waits_for))
        add(&t->row->gil_wait_ns, wall);
    if (seen->has_gil && s->collecting)
        add(&t->row->gc_ns, wall);
}

static void take_stack(struct watch *w, struct process *p,
                       const struct python_thread *seen)
{
    struct thread *t = thread_of(w, p, seen->tid);
    struct pystack_info_row *info = book_info(w->book);
    if (!t)
        return;
    account_lock(p->python, &w->sample, seen, t, w->now_ns - t->looked_ns);
    if (seen->valid) {
        t->path = book_path(w->book, p->python, &p->codes, seen);
        t->has_path = true;
        add(&info->cut, seen->cut);
    } else {
        add(&info->invalid, 1);
    }
    account(w, t, seen->valid);
}

static void let_threads_go(struct process *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->thread_count; i++) {
        struct thread *t = &p->threads[i];
        if (!t->present)
            thread_close(t);
        else
            p->threads[kept++] = *t;
    }
    p->thread_count = kept;
}

/* ---- Processes ---------------------------------------------------------------------- */

static void process_release(struct process *p)
{
    for (size_t i = 0; p->threads && i < p->thread_count; i++)
        thread_close(&p->threads[i]);
    free(p->threads);
    python_free(p->python);
    book_codes_release(&p->codes);
}

static void forget_python(struct process *p)
{
    const struct process again = { .pid = p->pid,
                                   .start_ticks = p->start_ticks,
                                   .present = p->present };
    process_release(p);
    *p = again;
}

/* Tries to see a Python in the process. */
static void try_process(struct watch *w, struct process *p)
{
    struct pystack_info_row *info = book_info(w->book);
    const char *why = "";
    if (p->hopeless || w->now_ns < p->retry_ns)
        return;
    int rc = python_open((pid_t)p->pid, &p->python, &why);
    if (rc == 0) {
        p->threads = calloc(THREADS_MAX, sizeof *p->threads);
        if (!p->threads) {
            forget_python(p);
            p->hopeless = true;
            return;
        }
        add(&info->processes, 1);
        p->flags = process_is_forked((pid_t)p->pid) ? PYSTACK_TASK_FORKED : 0;
        if (!info->minor)
            info->minor = python_minor(p->python);
        return;
    }
    if (rc == SONDE_E_UNSUPPORTED || rc == -EPERM || rc == -EACCES) {
        p->hopeless = true;
        add(&info->unknown, 1);
        return;
    }
    p->wait_ns = p->wait_ns ? p->wait_ns * 2 : FIRST_RETRY_NS;
    if (p->wait_ns > LAST_RETRY_NS)
        p->wait_ns = LAST_RETRY_NS;
    p->retry_ns = w->now_ns + p->wait_ns;
}

static void look_at_process(struct watch *w, struct process *p)
{
    struct pystack_info_row *info = book_info(w->book);
    if (!p->python)
        try_process(w, p);
    if (!p->python)
        return;
    w->current = p;
    for (size_t i = 0; i < p->thread_count; i++)
        p->threads[i].present = false;
    const int rc = python_sample(p->python, w->now_ns, wants, w, &w->sample);
    if (rc < 0) {
        if (rc != -EAGAIN)
            forget_python(p); /* gone, or another program by exec */
        return;
    }
    add(&info->rounds, 1);
    for (size_t i = 0; i < w->sample.count; i++)
        take_stack(w, p, &w->sample.threads[i]);
    for (size_t i = 0; i < p->thread_count; i++)
        if (p->threads[i].present && p->threads[i].looked_ns != w->now_ns) {
            add(&info->unchanged, 1);
            account(w, &p->threads[i], true);
        }
    let_threads_go(p);
}

static struct process *process_of(struct watch *w, const struct watch_process *wanted)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->processes[i].pid == wanted->pid &&
            w->processes[i].start_ticks == wanted->start_ticks)
            return &w->processes[i];
    if (w->count == PROCESSES_MAX)
        return NULL;
    struct process *p = &w->processes[w->count++];
    *p = (struct process){ .pid = wanted->pid, .start_ticks = wanted->start_ticks };
    return p;
}

static void let_processes_go(struct watch *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->count; i++) {
        if (!w->processes[i].present)
            process_release(&w->processes[i]);
        else
            w->processes[kept++] = w->processes[i];
    }
    w->count = kept;
}

void watch_look(struct watch *w, const struct watch_process *processes, size_t count,
                uint64_t now_ns)
{
    const uint64_t before = moment_ns(CLOCK_THREAD_CPUTIME_ID);
    w->now_ns = now_ns;
    for (size_t i = 0; i < w->count; i++)
        w->processes[i].present = false;
    for (size_t i = 0; i < count; i++) {
        struct process *p = process_of(w, &processes[i]);
        if (p) {
            p->present = true;
            look_at_process(w, p);
        }
    }
    let_processes_go(w);
    add(&book_info(w->book)->cost_ns, moment_ns(CLOCK_THREAD_CPUTIME_ID) - before);
}

bool watch_is_idle(const struct watch *w)
{
    for (size_t i = 0; i < w->count; i++)
        for (size_t t = 0; t < w->processes[i].thread_count; t++)
            if (!w->processes[i].threads[t].idle)
                return false;
    return true;
}

size_t watch_count(const struct watch *w)
{
    size_t count = 0;
    for (size_t i = 0; i < w->count; i++)
        count += w->processes[i].python != NULL;
    return count;
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->count; i++)
        process_release(&w->processes[i]);
    free(w->processes);
    book_free(w->book);
    free(w);
}
