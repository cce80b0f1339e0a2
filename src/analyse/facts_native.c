/* facts_native.c: facts from sampled native stacks: which kind of code the CPU time is
 * in, told by the names of functions and libraries. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/fact_series.h"
#include "analyse/report.h"
#include "analyse/threads.h"
#include "base/files.h"

/* Fewer samples say little. */
enum { LEAST_SAMPLES = 100 };

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static bool is_reference_blas(const struct hot_function *h)
{
    const char *base = path_base(h->module);
    return (strncmp(base, "libblas.so", 10) == 0 ||
            strncmp(base, "libcblas.so", 11) == 0 ||
            strncmp(base, "librefblas", 10) == 0) &&
           !has(h->module, "openblas") && !has(h->module, "atlas") &&
           !has(h->module, "blis") && !has(h->module, "mkl");
}

static bool is_kernel(const struct hot_function *h)
{
    static const char *const names[] = { "gemm",    "gemv",   "conv",   "vectorized",
                                         "_kernel", "im2col", "mkldnn", "cpu_kernel",
                                         "vec::",   "sdot",   "saxpy",  "softmax" };
    static const char *const modules[] = { "libopenblas", "libblas", "libmkl",
                                           "libdnnl",     "libblis", "libgomp",
                                           "libiomp",     "libatlas" };
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (has(h->module, modules[i]))
            return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has(h->name, names[i]))
            return true;
    return false;
}

/* oneDNN makes its kernels at run time: where code of a JIT was seen, its own looks up
 * and calls them, for every operator the same however many rows it has. PyPI's torch has it
 * inside libtorch_cpu. */
static bool is_driver(const struct hot_function *h)
{
    return has(h->module, "libdnnl") || has(h->name, "dnnl::impl::");
}

static bool is_jit(const struct hot_function *h)
{
    return strcmp(h->name, "[jit]") == 0;
}

/* Of kernels what goes with the number of rows: neither the dispatcher's functions, which
 * are called like the operator, nor the interpreter's (convertitem). */
static bool is_arithmetic(const struct hot_function *h)
{
    const char *base = path_base(h->module);
    return has(h->module, "libsleef") ||
           (is_kernel(h) && strncmp(h->name, "at::_ops::", 10) != 0 &&
            strncmp(base, "python3", 7) != 0 && strncmp(base, "libpython3", 10) != 0);
}

static bool is_spin(const struct hot_function *h)
{
    return has(h->name, "gomp_barrier") || has(h->name, "gomp_team_barrier") ||
           has(h->name, "gomp_team_end") || has(h->name, "do_spin") ||
           has(h->name, "do_wait") || has(h->name, "sched_yield") ||
           has(h->name, "blas_thread_server");
}

static bool is_yield(const struct hot_function *h)
{
    return strcmp(h->name, "__sched_yield") == 0 || strcmp(h->name, "sched_yield") == 0;
}

/* Of a yield nearly all is the kernel's, who looks for somebody else to run. */
static double spin_share(const struct hot_function *h)
{
    return is_yield(h) ? h->total_share : is_spin(h) ? h->share : 0;
}

double native_yield_ns(const struct hot_functions *hot)
{
    double ns = 0;
    for (size_t i = 0; i < hot->function_count; i++)
        if (is_yield(&hot->functions[i]))
            ns += (hot->functions[i].total_share - hot->functions[i].share) *
                  hot->cpu_ns;
    return ns;
}

/* CPU time of threads that wait for work that way. */
double native_spin_ns(const struct hot_functions *hot)
{
    double ns = 0;
    for (size_t i = 0; i < hot->function_count; i++)
        ns += spin_share(&hot->functions[i]) * hot->cpu_ns;
    return ns;
}

/* The C library's functions have several names: malloc is __libc_malloc, and
 * __GI___libc_malloc where it is called from within. */
static const char *plain_name(const char *name)
{
    static const char *const before[] = { "__GI_", "__libc_", "__" };
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        if (strncmp(name, before[i], strlen(before[i])) == 0)
            name += strlen(before[i]);
    return name;
}

/* A library that does nothing but hand work to threads: what is spent in its own code is
 * waiting for them, whether its functions have names or not. */
