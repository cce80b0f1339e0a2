/* build.c: sorted events into trace files. See build.h.
 *
 * Zones of other tools overlap where clocks were rounded: a zone that begins inside another
 * and ends after it is cut at the outer one's end. Nothing is moved by more than that.
 */
#include "import/build.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "import/device.h"
#include "import/launches.h"
#include "import/torch.h"
#include "trace/format.h"
#include "trace/packwriter.h"

enum { DEPTH = 1000, NO_LANE = UINT32_MAX, FIRST_PID = 1000000 };

struct build {
    struct events *e;
    const char *dir;
    int64_t first_ns, last_ns; /* of all, before base_ns */
    uint32_t *sites; /* of the process being written, by name: with its phase, and
                         without; 0 not yet */
    struct packwriter *w;
    struct device_time device;
    double launch_share; /* NaN unknown */
    uint64_t steps;
};

static uint64_t at_ns(const struct build *b, int64_t ts_ns)
{
    const int64_t ns = b->e->base_ns + ts_ns;
    return ns > 0 ? (uint64_t)ns : 0;
}

static unsigned site_of(struct build *b, uint32_t name, bool with_phase)
{
    uint32_t *known = &b->sites[2 * name + with_phase];
    if (*known)
        return *known;
    const struct event_name *n = &b->e->names[name];
    const struct packwriter_site site = { .name = n->text,
                                          .category = n->category,
                                          .file = n->file,
                                          .line = n->line,
                                          .phase = with_phase ? n->phase : 0 };
    return *known = packwriter_site(b->w, &site);
}

/* ---- One lane ----------------------------------------------------------------------- */

struct open_zone {
    int64_t end_ns; /* INT64_MAX: until an EVENT_END */
    unsigned site;
    bool is_last_step, in_phase;
};

struct walk {
    struct build *b;
    unsigned lane;
    struct open_zone open[DEPTH];
    size_t depth;
    const struct event *last_step;
};

static void close_until(struct walk *w, int64_t ts_ns)
{
    while (w->depth && w->open[w->depth - 1].end_ns <= ts_ns) {
        const struct open_zone *z = &w->open[--w->depth];
        packwriter_end(w->b->w, w->lane, z->site, at_ns(w->b, z->end_ns));
        /* Others end where the next begins. */
        if (z->is_last_step)
            packwriter_step_end(w->b->w, w->lane, at_ns(w->b, z->end_ns));
    }
}

static void open_zone(struct walk *w, const struct event *x, int64_t end_ns)
{
    const struct event_name *n = &w->b->e->names[x->name];
    const bool around = w->depth && w->open[w->depth - 1].in_phase;
    const bool own = torch_phase_counts(n, around);
    const unsigned site = site_of(w->b, x->name, own);
    if (w->depth == DEPTH) {
        w->b->e->left_out++;
        return;
    }
    if (w->depth && end_ns > w->open[w->depth - 1].end_ns)
        end_ns = w->open[w->depth - 1].end_ns;
    packwriter_begin(w->b->w, w->lane, site, at_ns(w->b, x->ts_ns));
    w->open[w->depth++] = (struct open_zone){ end_ns, site, x == w->last_step,
                                              around || own };
}

/* The innermost zone that waits for an end. */
static void close_begun(struct walk *w, const struct event *x)
{
    size_t at = w->depth;
    while (at > 0 && w->open[at - 1].end_ns != INT64_MAX)
        at--;
    if (at == 0) {
        w->b->e->left_out++;
        return;
    }
    while (w->depth >= at) {
        const struct open_zone *z = &w->open[--w->depth];
        packwriter_end(w->b->w, w->lane, z->site, at_ns(w->b, x->ts_ns));
    }
}

static void take(struct walk *w, const struct event *x)
{
    close_until(w, x->ts_ns);
    switch ((enum event_kind)x->kind) {
    case EVENT_STEP:
        packwriter_step(w->b->w, w->lane, 0, at_ns(w->b, x->ts_ns));
        w->b->steps++;
        open_zone(w, x, x->ts_ns + x->dur_ns);
        break;
    case EVENT_ZONE:
        open_zone(w, x, x->ts_ns + x->dur_ns);
        break;
    case EVENT_BEGIN:
        open_zone(w, x, INT64_MAX);
        break;
    case EVENT_END:
        close_begun(w, x);
        break;
    case EVENT_MARK:
        packwriter_mark(w->b->w, w->lane, site_of(w->b, x->name, false),
                        at_ns(w->b, x->ts_ns));
        break;
    case EVENT_COUNTER:
        packwriter_value(w->b->w, w->lane, site_of(w->b, x->name, false), VALUE_COUNTER,
                         x->value, at_ns(w->b, x->ts_ns));
        break;
    }
}

