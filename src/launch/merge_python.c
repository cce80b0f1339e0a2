/* merge_python.c: see merge_python.h. */
#include "launch/merge_python.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/moment.h"
#include "capture/python/moment.h"

enum { PROCESSES = 64, FAILURES_MOST = 50, FIRST_RETRY_NS = 20000000 };
static const uint64_t LAST_RETRY_NS = 1000000000;

_Static_assert(MOMENT_LOOPS <= (int)MERGE_LOOPS, "room for an answer");
_Static_assert(MOMENT_FRAMES <= (int)MERGE_FRAMES, "room for an answer");

struct process {
    uint32_t pid; /* 0: free */
    struct python *python;
    bool hopeless;
    unsigned failures; /* in a row */
    uint64_t retry_ns, wait_ns, asked_ns;
};

struct merge_python {
    struct process processes[PROCESSES];
    struct moment_native native[STACK_DEPTH];
    struct moment_answer answer;
};

struct merge_python *merge_python_new(void)
{
    return calloc(1, sizeof(struct merge_python));
}

void merge_python_free(struct merge_python *m)
{
    for (unsigned i = 0; m && i < PROCESSES; i++)
        python_free(m->processes[i].python);
    free(m);
}

static void forget(struct process *p)
{
    python_free(p->python);
    *p = (struct process){ .pid = 0 };
}

/* The process, in the place of the one that was asked for longest ago when it is new. */
static struct process *process_of(struct merge_python *m, uint32_t pid)
{
    struct process *oldest = &m->processes[0];
    for (unsigned i = 0; i < PROCESSES; i++) {
        struct process *p = &m->processes[i];
        if (p->pid == pid)
            return p;
        if (p->asked_ns < oldest->asked_ns)
            oldest = p;
    }
    forget(oldest);
    oldest->pid = pid;
    return oldest;
}

/* A process may become Python later, and starts up first. */
static int open_process(struct process *p, uint64_t now)
{
    const char *why;
    if (p->python)
        return 0;
    if (p->hopeless)
        return SONDE_E_UNSUPPORTED;
    if (now < p->retry_ns)
        return SONDE_E_NOTFOUND;
    const int rc = python_open((pid_t)p->pid, &p->python, &why);
    if (rc == 0)
        return 0;
    p->hopeless = rc == SONDE_E_UNSUPPORTED || rc == -EPERM || rc == -EACCES;
    p->wait_ns = p->wait_ns ? p->wait_ns * 2 : FIRST_RETRY_NS;
    if (p->wait_ns > LAST_RETRY_NS)
        p->wait_ns = LAST_RETRY_NS;
    p->retry_ns = now + p->wait_ns;
    return p->hopeless ? SONDE_E_UNSUPPORTED : SONDE_E_NOTFOUND;
}

static void take_native(struct merge_python *m, const struct sampler_moment *s)
{
    for (unsigned i = 0; i < s->stack->depth; i++) {
        const struct unwound_frame *f = &s->frames[i];
        m->native[i] = (struct moment_native){ .pc = f->pc,
                                               .low = f->low,
                                               .high = f->high,
                                               .regs = f->pc && !f->resumed ? f->regs
                                                                            : NULL,
                                               .module = s->stack->stack[i].module,
                                               .caller = f->caller };
    }
}

static void give_answer(const struct python *python, const struct moment_answer *from,
                        struct merge_answer *to)
{
    to->loop_count = from->loop_count;
    to->known_from = from->known_from;
    to->frame_count = from->frame_count;
    to->moved = from->moved;
    to->exact = from->exact;
    to->gap = from->gap;
    to->has_python = from->has_python;
    to->resume_pc = from->resume_pc;
    to->resume_sp = from->resume_sp;
    for (unsigned i = 0; i < from->loop_count; i++)
        to->loops[i] = from->loops[i];
    for (unsigned i = 0; i < from->frame_count; i++) {
        const struct moment_frame *f = &from->frames[i];
        const struct python_code code = python_code(python, f->code);
        to->frames[i] = (struct merge_frame){ .loop = f->loop,
                                              .line = (uint32_t)f->line,
                                              .first_line = (uint32_t)code.first_line,
                                              .name = code.name,
                                              .file = code.file };
    }
}

int merge_python_ask(void *arg, const struct sampler_moment *s,
                     struct merge_answer *ret_answer)
{
    struct merge_python *m = arg;
    const uint64_t now = moment_ns(CLOCK_MONOTONIC);
    struct process *p = process_of(m, s->pid);
    p->asked_ns = now;
    int rc = open_process(p, now);
    if (rc < 0)
        return rc;
    take_native(m, s);
    const struct moment moment = { .tid = s->tid,
                                   .now_ns = now,
                                   .sampled_ns = s->time_ns,
                                   .native = m->native,
                                   .count = s->stack->depth,
                                   .whole = s->stack->whole,
                                   .stack = s->memory.bytes,
                                   .stack_start = s->memory.start,
                                   .stack_len = s->memory.len };
    rc = python_moment(p->python, &moment, &m->answer);
    give_answer(p->python, &m->answer, ret_answer);
    /* Gone, or another program by exec. */
    p->failures = rc < 0 ? p->failures + 1 : 0;
    if (rc == -ESRCH || p->failures > FAILURES_MOST) {
        ret_answer->frame_count = 0; /* their names go with it */
        ret_answer->known_from = ret_answer->loop_count;
        forget(p);
    }
    return rc;
}
