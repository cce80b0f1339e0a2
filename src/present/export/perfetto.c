/* perfetto.c: the timeline in Perfetto's own form (perfetto.dev, protos/perfetto/trace):
 * a stream of TracePackets for ui.perfetto.dev and trace_processor.
 *
 *   zones             TYPE_SLICE_BEGIN and _END on the track of their thread
 *   steps, marks      TYPE_INSTANT
 *   counters, metrics TYPE_COUNTER on a track of each
 *   spans             slices on a track of their own
 *   monitors          counters of the run
 *
 * Every process is a sequence of packets; names of sites are sent once in it and then
 * meant by number. Packets are in no order of time across threads, which readers sort
 * out; within one instant they are as they nest. Times are nanoseconds after the start of
 * the run. Memory does not grow with the trace.
 */
#include "present/export/export.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

#include "analyse/report.h"
#include "analyse/timeline.h"
#include "base/strmap.h"
#include "present/export/proto.h"

enum packet_field {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,
};
enum event_field {
    EVENT_CATEGORY_IID = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_CATEGORY = 22,
    EVENT_NAME = 23,
    EVENT_DOUBLE = 44,
};
enum event_type { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 };
/* What a track is of; part of its number. */
enum track_kind {
    TRACK_PROCESS = 1,
    TRACK_THREAD,
    TRACK_COUNTER,
    TRACK_SPAN,
    TRACK_RUN
};

struct perfetto {
    const struct export_job *job;
    int64_t origin_ns;
    const struct trace *trace;
    uint64_t sequence; /* of this trace */
    bool cleared;      /* its first packet was written */
    uint32_t pid;
    uint8_t *told; /* by site: bit 0 its names are sent, bit 1 its counter's track */
    size_t site_count;
    struct strmap threads; /* tids whose tracks are told */
    struct buf packet, message, inner, out;
    struct export_totals totals;
};

static uint64_t track(const struct perfetto *p, enum track_kind kind, uint64_t number)
{
    uint64_t x = p->sequence * 8 + kind;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL + number;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    x ^= x >> 31;
    return x ? x : 1;
}

/* ---- Packets ----------------------------------------------------------------------------- */

static int write_packet(struct perfetto *p)
{
    proto_uint(&p->packet, PACKET_SEQUENCE, p->sequence);
    proto_uint(&p->packet, PACKET_FLAGS,
               p->cleared ? NEEDS_STATE : STATE_CLEARED | NEEDS_STATE);
    p->cleared = true;
    buf_clear(&p->out);
    proto_message(&p->out, 1, &p->packet);
    p->totals.events++;
    return p->out.error ? p->out.error
                        : export_put(p->job->out, p->out.data, p->out.len);
}

/* The track described in p->message. */
static int write_track(struct perfetto *p)
{
    buf_clear(&p->packet);
    proto_message(&p->packet, PACKET_TRACK, &p->message);
    return write_packet(p);
}

static void begin_track(struct perfetto *p, uint64_t uuid, uint64_t parent)
{
    buf_clear(&p->message);
    proto_uint(&p->message, 1, uuid);
    if (parent)
        proto_uint(&p->message, 5, parent);
}

static void begin_event(struct perfetto *p, enum event_type type, uint64_t uuid)
{
    buf_clear(&p->message);
    proto_uint(&p->message, EVENT_TYPE, type);
    proto_uint(&p->message, EVENT_TRACK, uuid);
}

static void annotate_text(struct perfetto *p, const char *name, const char *text)
{
    if (!text || !text[0])
        return;
    buf_clear(&p->inner);
    proto_text(&p->inner, 10, name);
    proto_text(&p->inner, 6, text);
    proto_message(&p->message, EVENT_ANNOTATION, &p->inner);
}

static void annotate_number(struct perfetto *p, const char *name, double value)
{
    if (!isfinite(value))
        return;
    buf_clear(&p->inner);
    proto_text(&p->inner, 10, name);
    proto_double(&p->inner, 5, value);
    proto_message(&p->message, EVENT_ANNOTATION, &p->inner);
}

