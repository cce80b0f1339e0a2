/* teams.c: see teams.h. */
#include "analyse/teams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

/* What a function says of a stack that it is on. */
enum {
    IS_KERNEL = 1,
    IS_LIBC = 2,
    IS_HANDING = 4, /* a library that does nothing but hand work to threads */
    IS_BLAS = 8,
    IS_YIELD = 16,
    IS_SLEEP = 32,
    IS_SPIN = 64,
    IS_REGION = 128, /* what is below was cut into pieces */
    IS_THREAD = 256, /* where a thread begins */
    IS_PYTHON = 512,
    IS_JIT = 1024,
    IS_DOUBLE = 2048,
};

struct name_bits {
    const char *part;
    unsigned bits;
};

static const struct name_bits module_bits[] = {
    { "libgomp", IS_HANDING | IS_REGION },
    { "libiomp", IS_HANDING | IS_REGION },
    { "libomp", IS_HANDING | IS_REGION },
    { "libpthreadpool", IS_HANDING | IS_REGION },
    { "libopenblas", IS_BLAS },
    { "libc.so", IS_LIBC },
    { "libc-", IS_LIBC },
    { "libpthread", IS_LIBC },
    { "python3", IS_PYTHON },
    { "libpython3", IS_PYTHON },
    { "[kernel]", IS_KERNEL },
};

static const struct name_bits function_bits[] = {
    { "sched_yield", IS_YIELD },      { "futex", IS_SLEEP },
    { "pthread_cond_", IS_SLEEP },    { "lll_lock", IS_SLEEP },
    { "exec_blas", IS_REGION },       { "blas_thread_server", IS_REGION | IS_SPIN },
    { "invoke_parallel", IS_REGION }, { "start_thread", IS_THREAD },
    { "gomp_barrier", IS_SPIN },      { "gomp_team_barrier", IS_SPIN },
    { "gomp_team_end", IS_SPIN },     { "do_spin", IS_SPIN },
    { "do_wait", IS_SPIN },
};

/* numpy's FFT computes in double whatever it is given: no choice of the program's. */
bool teams_is_double(const char *function)
{
    static const char *const names[] = { "dgemm", "dgemv", "dsyrk",   "dtrsm",  "dger_",
                                         "ddot",  "daxpy", "<double", "double>" };
    if (strstr(function, "pocketfft"))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(function, names[i]))
            return true;
    return false;
}

static unsigned bits_of(const struct stack_function *f)
{
    const char *base = path_base(f->module);
    unsigned bits = strcmp(f->name, "[jit]") == 0 ? IS_JIT : 0;
    for (size_t i = 0; i < sizeof module_bits / sizeof *module_bits; i++)
        if (strncmp(base, module_bits[i].part, strlen(module_bits[i].part)) == 0)
            bits |= module_bits[i].bits;
    for (size_t i = 0; i < sizeof function_bits / sizeof *function_bits; i++)
        if (strstr(f->name, function_bits[i].part))
            bits |= function_bits[i].bits;
    return teams_is_double(f->name) ? bits | IS_DOUBLE : bits;
}

struct walk {
    struct teams *teams;
    size_t cap;
    unsigned *bits; /* by function */
};

/* The kernel, a yield or a sleep of the C library below a library of threads; or that
 * library itself. Whoever calls the kernel without the C library is an OpenMP that
 * sleeps, or code that touches a page for the first time. */
static bool is_waiting(const struct walk *w, const struct stack_entry *e, unsigned n)
{
    const unsigned leaf = w->bits[e[0].function];
    unsigned through = 0, i = 0;
    if (leaf & (IS_HANDING | IS_SPIN | IS_YIELD))
        return true;
    while (i < n && (w->bits[e[i].function] & (IS_KERNEL | IS_LIBC)))
        through |= w->bits[e[i++].function];
    if (!(through & (IS_KERNEL | IS_SLEEP)))
        return false;
    const unsigned caller = i < n ? w->bits[e[i].function] : 0;
    return (through & IS_YIELD) || (caller & IS_HANDING) ||
           ((caller & IS_BLAS) && (through & IS_SLEEP));
}

static unsigned all_bits(const struct walk *w, const struct stack_entry *e, unsigned n)
{
    unsigned all = 0;
    for (unsigned i = 0; i < n; i++)
        all |= w->bits[e[i].function];
    return all;
}

/* Below a library of threads, or in a thread that no interpreter began. */
static bool is_piece(unsigned all)
{
    return (all & (IS_REGION | IS_JIT)) || ((all & IS_THREAD) && !(all & IS_PYTHON));
}

static struct team *team_of(struct walk *w, uint32_t pid)
{
    struct teams *t = w->teams;
    for (size_t i = 0; i < t->count; i++)
        if (t->list[i].pid == pid)
            return &t->list[i];
    if (t->count == w->cap)
        return NULL;
    t->list[t->count] = (struct team){ .pid = pid };
    return &t->list[t->count++];
}

static int count_stack(void *arg, const struct stack_task *task,
                       const struct stack_entry *entries, unsigned n, uint64_t samples)
{
    struct walk *w = arg;
    struct team *team = team_of(w, task->pid);
    if (n == 0 || !team)
        return 0;
    const unsigned all = all_bits(w, entries, n);
    team->doubles += w->bits[entries[0].function] & IS_DOUBLE ? samples : 0;
    if (is_waiting(w, entries, n)) {
        team->waits += samples;
    } else if (is_piece(all)) {
        team->pieces += samples;
        team->jit += w->bits[entries[0].function] & IS_JIT ? samples : 0;
    } else {
        team->alone += samples;
        team->beside += all & IS_THREAD ? samples : 0;
    }
    return 0;
}

int teams_count(const struct stacks *s, struct arena *arena, struct teams *ret_teams)
{
    struct teams teams = { .count = 0 };
    struct walk w = { .teams = &teams, .cap = s->task_count + 1 };
    teams.list = arena_alloc_array(arena, w.cap, sizeof *teams.list);
    w.bits = calloc(s->function_count + 1, sizeof *w.bits);
    int rc = teams.list && w.bits ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < s->function_count; i++)
        w.bits[i] = bits_of(&s->functions[i]);
    if (rc == 0)
        rc = stacks_walk(s, count_stack, &w);
    free(w.bits);
    if (rc == 0)
        *ret_teams = teams;
    return rc;
}