/* ---- One process -------------------------------------------------------------------- */

static size_t first_of_lane(const struct events *e, size_t lane)
{
    size_t low = 0, high = e->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (e->list[middle].lane < lane)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct event *last_step_of(const struct events *e, size_t first,
                                        size_t end)
{
    while (end > first)
        if (e->list[--end].kind == EVENT_STEP)
            return &e->list[end];
    return NULL;
}

/* tid: the number under which the lane is known in the run. */
static int write_lane(struct build *b, size_t lane, unsigned number, uint32_t tid)
{
    const struct event_lane *l = &b->e->lanes[lane];
    struct walk *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->b = b;
    w->lane = number;
    packwriter_lane(b->w, number, tid, l->name[0] ? l->name : l->tid);
    const size_t first = first_of_lane(b->e, lane), end = first_of_lane(b->e, lane + 1);
    w->last_step = last_step_of(b->e, first, end);
    for (size_t i = first; i < end; i++)
        take(w, &b->e->list[i]);
    close_until(w, INT64_MAX - 1);
    free(w);
    return 0;
}

/* The thread with the steps; else the one numbered as the process; else the busiest. */
static size_t main_lane_of(const struct events *e, size_t process)
{
    size_t best = NO_LANE;
    for (size_t i = 0; i < e->lane_count; i++) {
        const struct event_lane *l = &e->lanes[i];
        if (l->process != process || l->events == 0)
            continue;
        if (l->has_steps)
            return i;
        if (best == NO_LANE) {
            best = i;
            continue;
        }
        const bool ours = strcmp(l->tid, e->processes[process].pid) == 0;
        const bool theirs = strcmp(e->lanes[best].tid, e->processes[process].pid) == 0;
        if (ours > theirs || (ours == theirs && l->events > e->lanes[best].events))
            best = i;
    }
    return best;
}

static bool process_is_device(const struct events *e, size_t process)
{
    bool any = false;
    for (size_t i = 0; i < e->lane_count; i++) {
        const struct event_lane *l = &e->lanes[i];
        if (l->process != process || l->events == 0)
            continue;
        if (!l->is_device)
            return false;
        any = true;
    }
    return any;
}

/* Numbers of processes must differ, and 0 is none: cards are numbered from 0. */
static uint32_t pid_number(const struct events *e, size_t process)
{
    const unsigned long pid = strtoul(e->processes[process].pid, NULL, 10);
    return pid == 0 || pid > INT32_MAX || process_is_device(e, process)
               ? FIRST_PID + (uint32_t)process
               : (uint32_t)pid;
}

static int write_lanes(struct build *b, size_t process, size_t main)
{
    /* The main thread is the one with the number of its process. */
    int rc = write_lane(b, main, 0, pid_number(b->e, process));
    unsigned number = 1;
    for (size_t i = 0; rc == 0 && i < b->e->lane_count; i++) {
        const struct event_lane *l = &b->e->lanes[i];
        if (l->process != process || l->events == 0 || i == main)
            continue;
        if (number == MAX_LANES)
            b->e->left_out += l->events;
        else
            rc = write_lane(b, i, number++, (uint32_t)strtoul(l->tid, NULL, 10));
    }
    return rc;
}

static void put_counter(struct build *b, const char *name, double value, uint64_t ns)
{
    const struct packwriter_site site = { .name = name, .category = "device" };
    packwriter_value(b->w, 0, packwriter_site(b->w, &site), VALUE_COUNTER, value, ns);
}

/* Under the names of analyse/phases.h, on the main thread, when all is over. */
static void write_device_time(struct build *b)
{
    const uint64_t ns = at_ns(b, b->last_ns);
    char name[64];
    if (!b->device.known)
        return;
    for (int p = 1; p < SONDE_PHASE_COUNT; p++) {
        (void)snprintf(name, sizeof name, "device_s:%s", sonde_phase_name(p));
        if (b->device.phase_s[p] > 0)
            put_counter(b, name, b->device.phase_s[p], ns);
    }
    put_counter(b, "device_busy_s", b->device.busy_s, ns);
    if (isfinite(b->launch_share))
        put_counter(b, "device_launch_share", b->launch_share, ns);
}

static int write_process(struct build *b, size_t process, size_t main, bool is_main)
{
    struct event_process *p = &b->e->processes[process];
    char path[1100], role[32];
    const bool device = process_is_device(b->e, process);
    (void)snprintf(role, sizeof role,
                   device    ? "gpu %.20s"
                   : is_main ? "main"
                             : "process",
                   p->pid);
    const struct packwriter_about about = { .pid = pid_number(b->e, process),
                                            .start_ns = at_ns(b, b->first_ns),
                                            .exe = p->name[0] ? p->name : p->pid,
                                            .role = role };
    if (snprintf(path, sizeof path, "%s/%020llu-%u-%08zx.sonde", b->dir,
                 (unsigned long long)about.start_ns, about.pid,
                 process) >= (int)sizeof path)
        return -ENAMETOOLONG;
    int rc = packwriter_new(path, &about, &b->w);
    if (rc < 0)
        return rc;
    memset(b->sites, 0, 2 * EVENT_NAMES * sizeof *b->sites);
    rc = write_lanes(b, process, main);
    if (rc == 0 && is_main)
        write_device_time(b);
    if (rc == 0)
        return packwriter_finish(b->w);
    packwriter_discard(b->w);
    return rc;
}

/* ---- All of them -------------------------------------------------------------------- */

static void span_of(const struct events *e, int64_t *ret_first, int64_t *ret_last)
{
    *ret_first = INT64_MAX;
    *ret_last = INT64_MIN;
    for (size_t i = 0; i < e->count; i++) {
        const struct event *x = &e->list[i];
        const bool zone = x->kind == EVENT_ZONE || x->kind == EVENT_STEP;
        const int64_t end = x->ts_ns + (zone ? x->dur_ns : 0);
        if (x->ts_ns < *ret_first)
            *ret_first = x->ts_ns;
        if (end > *ret_last)
            *ret_last = end;
    }
}

static size_t main_process_of(const struct events *e)
{
    size_t best = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < e->process_count; i++) {
        const size_t lane = main_lane_of(e, i);
        if (lane == NO_LANE || process_is_device(e, i))
            continue;
        if (e->lanes[lane].has_steps)
            return i;
        if (e->lanes[lane].events > most) {
            most = e->lanes[lane].events;
            best = i;
        }
    }
    return best;
}