static void annotate_flag(struct perfetto *p, const char *name, bool set)
{
    if (!set)
        return;
    buf_clear(&p->inner);
    proto_text(&p->inner, 10, name);
    proto_uint(&p->inner, 2, 1);
    proto_message(&p->message, EVENT_ANNOTATION, &p->inner);
}

/* The event in p->message. Moments before the start of the run do not exist here. */
static int write_event(struct perfetto *p, int64_t time_ns)
{
    const int64_t since = time_ns - p->origin_ns;
    buf_clear(&p->packet);
    proto_uint(&p->packet, PACKET_TIMESTAMP, since > 0 ? (uint64_t)since : 0);
    proto_message(&p->packet, PACKET_EVENT, &p->message);
    return write_packet(p);
}

/* ---- Names ------------------------------------------------------------------------------- */

static const char *category_of(const struct trace_site *site)
{
    if (site->category[0])
        return site->category;
    const char *phase = site->phase ? sonde_phase_name(site->phase) : NULL;
    return phase ? phase : "zone";
}

static void intern(struct perfetto *p, struct buf *data, unsigned field, uint64_t iid,
                   const char *text)
{
    buf_clear(&p->inner);
    proto_uint(&p->inner, 1, iid);
    proto_text(&p->inner, 2, text);
    proto_message(data, field, &p->inner);
}

/* From then on the site's number + 1 is its name and its category. */
static int tell_site(struct perfetto *p, unsigned site)
{
    if (site >= p->site_count || p->told[site] & 1)
        return 0;
    const struct trace_site *s = trace_site(p->trace, site);
    p->told[site] |= 1;
    buf_clear(&p->message);
    intern(p, &p->message, 1, site + 1ULL, category_of(s));
    intern(p, &p->message, 2, site + 1ULL, s->name);
    buf_clear(&p->packet);
    proto_message(&p->packet, PACKET_INTERNED, &p->message);
    return write_packet(p);
}

static void put_names(struct perfetto *p, unsigned site)
{
    if (site < p->site_count) {
        proto_uint(&p->message, EVENT_CATEGORY_IID, site + 1ULL);
        proto_uint(&p->message, EVENT_NAME_IID, site + 1ULL);
    } else {
        proto_text(&p->message, EVENT_NAME, "?");
    }
}

static const char *thread_name(const struct perfetto *p, uint32_t tid)
{
    for (unsigned i = 0; i < trace_lane_count(p->trace); i++) {
        const struct trace_lane *lane = trace_lane(p->trace, i);
        if (lane && lane->tid == tid)
            return lane->name[0] ? lane->name : lane->is_main ? "main" : "";
    }
    return "";
}

static int tell_thread(struct perfetto *p, uint32_t tid)
{
    bool added;
    if (!strmap_enter(&p->threads, (const char *)&tid, sizeof tid, &added))
        return -ENOMEM;
    if (!added)
        return 0;
    char name[17];
    (void)snprintf(name, sizeof name, "%.16s", thread_name(p, tid));
    buf_clear(&p->inner);
    proto_uint(&p->inner, 1, p->pid);
    proto_uint(&p->inner, 2, tid);
    if (name[0])
        proto_text(&p->inner, 5, name);
    begin_track(p, track(p, TRACK_THREAD, tid), track(p, TRACK_PROCESS, 0));
    proto_message(&p->message, 4, &p->inner);
    return write_track(p);
}

static int tell_process(struct perfetto *p)
{
    const struct trace_info *info = trace_info(p->trace);
    struct buf name = BUF_INIT;
    buf_printf(&name, "%s%s%s", info->role, info->role[0] ? " " : "", info->exe);
    buf_clear(&p->inner);
    proto_uint(&p->inner, 1, p->pid);
    proto_text(&p->inner, 6, name.data);
    begin_track(p, track(p, TRACK_PROCESS, 0), 0);
    proto_message(&p->message, 3, &p->inner);
    buf_release(&name);
    return write_track(p);
}