static double await_share(const struct hot_function *h)
{
    static const char *const modules[] = { "libgomp", "libiomp", "libpthreadpool" };
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (strncmp(path_base(h->module), modules[i], strlen(modules[i])) == 0)
            return h->share;
    return spin_share(h);
}

static bool is_allocator(const struct hot_function *h)
{
    static const char *const names[] = {
        "malloc",        "_int_malloc",   "_int_free",
        "free",          "cfree",         "realloc",
        "calloc",        "_int_realloc",  "malloc_consolidate",
        "unlink_chunk",  "sysmalloc",     "systrim",
        "munmap",        "memalign",      "mmap",
        "mmap64",        "madvise",       "posix_memalign",
        "_int_memalign", "aligned_alloc", "brk",
        "sbrk",          "je_malloc",     "tc_malloc",
    };
    const char *name = plain_name(h->name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return has(name, "malloc_usable") || has(name, "unlink_chunk");
}

static bool is_interpreter(const struct hot_function *h)
{
    const char *base = path_base(h->module);
    return strncmp(base, "python3", 7) == 0 || strncmp(base, "libpython3", 10) == 0;
}

static bool is_framework(const struct hot_function *h)
{
    return has(h->module, "libtorch") || has(h->module, "libc10") ||
           has(h->module, "_multiarray_umath") || has(h->module, "libstdc++") ||
           has(h->module, "/ld-linux");
}

struct shares {
    double blas, doubles, kernels, spin, await, allocator, interpreter, framework;
    double arithmetic, drivers, jit;
    const char *blas_module;
};

static void add(struct shares *s, const struct hot_function *h)
{
    const bool kernel = is_kernel(h);
    if (is_reference_blas(h)) {
        s->blas += h->share;
        s->blas_module = h->module;
    }
    s->doubles += teams_is_double(h->name) ? h->share : 0;
    s->kernels += kernel && !is_spin(h) ? h->share : 0;
    const bool waits = await_share(h) > 0;
    s->arithmetic += is_arithmetic(h) && !waits && !is_driver(h) ? h->share : 0;
    s->drivers += is_driver(h) ? h->share : 0;
    s->jit += is_jit(h) ? h->share : 0;
    s->spin += spin_share(h);
    s->await += await_share(h);
    s->allocator += is_allocator(h) ? h->share : 0;
    s->interpreter += is_interpreter(h) ? h->share : 0;
    s->framework += is_framework(h) && !kernel ? h->share : 0;
}

/* Before the first step and after the last one thread works: CPU time of no step. */
static double outside_ns(const struct report *r)
{
    return r->account.known ? r->account.startup_ns + r->account.end_ns : 0;
}

static double arithmetic_share(const struct report *r, const struct shares *s)
{
    const double jit = fmax(s->jit - r->hot.tight_share, 0);
    const double own = s->arithmetic + (s->jit > 0 ? jit : s->drivers);
    const double loop_ns = r->hot.cpu_ns - outside_ns(r);
    return loop_ns > 0 ? fmin(own * r->hot.cpu_ns / loop_ns, 1) : NAN;
}

/* Samples are of the whole run. What is outside of the loop may be a percent of it and a
 * quarter of what is left of one that mostly waits. The interpreter, the dispatcher and
 * the allocator are one thread's in the loop too; kernels are cut into pieces for all
 * threads. */
static void set_work(const struct report *r, const struct shares *s, struct facts *f)
{
    const struct hot_functions *h = &r->hot;
    const double loop_ns = account_loop_ns(&r->account);
    const double outside = outside_ns(r);
    const double fixed = s->interpreter + s->framework + s->allocator;
    if (!r->account.known || !(loop_ns > 0) || h->coverage < 0.7)
        return;
    const double work = h->cpu_ns * (1 - f->v[FACT_AWAIT_SHARE]) - outside;
    const double alone = fmax(h->cpu_ns * fixed - outside, 0);
    if (!(work > 0))
        return;
    f->v[FACT_WORK_CORES] = work / loop_ns;
    f->v[FACT_SERIAL_CORES] = fmin(alone, work) / loop_ns;
}

/* ---- By process ----------------------------------------------------------------------------- */

/* The process whose main thread takes the steps; NULL where nobody can tell. */
static const struct team *main_team(const struct report *r)
{
    const struct teams *t = &r->hot.teams;
    if (t->count == 1)
        return t->list;
    for (size_t i = 0; i < t->count; i++)
        if (r->python.main_pid && t->list[i].pid == r->python.main_pid)
            return &t->list[i];
    return NULL;
}

/* Of code made at run time a part are loops that wait, in every process alike. */
static double pieces_of(const struct report *r, const struct team *t, double jit)
{
    const double tight = jit > 0 ? fmin(r->hot.tight_share / jit, 1) : 0;
    return (double)t->pieces - tight * (double)t->jit;
}

static double jit_share(const struct report *r)
{
    double jit = 0;
    for (size_t i = 0; i < r->hot.teams.count; i++)
        jit += (double)r->hot.teams.list[i].jit;
    return jit / (double)r->hot.samples;
}

/* CPU time of the main process before the first step and after the last, in loops: what
 * it had in all but what it has in steady steps. Never more than that took: who starts
 * other processes waits for them meanwhile. */
static double main_outside(const struct report *r, const struct team *t, double cores)
{
    char pid[16];
    (void)snprintf(pid, sizeof pid, "%u", t->pid);
    const double wall = outside_ns(r) / account_loop_ns(&r->account);
    const double all = (double)(t->waits + t->alone + t->pieces) * cores;
    const double steady = steady_mean(r, "cpu", pid) / 100;
    return isnan(steady) ? wall : fmin(fmax(all - steady, 0), wall);
}

static double work_of(const struct report *r, const struct team *t, double jit)
{
    return (double)t->alone + pieces_of(r, t, jit);
}

double native_pieces_share(const struct report *r)
{
    const struct hot_functions *h = &r->hot;
    const struct team *t = main_team(r);
    const double loop_ns = account_loop_ns(&r->account);
    if (!r->account.known || !(loop_ns > 0) || h->coverage < 0.7 || !t)
        return 0;
    const double cores = h->cpu_ns / (double)h->samples / loop_ns; /* of a sample */
    const double pieces = pieces_of(r, t, jit_share(r)) * cores;
    const double alone = (double)t->alone * cores - main_outside(r, t, cores);
    return pieces > 0 ? pieces / (pieces + fmax(alone, 0)) : 0;
}

/* Processes that compute beside the main one: each at least half as much as the busiest
 * of them. */
static double children_of(const struct report *r, const struct team *main_one,
                          double jit)
{
    const struct teams *all = &r->hot.teams;
    double most = 0, count = 0;
    for (size_t i = 0; i < all->count; i++)
        if (&all->list[i] != main_one)
            most = fmax(most, work_of(r, &all->list[i], jit));
    for (size_t i = 0; i < all->count; i++)
        count += &all->list[i] != main_one && most > 0 &&
                 work_of(r, &all->list[i], jit) >= 0.5 * most;
    return count;
}

/* One process beside the main one computes as it does, at least half as much, and is no
 * loader's: another member of what is trained. */
static bool is_another_member(const struct report *r, const struct team *main_one,
                              double jit, const struct facts *f)
{
    const double own = work_of(r, main_one, jit);
    double most = 0;
    for (size_t i = 0; i < r->hot.teams.count; i++)
        if (&r->hot.teams.list[i] != main_one)
            most = fmax(most, work_of(r, &r->hot.teams.list[i], jit));
    return most >= 0.5 * own && !(f->v[FACT_WORKERS] > 0) && threads_train_beside(f);
}

/* As set_work(), told by whole stacks: of programs with several processes that compute,
 * whose threads are no team. */
static void set_teams(const struct report *r, struct facts *f)
{
    const struct hot_functions *h = &r->hot;
    const struct team *main_one = main_team(r);
    const double loop_ns = account_loop_ns(&r->account);
    if (!r->account.known || !(loop_ns > 0) || h->coverage < 0.7 || !main_one)
        return;
    const double cores = h->cpu_ns / (double)h->samples / loop_ns; /* of a sample */
    const double jit = jit_share(r), children = children_of(r, main_one, jit);
    double alone = 0, work = 0;
    if (children < 2 && !is_another_member(r, main_one, jit, f))
        return;
    for (size_t i = 0; i < h->teams.count; i++) {
        const bool child = &h->teams.list[i] != main_one;
        alone += child ? (double)h->teams.list[i].alone * cores : 0;
        work += child ? work_of(r, &h->teams.list[i], jit) * cores : 0;
    }
    const double beside = (double)main_one->beside * cores;
    const double outside = main_outside(r, main_one, cores);
    const double own = fmax((double)main_one->alone * cores - beside - outside, 0);
    f->v[FACT_CHILDREN_AT_WORK] = children;
    f->v[FACT_CHILD_SERIAL_CORES] = alone;
    f->v[FACT_CHILD_CORES] = work;
    f->v[FACT_SERIAL_CORES] = own + alone;
    f->v[FACT_BESIDE_CORES] = beside;
    f->v[FACT_WORK_CORES] = own + pieces_of(r, main_one, jit) * cores + work;
}

static bool makes_steps(const struct report *r, uint32_t pid)
{
    for (size_t i = 0; i < r->process_count; i++)
        if (r->processes[i].pid == pid && r->processes[i].steps > 0)
            return true;
    return false;
}

/* What computes in double in a process that makes no steps (a simulator, a loader's worker,
 * a server beside the training) is not the model's precision, and shortens no step by
 * itself: of all such CPU time the part in processes that do. All of it where processes
 * are not told apart. NaN where nobody makes steps: nothing tells of a model. */
static double doubles_of_training(const struct report *r)
{
    double all = 0, training = 0;
    bool any = false, made = r->account.known;
    for (size_t i = 0; i < r->process_count; i++)
        made |= r->processes[i].steps > 0;
    if (!made)
        return NAN;
    for (size_t i = 0; i < r->hot.teams.count; i++) {
        const struct team *t = &r->hot.teams.list[i];
        const bool steps = makes_steps(r, t->pid);
        any |= steps;
        all += (double)t->doubles;
        training += steps ? (double)t->doubles : 0;
    }
    return any && all > 0 ? training / all : 1;
}

void facts_of_native(struct report *r, struct facts *f)
{
    const struct hot_functions *h = &r->hot;
    struct shares s = { .blas_module = "" };
    struct buf b = BUF_INIT;
    if (!h->sampled || h->samples < LEAST_SAMPLES || h->function_count == 0)
        return;
    for (size_t i = 0; i < h->function_count; i++)
        add(&s, &h->functions[i]);
    f->v[FACT_REFERENCE_BLAS_SHARE] = s.blas;
    /* It has one thread, so its CPU time is time of the run. */
    const double run_ns = report_duration_s(r) * 1e9;
    if (run_ns > 0)
        f->v[FACT_REFERENCE_BLAS_WALL_SHARE] = at_most(s.blas * h->cpu_ns / run_ns, 1);
    f->v[FACT_DOUBLE_SHARE] = s.doubles * doubles_of_training(r);
    f->v[FACT_KERNEL_SHARE] = s.kernels;
    f->v[FACT_ARITHMETIC_SHARE] = arithmetic_share(r, &s);
    /* Barriers of generated code have no name, but one tight loop. */
    f->v[FACT_SPIN_SHARE] = at_most(s.spin + h->tight_share, 1);
    /* Who spins until he is given work leaves his core to anybody who has some. */
    f->v[FACT_FREE_CORES] += s.spin * f->v[FACT_CPU_CORES];
    f->v[FACT_AWAIT_SHARE] = at_most(s.await + h->tight_share, 1);
    set_work(r, &s, f);
    set_teams(r, f);
    f->v[FACT_ALLOC_SHARE] = s.allocator;
    f->v[FACT_PYTHON_SHARE] = s.interpreter;
    /* Imports are the interpreter's too, but no step's. */
    const double imports = h->cpu_ns > 0 && f->v[FACT_IMPORT_CPU_S] > 0
                               ? fmin(f->v[FACT_IMPORT_CPU_S] * 1e9 / h->cpu_ns, 0.9)
                               : 0;
    const double fixed = fmax(s.interpreter + s.framework + s.allocator - imports, 0);
    /* A thread that spins until it is given work does none. */
    const double working = 1 - imports - fmin(s.spin, 0.6);
    f->v[FACT_OVERHEAD_SHARE] = working > 0.05 ? fmin(fixed / working, 1) : NAN;
    f->v[FACT_OWN_CPU_SHARE] = f->v[FACT_OWN_CPU_S] * 1e9 / (h->cpu_ns * working);
    buf_puts(&b, s.blas_module);
    fact_place(r, f, PLACE_BLAS, &b);
    buf_release(&b);
}
