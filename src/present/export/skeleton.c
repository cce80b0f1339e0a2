/* skeleton.c: an exporter to copy.
 *
 *   1. cp skeleton.c mine.c, rename export_skeleton
 *   2. declare it in export.h, give it a line in exporters.c
 *   3. tests/unit/present/: read the output back with somebody else's parser
 *
 * It writes "begin_ns duration_ns pid tid name" for every zone, inner zones before
 * outer ones. Names are the traced program's: whoever copies this must escape them
 * as the format wants; here, blanks and control characters become '_'.
 */
#include "present/export/export.h"

#include <errno.h>

#include "analyse/timeline.h"

struct skeleton {
    FILE *out;
    int64_t origin_ns;
    const struct trace *trace; /* the one being written */
    struct export_totals totals;
};

static void put_name(FILE *out, const char *name)
{
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        (void)fputc(*p <= ' ' || *p == 0x7f ? '_' : *p, out);
}

static int put_zone(void *arg, const struct timeline_zone *zone)
{
    struct skeleton *s = arg;
    (void)fprintf(s->out, "%lld %lld %u %u ",
                  (long long)(zone->begin_ns - s->origin_ns),
                  (long long)(zone->end_ns - zone->begin_ns), trace_info(s->trace)->pid,
                  zone->tid);
    put_name(s->out, trace_site(s->trace, zone->site)->name);
    return fputc('\n', s->out) == EOF ? -EIO : 0;
}

static int put_trace(void *arg, const struct trace *trace)
{
    struct skeleton *s = arg;
    const struct timeline_visitor visitor = { .zone = put_zone, .arg = s };
    struct timeline_totals totals;
    s->trace = trace;
    const int rc = timeline_walk(trace, &visitor, &totals);
    if (rc == 0)
        s->totals.zones += totals.zones;
    return rc;
}

int export_skeleton(const struct export_job *job, struct export_totals *ret_totals)
{
    struct skeleton s = { .out = job->out, .origin_ns = export_origin_ns(job->run) };
    const int rc = export_each(job, &s.totals, put_trace, &s);
    if (rc == 0)
        *ret_totals = s.totals;
    return rc;
}
