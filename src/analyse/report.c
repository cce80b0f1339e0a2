/* report.c: a run, understood.
 *
 * One pass over the traces, one open at a time, adds each process to the model; then
 * what needs all of them is derived: which process is the main one, the wall time of
 * each, the order of operations, the verdict. Only the main trace is opened again:
 * what was on its main thread is known only then, and the steps are read from it.
 */
#include "analyse/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/parts.h"
#include "analyse/tree.h"
#include "base/error.h"

/* ---- Notes -------------------------------------------------------------------------- */

enum { MAX_NOTES = 512 };

static int reserve_notes(struct report *r)
{
    r->notes = arena_alloc_array(&r->arena, MAX_NOTES, sizeof(*r->notes));
    if (!r->notes)
        return -ENOMEM;
    for (size_t i = 0; i < r->run->note_count && i < MAX_NOTES; i++)
        r->notes[r->note_count++] = r->run->notes[i];
    return 0;
}

void report_note(struct report *r, const char *subject, const char *text)
{
    struct buf b = BUF_INIT;
    if (r->note_count == MAX_NOTES)
        return;
    buf_printf(&b, "%s: %s", subject, text);
    const char *copy = arena_strdup(&r->arena, b.data);
    if (copy)
        r->notes[r->note_count++] = copy;
    buf_release(&b);
}

/* ---- One process --------------------------------------------------------------------- */

static const char *keep(struct report *r, const char *text, size_t max)
{
    const char *copy = arena_strndup(&r->arena, text, strnlen(text, max));
    return copy ? copy : "";
}

static int append_process(struct report *r, struct report_process **ret_process)
{
    if (r->process_count == r->process_cap) {
        const size_t cap = r->process_cap ? r->process_cap * 2 : 8;
        struct report_process *more = realloc(r->processes, cap * sizeof(*more));
        if (!more)
            return -ENOMEM;
        r->processes = more;
        r->process_cap = cap;
    }
    *ret_process = &r->processes[r->process_count++];
    **ret_process = (struct report_process){ .rank = -1 };
    return 0;
}

static void describe_process(struct report *r, const struct trace *trace,
                             const char *file, struct report_process *p)
{
    const struct trace_info *info = trace_info(trace);
    const bool is_program = info->pid == r->run->meta.pid;
    p->file = file;
    p->exe = keep(r, info->exe, sizeof(info->exe));
    p->role = keep(r, info->role, sizeof(info->role));
    if (!p->role[0])
        p->role = is_program ? "main" : info->forked ? "forked" : "child";
    p->damage = keep(r, trace_damage(trace), 1024);
    p->pid = info->pid;
    p->ppid = info->ppid;
    p->alive = info->alive;
    p->exited = info->exited;
    p->rank = is_program ? r->run->meta.rank : -1;
    p->start_ns = info->start_ns;
    p->last_ns = info->last_ns;
    p->events = info->events;
    p->lost = info->lost;
    p->lost_reason = info->lost_reason;
    p->filtered = info->filtered;
    p->steps = info->steps;
    p->waits = info->waits;
    p->self_folds = info->self_folds;
    p->wait_ns = info->wait_ns;
    p->unrecorded_ns = info->unrecorded_ns;
    p->shut_since_ns = info->shut_since_ns;
    p->event_cost_ns = info->event_cost_ns;
    p->ns_per_tick = info->ns_per_tick;
    p->clock_error_ns = info->clock_error_ns;
    p->file_bytes = info->file_bytes;
    p->disk_bytes = info->disk_bytes;
    p->timeline_complete = info->timeline_complete;
}

static void count_zones(struct report_process *p, const struct trace *trace,
                        const struct tree *tree)
{
    for (size_t i = 0; i < tree->order_count; i++) {
        const unsigned n = tree->order[i];
        const struct trace_node *node = trace_node(trace, n);
        p->truncated += node->truncated;
        if (node->parent == tree->root[n] && node->parent < ROOT_NODES)
            p->zone_ns += tree->incl_ns[n];
    }
}