/* ---- Zones ------------------------------------------------------------------------------- */

static void annotate_zone(struct perfetto *p, const struct timeline_zone *zone)
{
    const struct trace_site *site = trace_site(p->trace, zone->site);
    annotate_text(p, "component", site->component);
    annotate_text(p, "tags", site->tags);
    annotate_flag(p, "truncated", zone->truncated);
    annotate_flag(p, "open", zone->open);
    annotate_flag(p, "unbalanced", zone->unbalanced);
    annotate_flag(p, "begin_lost", zone->begin_lost);
    if (zone->has_op) {
        annotate_number(p, "cpu_ms", zone->cpu_ns / 1e6);
        annotate_number(p, "mem_before_mb", zone->mem_before_mb);
        annotate_number(p, "mem_after_mb", zone->mem_after_mb);
        annotate_number(p, "mem_peak_mb", zone->mem_peak_mb);
    }
    for (unsigned i = 0; i < zone->value_count; i++)
        annotate_number(p, trace_site(p->trace, zone->values[i].name)->name,
                        zone->values[i].value);
}

static int put_zone(void *arg, const struct timeline_zone *zone)
{
    struct perfetto *p = arg;
    const uint64_t where = track(p, TRACK_THREAD, zone->tid);
    int rc = tell_thread(p, zone->tid);
    if (rc == 0)
        rc = tell_site(p, zone->site);
    if (rc < 0)
        return rc;
    begin_event(p, SLICE_BEGIN, where);
    put_names(p, zone->site);
    annotate_zone(p, zone);
    rc = write_event(p, zone->begin_ns);
    if (rc < 0)
        return rc;
    begin_event(p, SLICE_END, where);
    return write_event(p, zone->end_ns);
}

/* ---- The other events --------------------------------------------------------------------- */

static int put_instant(struct perfetto *p, uint32_t tid, const struct trace_event *e,
                       const char *name, const char *number)
{
    int rc = tell_thread(p, tid);
    if (rc < 0)
        return rc;
    begin_event(p, INSTANT, track(p, TRACK_THREAD, tid));
    proto_text(&p->message, EVENT_CATEGORY, "sonde");
    proto_text(&p->message, EVENT_NAME, name);
    if (number && e->number)
        annotate_number(p, number, (double)e->number);
    return write_event(p, e->time_ns);
}

/* A track for numbers, a child of the process's or of nobody. */
static int tell_counter(struct perfetto *p, uint64_t uuid, uint64_t parent,
                        const char *name, const char *unit)
{
    buf_clear(&p->inner);
    if (unit[0])
        proto_text(&p->inner, 6, unit);
    begin_track(p, uuid, parent);
    proto_text(&p->message, 2, name);
    proto_message(&p->message, 8, &p->inner);
    return write_track(p);
}

static int put_number(struct perfetto *p, uint64_t uuid, int64_t time_ns, double value)
{
    begin_event(p, COUNTER, uuid);
    proto_double(&p->message, EVENT_DOUBLE, value);
    return write_event(p, time_ns);
}

static int put_counter(struct perfetto *p, const struct trace_event *e)
{
    const uint64_t uuid = track(p, TRACK_COUNTER, e->site);
    int rc = 0;
    if (!isfinite(e->value) || e->site >= p->site_count)
        return 0;
    if (!(p->told[e->site] & 2))
        rc = tell_counter(p, uuid, track(p, TRACK_PROCESS, 0),
                          trace_site(p->trace, e->site)->name, "");
    p->told[e->site] |= 2;
    return rc < 0 ? rc : put_number(p, uuid, e->time_ns, e->value);
}

/* Told when it ends; its track is told with each, for remembering ids would take memory
 * without bound. */
