/* lanes.c: in which phase a thread was, bucket by bucket.
 *
 * A moment belongs to the phase of the innermost zone that names one. Zones come when
 * they end, inner ones first: each adds its time to its phase, less what zones inside
 * it have claimed for theirs, and hands the claim outwards. A zone without a phase
 * claims nothing of its own; what reaches the outermost zone unclaimed is `other`.
 */
#include "present/html/lanes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/run.h"

/* ---- The list ------------------------------------------------------------------------ */

static void add_lane(struct lanes *l, size_t file, const struct trace *trace,
                     const struct trace_lane *from, bool main_process)
{
    const struct trace_info *info = trace_info(trace);
    if (l->count == LANES_MOST) {
        l->left_out++;
        return;
    }
    struct lane *lane = &l->lanes[l->count++];
    *lane = (struct lane){ .pid = info->pid,
                           .tid = from->tid,
                           .file = file,
                           .number = from->number,
                           .is_main = from->is_main,
                           .trains = main_process && from->is_main,
                           .partial = !info->timeline_complete };
    lane->buckets = lane->trains ? BUCKETS_MAIN : BUCKETS;
    memcpy(lane->name, from->name, sizeof(lane->name) - 1);
    (void)snprintf(lane->role, sizeof(lane->role), "%s", info->role);
}

static void list_trace(struct lanes *l, const struct report *r, size_t file,
                       bool main_process)
{
    struct trace *trace;
    if (run_trace_open(r->run, file, &trace) < 0)
        return;
    for (int main_first = 1; main_first >= 0; main_first--)
        for (unsigned i = 0; i < trace_lane_count(trace); i++) {
            const struct trace_lane *lane = trace_lane(trace, i);
            if (lane && lane->events > 0 && lane->is_main == (main_first == 1))
                add_lane(l, file, trace, lane, main_process);
        }
    trace_free(trace);
}

/* The file of the main process among those of the run; SIZE_MAX without. */
static size_t main_file(const struct report *r)
{
    if (r->main_process == SIZE_MAX)
        return SIZE_MAX;
    for (size_t i = 0; i < r->run->file_count; i++)
        if (strcmp(r->run->files[i], r->processes[r->main_process].file) == 0)
            return i;
    return SIZE_MAX;
}

int lanes_init(struct lanes *ret_lanes, const struct report *report)
{
    struct lanes l = { .start_ns = report->start_ns, .end_ns = report->end_ns };
    const size_t first = main_file(report);
    l.lanes = calloc(LANES_MOST, sizeof(*l.lanes));
    if (!l.lanes)
        return -ENOMEM;
    if (first != SIZE_MAX)
        list_trace(&l, report, first, true);
    for (size_t i = 0; i < report->run->file_count; i++)
        if (i != first)
            list_trace(&l, report, i, false);
    if (l.end_ns <= l.start_ns)
        l.end_ns = l.start_ns + 1;
    *ret_lanes = l;
    return 0;
}

void lanes_release(struct lanes *lanes)
{
    for (size_t i = 0; i < lanes->count; i++)
        for (int p = 0; p < SONDE_PHASE_COUNT; p++)
            free(lanes->lanes[i].busy[p]);
    for (int d = 0; d < LANE_DEPTHS; d++)
        free(lanes->claimed[d]);
    free(lanes->lanes);
    *lanes = (struct lanes){ 0 };
}

struct lane *lanes_find(struct lanes *lanes, size_t file, unsigned number)
{
    for (size_t i = 0; i < lanes->count; i++)
        if (lanes->lanes[i].file == file && lanes->lanes[i].number == number)
            return &lanes->lanes[i];
    return NULL;
}

/* ---- Zones --------------------------------------------------------------------------- */

void lanes_begin(struct lanes *lanes)
{
    for (int d = 0; d < LANE_DEPTHS; d++)
        if (lanes->claimed[d])
            memset(lanes->claimed[d], 0, BUCKETS_MAIN * sizeof(float));
}

static float *row(float **at, size_t count)
{
    if (!*at)
        *at = calloc(count, sizeof(float));
    return *at;
}

struct span {
    float *phase, *inner, *outer;
    bool names_phase;
};