static void add_lanes(struct report *r, struct report_process *p,
                      const struct trace *trace)
{
    for (unsigned i = 0; i < trace_lane_count(trace); i++) {
        const struct trace_lane *lane = trace_lane(trace, i);
        if (!lane)
            continue;
        p->threads++;
        if (lane->is_main)
            p->main_events += lane->events;
        r->orphan_ends += lane->orphan_ends;
        r->unbalanced += lane->unbalanced;
        r->deep_zones += lane->deep_zones;
        if (lane->first_time_ns &&
            (!p->first_event_ns || lane->first_time_ns < p->first_event_ns))
            p->first_event_ns = lane->first_time_ns;
    }
}

static void add_totals(struct report *r, const struct report_process *p,
                       const struct trace_info *info)
{
    r->events += p->events;
    r->lost += p->lost;
    r->lost_reason |= p->lost_reason;
    r->filtered += p->filtered;
    r->truncated += p->truncated;
    r->holes += info->holes;
    r->names_lost += info->names_lost;
    r->paths_lost += info->paths_lost;
    r->texts_cut += info->texts_cut;
    r->clock_error_ns = fmax(r->clock_error_ns, p->clock_error_ns);
    r->ns_per_tick = fmax(r->ns_per_tick, p->ns_per_tick);
}

static int add_run_values(struct report *r, const struct trace *trace)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < trace_value_count(trace); i++) {
        const struct trace_value *v = trace_value(trace, i);
        if (!v || v->kind == VALUE_ZONE ||
            (v->kind == VALUE_COUNTER && phase_is_device_counter(v->name)))
            continue;
        rc = op_value_merge(v->kind == VALUE_METRIC ? &r->metrics : &r->counters,
                            &r->arena, v);
        if (rc == SONDE_E_LIMIT)
            rc = 0;
    }
    return rc;
}

static int add_trace(struct report *r, const struct trace *trace, const char *file)
{
    struct tree tree;
    struct report_process *p;
    int rc = tree_build(trace, &tree);
    if (rc < 0)
        return rc;
    rc = append_process(r, &p);
    if (rc < 0)
        goto done;
    describe_process(r, trace, file, p);
    phase_split_read(trace, &tree, &p->phases);
    count_zones(p, trace, &tree);
    add_lanes(r, p, trace);
    add_totals(r, p, trace_info(trace));
    if (p->damage[0])
        report_note(r, file, p->damage);
    rc = op_table_add(&r->ops, trace, &tree);
    if (rc == 0)
        rc = add_run_values(r, trace);
    if (rc == 0)
        rc = labels_add(r, trace);
    if (rc == 0)
        rc = open_threads_read(r, r->process_count - 1, trace);
done:
    tree_release(&tree);
    return rc;
}

static int add_file(struct report *r, size_t index)
{
    struct trace *trace = NULL;
    int rc = run_trace_open(r->run, index, &trace);
    if (rc == -ENOMEM)
        return rc;
    if (rc < 0) {
        r->files_left_out++;
        report_note(r, r->run->files[index], error_text(rc));
        return 0;
    }
    rc = add_trace(r, trace, r->run->files[index]);
    trace_free(trace);
    return rc;
}

/* ---- All of them ------------------------------------------------------------------------ */

/* Whoever trains, the program itself or rank 0 before others; else the program, else
 * whoever recorded most. Of several
 * with the same claim (exec leaves one file each) the one with more zone time. */
static size_t find_main(const struct report *r)
{
    size_t best = SIZE_MAX;
    int best_claim = -1;
    for (size_t i = 0; i < r->process_count; i++) {
        const struct report_process *p = &r->processes[i];
        const bool is_program = r->run->meta.pid && p->pid == r->run->meta.pid;
        const bool recorded = p->zone_ns > 0 || p->steps > 0;
        /* A launcher (torchrun) records a little, too: who trains goes first. */
        const int claim = p->steps > 0 ? (is_program     ? 4
                                          : p->rank == 0 ? 3
                                                         : 2)
                                       : is_program && recorded;
        if (claim > best_claim ||
            (claim == best_claim && p->zone_ns > r->processes[best].zone_ns)) {
            best = i;
            best_claim = claim;
        }
    }
    return best;
}