static int put_span(struct perfetto *p, const struct trace_event *e)
{
    const uint64_t uuid = track(p, TRACK_SPAN, e->number);
    const double wall = isfinite(e->wall_ns) && e->wall_ns > 0 ? e->wall_ns : 0;
    if (e->sub != SPAN_END)
        return 0;
    begin_track(p, uuid, track(p, TRACK_PROCESS, 0));
    proto_text(&p->message, 2, trace_site(p->trace, e->site)->name);
    int rc = write_track(p);
    if (rc == 0)
        rc = tell_site(p, e->site);
    if (rc < 0)
        return rc;
    begin_event(p, SLICE_BEGIN, uuid);
    put_names(p, e->site);
    annotate_number(p, "active_ms", e->active_ns / 1e6);
    annotate_number(p, "suspended_ms", fmax(e->wall_ns - e->active_ns, 0) / 1e6);
    rc = write_event(p, e->time_ns - llround(wall));
    if (rc < 0)
        return rc;
    begin_event(p, SLICE_END, uuid);
    return write_event(p, e->time_ns);
}

static int put_event(void *arg, uint32_t tid, const struct trace_event *e)
{
    struct perfetto *p = arg;
    switch (e->kind) {
    case TRACE_VALUE:
        return put_counter(p, e);
    case TRACE_STEP:
        return put_instant(p, tid, e, "step", "samples");
    case TRACE_MARK:
        return put_instant(p, tid, e, trace_site(p->trace, e->site)->name, NULL);
    case TRACE_LOST:
        return put_instant(p, tid, e, "events lost", "events");
    case TRACE_FILTERED:
        return put_instant(p, tid, e, "short zones left out", "zones");
    case TRACE_SPAN:
        return put_span(p, e);
    default:
        return 0;
    }
}

static int put_trace(void *arg, const struct trace *trace)
{
    struct perfetto *p = arg;
    const struct timeline_visitor visitor = { .zone = put_zone,
                                              .event = put_event,
                                              .arg = p };
    struct timeline_totals totals = { 0 };
    p->trace = trace;
    p->sequence++;
    p->cleared = false;
    p->pid = trace_info(trace)->pid;
    p->site_count = trace_site_count(trace);
    p->told = calloc(p->site_count + 1, 1);
    if (!p->told)
        return -ENOMEM;
    strmap_init(&p->threads);
    int rc = tell_process(p);
    if (rc == 0)
        rc = timeline_walk(trace, &visitor, &totals);
    strmap_release(&p->threads);
    free(p->told);
    p->told = NULL;
    p->totals.zones += totals.zones;
    p->totals.truncated += totals.truncated;
    p->totals.left_out += totals.orphan_ends + totals.too_deep;
    return rc;
}

/* ---- Monitors ----------------------------------------------------------------------------- */

static int put_series(struct perfetto *p, size_t number, const struct report_series *s)
{
    const uint64_t uuid = track(p, TRACK_RUN, number);
    int rc = tell_counter(p, uuid, 0, s->name, s->unit);
    for (size_t i = 0; rc == 0 && i < s->point_count; i++)
        rc = put_number(p, uuid, p->origin_ns + llround(s->points[i].t_s * 1e9),
                        s->points[i].mean);
    return rc;
}

static int put_monitors(struct perfetto *p)
{
    struct report *report;
    int rc = report_build(p->job->run, &report);
    if (rc < 0)
        return rc;
    p->sequence++;
    p->cleared = false;
    for (size_t i = 0; rc == 0 && i < report->monitors.series_count; i++)
        rc = put_series(p, i, &report->monitors.series[i]);
    report_free(report);
    return rc;
}

int export_perfetto(const struct export_job *job, struct export_totals *ret_totals)
{
    struct perfetto p = { .job = job,
                          .origin_ns = export_origin_ns(job->run),
                          .packet = BUF_INIT,
                          .message = BUF_INIT,
                          .inner = BUF_INIT,
                          .out = BUF_INIT };
    int rc = export_each(job, &p.totals, put_trace, &p);
    if (rc == 0)
        rc = put_monitors(&p);
    buf_release(&p.packet);
    buf_release(&p.message);
    buf_release(&p.inner);
    buf_release(&p.out);
    if (rc == 0)
        *ret_totals = p.totals;
    return rc;
}
