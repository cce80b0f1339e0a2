/* samples.c: see samples.h. */
#include "present/export/samples.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyse/pystacks.h"
#include "analyse/report.h"
#include "analyse/stacks.h"
#include "base/error.h"
#include "base/files.h"
#include "trace/format.h"

struct walk {
    const struct export_job *job;
    sample_fn *each;
    void *arg;
    struct sample_frame frames[SAMPLE_DEPTH];
    /* Of one source or another: */
    const struct stacks *stacks;
    const struct trace *trace;
    uint64_t counted;
    double period_ns;
};

static const char *or_unknown(const char *name)
{
    return name && name[0] ? name : "(unknown)";
}

static int64_t whole(double value)
{
    return isfinite(value) && value > 0 && value < 0x1p62 ? llround(value) : 0;
}

/* Paths that had no room of their own. */
static int visit_rest(struct walk *w, struct sample *sample)
{
    w->frames[0] = (struct sample_frame){ .name = "(other stacks)",
                                          .file = "",
                                          .module = "" };
    sample->frames = w->frames;
    sample->depth = 1;
    return w->each(w->arg, sample);
}

/* ---- Native stacks ----------------------------------------------------------------------- */

void sample_label(const struct sample_frame *f, struct buf *out)
{
    buf_puts(out, f->name);
    if (f->python && f->file[0] && f->line)
        buf_printf(out, " (%s:%u)", path_base(f->file), f->line);
}

static int visit_stack(void *arg, const struct stack_task *task,
                       const struct stack_entry *entries, unsigned count,
                       uint64_t samples)
{
    struct walk *w = arg;
    struct sample s = { .pid = task->pid,
                        .process = task->process,
                        .thread = task->thread,
                        .frames = w->frames,
                        .values = { (int64_t)samples,
                                    whole((double)samples * w->period_ns) } };
    w->counted += samples;
    for (; s.depth < count && s.depth < SAMPLE_DEPTH; s.depth++) {
        const struct stack_entry *e = &entries[s.depth];
        const struct stack_function *f = &w->stacks->functions[e->function];
        w->frames[s.depth] = (struct sample_frame){
            .name = or_unknown(f->name),
            .file = e->file[0] ? e->file : f->file,
            .module = f->module,
            .line = e->line,
            .first_line = f->line,
            .python = e->flags & STACK_FRAME_PYTHON
        };
        if (w->frames[s.depth].python)
            w->frames[s.depth].module = "";
    }
    return s.depth ? w->each(w->arg, &s) : visit_rest(w, &s);
}

typedef int stacks_walk_fn(const struct stacks *stacks,
                           int (*each)(void *arg, const struct stack_task *task,
                                       const struct stack_entry *entries,
                                       unsigned count, uint64_t samples),
                           void *arg);

static int walk_native(const struct export_job *job, sample_fn *each, void *arg,
                       stacks_walk_fn *walk)
{
    struct stacks *stacks;
    int rc = stacks_open(job->run->dir, &stacks);
    if (rc < 0)
        return rc == -ENOENT ? SONDE_E_NOTFOUND : rc;
    struct walk w = { .each = each,
                      .arg = arg,
                      .stacks = stacks,
                      .period_ns = (double)stacks->info.period_ns };
    rc = walk(stacks, visit_stack, &w);
    /* Samples that had no room in the tables. */
    const uint64_t all = stacks->info.samples;
    if (rc == 0 && all > w.counted) {
        struct sample s = { .process = "",
                            .thread = "",
                            .values = {
                                (int64_t)(all - w.counted),
                                whole((double)(all - w.counted) * w.period_ns) } };
        rc = visit_rest(&w, &s);
    }
    if (rc == 0 && all == 0)
        rc = SONDE_E_NOTFOUND;
    stacks_free(stacks);
    return rc;
}

static int walk_stacks(const struct export_job *job, sample_fn *each, void *arg)
{
    return walk_native(job, each, arg, stacks_walk);
}

static int walk_merged(const struct export_job *job, sample_fn *each, void *arg)
{
    return walk_native(job, each, arg, stacks_walk_merged);
}

/* ---- Python ------------------------------------------------------------------------------ */

static int visit_python(void *arg, const struct pystack *stack)
{
    struct walk *w = arg;
    struct sample s = { .pid = stack->pid,
                        .process = "python",
                        .thread = stack->thread,
                        .frames = w->frames,
                        .values = { (int64_t)stack->samples, (int64_t)stack->wall_ns,
                                    (int64_t)stack->cpu_ns } };
    for (; s.depth < stack->depth && s.depth < SAMPLE_DEPTH; s.depth++) {
        const struct pystack_place *p = &stack->places[s.depth];
        w->frames[s.depth] = (struct sample_frame){ .name = or_unknown(p->function),
                                                    .file = p->file,
                                                    .module = "",
                                                    .line = p->line,
                                                    .first_line = p->first_line };
    }
    w->counted++;
    return s.depth ? w->each(w->arg, &s) : visit_rest(w, &s);
}

static int walk_python(const struct export_job *job, sample_fn *each, void *arg)
{
    struct walk w = { .each = each, .arg = arg };
    const int rc = pystacks_walk(job->run->dir, visit_python, &w);
    return rc == -ENOENT || (rc == 0 && w.counted == 0) ? SONDE_E_NOTFOUND : rc;
}