static void choose_main(struct report *r)
{
    r->main_process = find_main(r);
    if (r->main_process == SIZE_MAX)
        return;
    r->processes[r->main_process].is_main = true;
    r->phases = r->processes[r->main_process].phases;
}

/* Steps come from the main process or, when it has none, from who has most. */
static size_t find_stepper(const struct report *r)
{
    size_t best = r->main_process;
    for (size_t i = 0; i < r->process_count; i++)
        if (r->processes[best].steps == 0 ||
            (best != r->main_process &&
             r->processes[i].steps > r->processes[best].steps))
            best = i;
    return best;
}

static uint32_t stepper_pid(const struct report *r)
{
    return r->main_process != SIZE_MAX ? r->processes[find_stepper(r)].pid : 0;
}

static size_t file_index(const struct report *r, const char *file)
{
    size_t i = 0;
    while (i < r->run->file_count && r->run->files[i] != file)
        i++;
    return i;
}

/* Opens a trace once more. What was readable a moment ago and no longer is has been
 * counted; only the extras are missing then. */
static int reopen(struct report *r, size_t process, struct trace **ret_trace)
{
    const size_t index = file_index(r, r->processes[process].file);
    const int rc = run_trace_open(r->run, index, ret_trace);
    if (rc < 0 && rc != -ENOMEM)
        report_note(r, r->processes[process].file, error_text(rc));
    return rc;
}

/* The program lives as long as its run; of others only their own file tells. */
static int read_account(struct report *r, size_t process, const struct trace *trace)
{
    const struct report_process *p = &r->processes[process];
    const bool is_program = p->pid == r->run->meta.pid;
    int64_t from = is_program && r->start_ns ? r->start_ns : p->start_ns;
    int64_t to = p->end_ns;
    /* Of a window nothing is known before its first event and behind its end. */
    if (p->unrecorded_ns > 0 && p->first_event_ns > from)
        from = p->first_event_ns;
    if (p->shut_since_ns && p->shut_since_ns < to)
        to = p->shut_since_ns;
    const int rc = account_read(trace, from, to, &r->account);
    return rc < 0 ? rc : account_trend(&r->account, &r->series);
}

/* Zones that stand for a step of an optimizer say so by their category. */
static uint64_t count_optimizer_steps(const struct trace *trace)
{
    uint64_t count = 0;
    for (unsigned i = FIRST_NODE; i < trace_node_count(trace); i++) {
        const struct trace_node *n = trace_node(trace, i);
        const struct trace_site *site = n ? trace_site(trace, n->site) : NULL;
        if (site && strcmp(site->category, "optimizer_step") == 0)
            count += n->count;
    }
    return count;
}

static int read_steps(struct report *r, size_t process)
{
    struct trace *trace = NULL;
    r->last_step = r->processes[process].steps;
    int rc = reopen(r, process, &trace);
    if (rc < 0)
        return rc == -ENOMEM ? rc : 0;
    r->optimizer_steps = count_optimizer_steps(trace);
    if (r->last_step == 0) {
        trace_free(trace);
        return 0;
    }
    rc = step_stats_read(trace, &r->steps);
    if (rc == 0 && step_series_read(trace, &r->series) < 0)
        report_note(r, r->processes[process].file, "the timeline cannot be read");
    if (rc == 0)
        rc = read_account(r, process, trace);
    trace_free(trace);
    return rc;
}

static int mark_main(struct report *r, size_t process)
{
    struct trace *trace = NULL;
    struct tree tree;
    int rc = reopen(r, process, &trace);
    if (rc < 0)
        return rc == -ENOMEM ? rc : 0;
    rc = tree_build(trace, &tree);
    if (rc == 0) {
        rc = op_table_mark_main(&r->ops, trace, &tree, phase_main_root(trace));
        tree_release(&tree);
    }
    trace_free(trace);
    return rc;
}