/* One bucket's part of a zone, `ns` long. */
static void add_part(const struct span *s, unsigned bucket, double ns)
{
    const double taken = s->inner ? s->inner[bucket] : 0;
    if (s->names_phase) {
        s->phase[bucket] += (float)fmax(ns - taken, 0);
        if (s->outer)
            s->outer[bucket] += (float)ns;
    } else if (s->outer) {
        s->outer[bucket] += (float)taken;
    }
    if (s->inner)
        s->inner[bucket] = 0;
}

static void add_parts(const struct lanes *l, const struct lane *lane,
                      const struct span *s, int64_t begin_ns, int64_t end_ns)
{
    const double width = (double)(l->end_ns - l->start_ns) / lane->buckets;
    const double from = fmax((double)(begin_ns - l->start_ns), 0);
    const double to = fmin((double)(end_ns - l->start_ns),
                           (double)(l->end_ns - l->start_ns));
    if (!(to >= from))
        return;
    unsigned at = (unsigned)fmin(from / width, lane->buckets - 1);
    const unsigned last = (unsigned)fmin(to / width, lane->buckets - 1);
    for (; at <= last; at++) {
        const double low = fmax(from, at * width);
        const double high = fmin(to, (at + 1) * width);
        add_part(s, at, fmax(high - low, 0));
    }
}

int lanes_add_zone(struct lanes *lanes, struct lane *lane, unsigned depth, int phase,
                   int64_t begin_ns, int64_t end_ns)
{
    struct span s = { .names_phase = phase != SONDE_NO_PHASE || depth == 0 };
    const int counted = phase != SONDE_NO_PHASE ? phase : SONDE_OTHER;
    if (depth >= LANE_DEPTHS || counted < 0 || counted >= SONDE_PHASE_COUNT)
        return 0;
    s.phase = row(&lane->busy[counted], lane->buckets);
    s.inner = depth + 1 < LANE_DEPTHS ? lanes->claimed[depth + 1] : NULL;
    s.outer = depth > 0 ? row(&lanes->claimed[depth], BUCKETS_MAIN) : NULL;
    if (!s.phase || (depth > 0 && !s.outer))
        return -ENOMEM;
    add_parts(lanes, lane, &s, begin_ns, end_ns);
    lane->zones++;
    lanes->zones++;
    if (depth + 1 > lane->depth)
        lane->depth = depth + 1;
    return 0;
}

/* ---- Writing ------------------------------------------------------------------------- */

/* Percent of the bucket; a trace of something is never nothing. */
static void put_busy(struct json_writer *w, const struct lane *lane, const float *busy,
                     double width)
{
    json_array_begin(w);
    for (unsigned b = 0; b < lane->buckets; b++) {
        const double percent = busy[b] / width * 100;
        json_put_int(w, percent > 0 ? (int64_t)fmin(fmax(round(percent), 1), 100) : 0);
    }
    json_array_end(w);
}

static void put_lane(struct json_writer *w, const struct lanes *l,
                     const struct lane *lane)
{
    const double width = (double)(l->end_ns - l->start_ns) / lane->buckets;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = { { "pid", lane->pid },
                    { "tid", lane->tid },
                    { "depth", lane->depth },
                    { "zones", lane->zones },
                    { "buckets", lane->buckets } };
    json_object_begin(w);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        json_key(w, numbers[i].key);
        json_put_uint(w, numbers[i].value);
    }
    json_key(w, "name");
    json_put_string(w, lane->name);
    json_key(w, "role");
    json_put_string(w, lane->role);
    json_key(w, "main");
    json_put_bool(w, lane->is_main);
    json_key(w, "trains");
    json_put_bool(w, lane->trains);
    json_key(w, "partial");
    json_put_bool(w, lane->partial);
    json_key(w, "busy");
    json_object_begin(w);
    for (int p = 1; p < SONDE_PHASE_COUNT; p++)
        if (lane->busy[p]) {
            json_key(w, sonde_phase_name(p));
            put_busy(w, lane, lane->busy[p], width);
        }
    json_object_end(w);
    json_object_end(w);
}

void lanes_put(struct json_writer *w, const struct lanes *lanes)
{
    json_key(w, "lanes");
    json_array_begin(w);
    for (size_t i = 0; i < lanes->count; i++)
        put_lane(w, lanes, &lanes->lanes[i]);
    json_array_end(w);
    json_key(w, "lanes_left_out");
    json_put_uint(w, lanes->left_out);
    json_key(w, "zones");
    json_put_uint(w, lanes->zones);
}