/* ---- Allocations -------------------------------------------------------------------------- */

static void name_place(struct sample_frame *ret_frame, const struct alloc_place *p)
{
    *ret_frame = (struct sample_frame){ .name = p->function[0] ? p->function
                                                : p->module[0] ? p->module
                                                               : "(unknown)",
                                        .file = p->file,
                                        .module = p->module,
                                        .line = p->line };
}

static int visit_site(struct walk *w, const struct alloc_site *site)
{
    struct sample s = { .process = "",
                        .thread = "",
                        .frames = w->frames,
                        .values = { whole(site->count), whole(site->bytes),
                                    whole(site->live_count),
                                    whole(site->live_bytes) } };
    for (; s.depth < site->depth && s.depth < SAMPLE_DEPTH; s.depth++)
        name_place(&w->frames[s.depth], &site->stack[s.depth]);
    if (s.depth == 0)
        name_place(&w->frames[s.depth++], &site->at);
    return w->each(w->arg, &s);
}

static int walk_allocations(const struct export_job *job, sample_fn *each, void *arg)
{
    struct walk w = { .each = each, .arg = arg };
    struct report *report;
    int rc = report_build(job->run, &report);
    if (rc < 0)
        return rc;
    const struct allocations *a = &report->allocations;
    for (size_t i = 0; rc == 0 && i < a->site_count; i++)
        rc = visit_site(&w, &a->sites[i]);
    if (rc == 0 && a->site_count == 0)
        rc = SONDE_E_NOTFOUND;
    report_free(report);
    return rc;
}

/* ---- Zones -------------------------------------------------------------------------------- */

/* False: a path of spans, steps and the like, which are no call paths. */
static bool zone_path(struct walk *w, unsigned number, unsigned *ret_depth)
{
    unsigned depth = 0;
    for (unsigned at = number; at != TRACE_NO_NODE && depth < SAMPLE_DEPTH;) {
        const struct trace_node *node = trace_node(w->trace, at);
        if (!node)
            return false;
        if (node->parent == TRACE_NO_NODE) {
            *ret_depth = depth;
            return at < ROOT_NODES;
        }
        const struct trace_site *site = trace_site(w->trace, node->site);
        w->frames[depth++] = (struct sample_frame){
            .name = or_unknown(site->name),
            .file = site->file,
            .module = "",
            .line = site->line > 0 ? (uint32_t)site->line : 0,
            .first_line = site->line > 0 ? (uint32_t)site->line : 0,
        };
        at = node->parent;
    }
    *ret_depth = depth;
    return depth == SAMPLE_DEPTH;
}

static int visit_node(struct walk *w, unsigned number)
{
    const struct trace_info *info = trace_info(w->trace);
    const struct trace_node *node = trace_node(w->trace, number);
    struct sample s = {
        .pid = info->pid, .process = info->exe, .thread = "", .frames = w->frames
    };
    if (!node || node->count == 0)
        return 0;
    s.values[0] = (int64_t)node->count;
    s.values[1] = whole(node->self_ns);
    if (number == NODE_OTHER) {
        w->frames[0] = (struct sample_frame){ .name = "(other paths)",
                                              .file = "",
                                              .module = "" };
        s.depth = 1;
    } else if (!zone_path(w, number, &s.depth) || s.depth == 0) {
        return 0;
    }
    w->counted++;
    return w->each(w->arg, &s);
}

static int visit_trace(void *arg, const struct trace *trace)
{
    struct walk *w = arg;
    int rc = 0;
    w->trace = trace;
    for (unsigned i = 0; rc == 0 && i < trace_node_count(trace); i++)
        rc = visit_node(w, i);
    return rc;
}

static int walk_zones(const struct export_job *job, sample_fn *each, void *arg)
{
    struct walk w = { .each = each, .arg = arg };
    struct export_totals totals = { 0 };
    const int rc = export_each(job, &totals, visit_trace, &w);
    return rc == 0 && w.counted == 0 ? SONDE_E_NOTFOUND : rc;
}

/* ---- The list -------------------------------------------------------------------------------- */

static const struct sample_source sources[EXPORT_WHATS] = {
    [EXPORT_STACKS] = { { { "samples", "count" }, { "cpu", "nanoseconds" } },
                        2,
                        1,
                        walk_stacks },
    [EXPORT_PYTHON] = { { { "samples", "count" },
                          { "wall", "nanoseconds" },
                          { "cpu", "nanoseconds" } },
                        3,
                        1,
                        walk_python },
    [EXPORT_MERGED] = { { { "samples", "count" }, { "cpu", "nanoseconds" } },
                        2,
                        1,
                        walk_merged },
    [EXPORT_ALLOCATIONS] = { { { "alloc_objects", "count" },
                               { "alloc_space", "bytes" },
                               { "inuse_objects", "count" },
                               { "inuse_space", "bytes" } },
                             4,
                             1,
                             walk_allocations },
    [EXPORT_ZONES] = { { { "calls", "count" }, { "time", "nanoseconds" } },
                       2,
                       1,
                       walk_zones },
};

const struct sample_source *sample_source(enum export_what what)
{
    return (unsigned)what < EXPORT_WHATS && sources[what].walk ? &sources[what] : NULL;
}