static void note_losses(struct report *r)
{
    char words[160];
    struct buf b = BUF_INIT;
    if (r->lost) {
        buf_printf(&b, "%llu events were not recorded (%s)",
                   (unsigned long long)r->lost,
                   report_lost_words(r->lost_reason, words, sizeof(words)));
        report_note(r, "lost", b.data);
    }
    buf_clear(&b);
    if (r->paths_lost) {
        buf_printf(&b,
                   "%llu calls on paths beyond the limit are counted as (other paths)",
                   (unsigned long long)r->paths_lost);
        report_note(r, "paths", b.data);
    }
    buf_clear(&b);
    if (r->names_lost) {
        buf_printf(&b, "%llu names beyond the limit are recorded as (other names)",
                   (unsigned long long)r->names_lost);
        report_note(r, "names", b.data);
    }
    buf_clear(&b);
    if (r->texts_cut) {
        buf_printf(
            &b,
            "%llu names or tags of zones are longer than 1,024 bytes and were cut: "
            "they end with an ellipsis",
            (unsigned long long)r->texts_cut);
        report_note(r, "names", b.data);
    }
    buf_release(&b);
}

static bool next_series(void *arg, size_t index, struct energy_series *ret_series)
{
    const struct report_monitors *m = arg;
    if (index >= m->series_count)
        return false;
    const struct report_series *s = &m->series[index];
    *ret_series = (struct energy_series){
        .metric = s->metric,
        .subject = s->subject,
        .last = s->last,
        .average = s->avg,
        .covered_s = s->covered_s,
    };
    return true;
}

static int derive(struct report *r)
{
    lifetime_find(r);
    int rc = pylayer_read(r);
    if (rc < 0)
        return rc;
    lifetime_close_phases(r);
    choose_main(r);
    lifetime_note_unrecorded(r);
    note_losses(r);
    if (r->main_process != SIZE_MAX) {
        rc = mark_main(r, r->main_process);
        if (rc == 0)
            rc = read_steps(r, find_stepper(r));
    }
    if (rc == 0)
        rc = op_table_finish(&r->ops);
    if (rc == 0)
        rc = components_sum(r);
    if (rc == 0)
        rc = monitors_read(r);
    if (rc == 0)
        rc = pyprofile_read(r);
    if (rc == 0)
        pylayer_choose(r, stepper_pid(r));
    if (rc == 0)
        rc = allocations_read(r);
    if (rc == 0)
        rc = io_read(r);
    if (rc == 0)
        rc = loaders_read(r);
    if (rc == 0)
        loaders_complete_epochs(r, stepper_pid(r));
    if (rc == 0)
        rc = functions_read(r->run->dir,
                            r->run->meta.cpu_user_s + r->run->meta.cpu_system_s,
                            &r->arena, &r->hot);
    if (rc == 0)
        rc = alerts_read(r);
    if (rc == 0)
        rc = syscalls_read(r);
    if (rc == 0)
        rc = hangs_read(r);
    if (rc == 0)
        energy_read(r, &(struct energy_source){ next_series, &r->monitors });
    if (rc == 0)
        rc = diagnosis_write(r);
    if (rc == 0)
        rc = provenance_write(r);
    return rc;
}

int report_build(const struct run *run, struct report **ret_report)
{
    struct report *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->run = run;
    r->verdict = r->why = r->next = r->since = r->hot.why = "";
    r->main_process = SIZE_MAX;
    r->clock_error_ns = r->ns_per_tick = NAN;
    arena_init(&r->arena);
    int rc = op_table_init(&r->ops, &r->arena);
    if (rc == 0)
        rc = reserve_notes(r);
    if (rc == 0)
        rc = labels_start(r);
    for (size_t i = 0; rc == 0 && i < run->file_count; i++)
        rc = add_file(r, i);
    if (rc == 0)
        rc = derive(r);
    if (rc < 0) {
        report_free(r);
        return rc;
    }
    *ret_report = r;
    return 0;
}

void report_free(struct report *report)
{
    if (!report)
        return;
    op_table_release(&report->ops);
    step_stats_release(&report->steps);
    allocations_release(&report->allocations);
    loaders_release(&report->loaders);
    free(report->processes);
    free(report->threads);
    free(report->monitors.series);
    free(report->monitors.processes);
    arena_release(&report->arena);
    free(report);
}