/* Times must be positive and have room for a run: some traces count from 0. */
static void settle_base(struct build *b, int64_t first)
{
    b->first_ns = first;
    if (b->e->base_ns + first <= 0)
        b->e->base_ns = 1000000000 - first;
}

int build_traces(struct events *e, const char *dir, struct built *ret_built)
{
    struct build b = { .e = e, .dir = dir };
    struct built built = { 0 };
    int64_t first, last;
    events_sort(e);
    int rc = e->is_torch ? torch_add_backward(e) : 0;
    if (rc == 0)
        rc = device_time_read(e, &b.device);
    const size_t main_process = main_process_of(e);
    if (rc == 0)
        rc = launch_share_read(e, main_process, &b.launch_share);
    b.sites = calloc(2 * EVENT_NAMES, sizeof *b.sites);
    if (!b.sites || rc < 0) {
        free(b.sites);
        return rc < 0 ? rc : -ENOMEM;
    }
    span_of(e, &first, &last);
    settle_base(&b, first);
    b.last_ns = last;
    for (size_t i = 0; rc == 0 && i < e->process_count; i++) {
        const size_t lane = main_lane_of(e, i);
        if (lane == NO_LANE)
            continue;
        rc = write_process(&b, i, lane, i == main_process);
        built.processes++;
    }
    free(b.sites);
    if (rc < 0)
        return rc;
    built.start_ns = (int64_t)at_ns(&b, first);
    built.end_ns = (int64_t)at_ns(&b, last);
    built.main_pid = pid_number(e, main_process);
    built.steps = b.steps;
    *ret_built = built;
    return 0;
}
