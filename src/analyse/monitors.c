/* monitors.c: see monitors.h. */
#include "analyse/monitors.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/parts.h"
#include "analyse/report.h"
#include "base/buf.h"
#include "trace/monitor_rows.h"
#include "trace/tablefiles.h"

/* More than any run has; a hostile one must not fill our memory. */
enum { FILES_MOST = 64, SERIES_MOST = 20000, GAPS_MOST = 64, SHIFT_MOST = 40 };

struct source {
    struct report *r;
    const struct tablefile *file;
    struct monitor_info_row info;
    double offset_s; /* of its start after the run's */
    bool alone;      /* its series need no mark */
};

/* No unit we have leads to larger numbers; readers of JSON stumble over them. */
static bool is_sane(double value)
{
    return isfinite(value) && fabs(value) < 1e18;
}

static uint64_t sane_count(uint64_t count)
{
    return count < INT64_MAX ? count : INT64_MAX;
}

static const char *keep(struct report *r, const char *text)
{
    const char *copy = text[0] ? arena_strdup(&r->arena, text) : "";
    return copy ? copy : "";
}

/* ---- Series ------------------------------------------------------------------------- */

static const char *series_name(struct source *s, const char *metric,
                               const char *subject)
{
    struct buf b = BUF_INIT;
    buf_puts(&b, metric);
    if (subject[0])
        buf_printf(&b, "/%s", subject);
    if (!s->alone && s->info.inside)
        buf_printf(&b, "/inside %u", tablefile_head(s->file)->pid);
    const char *name = b.error ? "" : keep(s->r, b.data);
    buf_release(&b);
    return name;
}

static bool read_points(struct source *s, const struct monitor_series_row *row,
                        struct monitor_points_row *ret_points)
{
    const int table = tablefile_find(s->file, "points");
    const uint32_t place = row->points[row->state >> 1 & 1];
    return table >= 0 && place &&
           tablefile_get(s->file, table, place - 1, ret_points, sizeof *ret_points);
}

static int add_points(struct source *s, const struct monitor_series_row *row,
                      struct report_series *one)
{
    struct monitor_points_row points;
    const uint64_t shift = row->state >> 8 & 0xff;
    size_t count = 0;
    if (shift > SHIFT_MOST || !read_points(s, row, &points))
        return 0;
    for (unsigned i = 0; i < MONITOR_POINTS; i++)
        count += points.point[i] != 0;
    struct series_point *list = arena_alloc_array(&s->r->arena, count ? count : 1,
                                                  sizeof *list);
    if (!list)
        return -ENOMEM;
    const double width_s = ldexp((double)s->info.base_ns / 1e9, (int)shift);
    for (unsigned i = 0; i < MONITOR_POINTS; i++) {
        struct series_point p = { .t_s = s->offset_s + i * width_s };
        if (!points.point[i])
            continue;
        monitor_point_read(points.point[i], &p.mean, &p.max);
        if (is_sane(p.mean) && is_sane(p.max) && is_sane(p.t_s))
            list[one->point_count++] = p;
    }
    one->points = list;
    return 0;
}

static struct report_series *new_series(struct report_monitors *m)
{
    if (m->series_count == m->series_cap) {
        const size_t cap = m->series_cap ? m->series_cap * 2 : 128;
        struct report_series *more = realloc(m->series, cap * sizeof *more);
        if (!more)
            return NULL;
        m->series = more;
        m->series_cap = cap;
    }
    return &m->series[m->series_count];
}

static int add_series(struct source *s, const struct monitor_series_row *row)
{
    struct report_monitors *m = &s->r->monitors;
    const struct monitor_stats *stats = &row->stats[row->state & 1];
    if (stats->count == 0 || !is_sane(stats->max) || !is_sane(stats->min) ||
        !is_sane(stats->last) || m->series_count >= SERIES_MOST)
        return 0;
    const char *metric = keep(s->r, tablefile_text(s->file, row->metric));
    struct report_series *one = new_series(m);
    if (!one)
        return -ENOMEM;
    *one = (struct report_series){
        .metric = metric,
        .subject = keep(s->r, tablefile_text(s->file, row->subject)),
        .unit = keep(s->r, tablefile_text(s->file, row->unit)),
        .count = sane_count(stats->count),
        .covered_s = stats->weight_s,
        .avg = stats->weight_s > 0 ? stats->sum / stats->weight_s : stats->last,
        .min = stats->min,
        .max = stats->max,
        .last = stats->last,
    };
    one->name = series_name(s, one->metric, one->subject);
    if (!metric[0] || !is_sane(one->avg))
        return 0;
    m->series_count++;
    return add_points(s, row, one);
}

static int read_series(struct source *s)
{
    const int table = tablefile_find(s->file, "series");
    const uint32_t count = table < 0 ? 0 : tablefile_count(s->file, table);
    struct monitor_series_row row;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        if (tablefile_get(s->file, table, i, &row, sizeof row))
            rc = add_series(s, &row);
    return rc;
}

/* ---- Processes and gaps -------------------------------------------------------------- */

/* In the order of enum monitor_total of the writer. */
enum {
    CPU_S,
    PEAK_RSS_MB,
    PEAK_PRIVATE_MB,
    READ,
    WRITTEN,
    DISK_READ,
    DISK_WRITTEN,
    THREADS,
    VOLUNTARY,
    INVOLUNTARY
};

static double total(const struct monitor_process_row *row, unsigned what, double unit)
{
    const double value = row->total[what];
    return row->set >> what & 1 && is_sane(value) && value >= 0 ? value / unit : NAN;
}

static int add_process(struct source *s, const struct monitor_process_row *row)
{
    struct report_monitors *m = &s->r->monitors;
    const double mib = 1 << 20;
    if (m->process_count == m->process_cap) {
        const size_t cap = m->process_cap ? m->process_cap * 2 : 64;
        struct watched_process *more = realloc(m->processes, cap * sizeof *more);
        if (!more)
            return -ENOMEM;
        m->processes = more;
        m->process_cap = cap;
    }
    m->processes[m->process_count++] = (struct watched_process){
        .pid = row->pid,
        .ppid = row->ppid,
        .exe = keep(s->r, tablefile_text(s->file, row->exe)),
        .command = keep(s->r, tablefile_text(s->file, row->command)),
        .first_s = s->offset_s + (double)row->first_ns / 1e9,
        .last_s = s->offset_s + (double)row->last_ns / 1e9,
        .cpu_s = total(row, CPU_S, 1),
        .peak_rss_mb = total(row, PEAK_RSS_MB, 1),
        .peak_private_mb = total(row, PEAK_PRIVATE_MB, 1),
        .read_mb = total(row, READ, mib),
        .written_mb = total(row, WRITTEN, mib),
        .disk_read_mb = total(row, DISK_READ, mib),
        .disk_written_mb = total(row, DISK_WRITTEN, mib),
        .voluntary_switches = total(row, VOLUNTARY, 1),
        .involuntary_switches = total(row, INVOLUNTARY, 1),
        .end_known = row->end & MONITOR_EXIT_KNOWN,
        .end_status = (int)(row->end & 0xffff),
    };
    return 0;
}

static int read_processes(struct source *s)
{
    const int table = tablefile_find(s->file, "processes");
    const uint32_t count = table < 0 ? 0 : tablefile_count(s->file, table);
    struct monitor_process_row row;
    int rc = 0;
    /* A program that watched itself is known from outside already. */
    if (s->info.inside && !s->alone)
        return 0;
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        if (tablefile_get(s->file, table, i, &row, sizeof row) && row.pid)
            rc = add_process(s, &row);
    return rc;
}

static int read_gaps(struct source *s)
{
    struct report_monitors *m = &s->r->monitors;
    const int table = tablefile_find(s->file, "gaps");
    const uint32_t count = table < 0 ? 0 : tablefile_count(s->file, table);
    struct monitor_gap_row row;
    if (m->gaps || !count)
        return 0; /* the first file has told them */
    m->gaps = arena_alloc_array(&s->r->arena, GAPS_MOST, sizeof *m->gaps);
    if (!m->gaps)
        return -ENOMEM;
    for (uint32_t i = 0; i < count && m->gap_count < GAPS_MOST; i++)
        if (tablefile_get(s->file, table, i, &row, sizeof row))
            m->gaps[m->gap_count++] = (struct monitor_gap){
                keep(s->r, tablefile_text(s->file, row.metric)),
                keep(s->r, tablefile_text(s->file, row.why)),
            };
    return 0;
}

/* ---- Files --------------------------------------------------------------------------- */

static void add_info(struct source *s)
{
    struct report_monitors *m = &s->r->monitors;
    if (!m->present) {
        m->present = true;
        m->interval_s = (double)s->info.interval_ns / 1e9;
        m->rounds = sane_count(s->info.rounds);
    }
    m->cost_s += (double)s->info.cost_ns / 1e9;
    m->series_lost = sane_count(m->series_lost + sane_count(s->info.series_lost));
    m->processes_lost = sane_count(m->processes_lost +
                                   sane_count(s->info.processes_lost));
}

static bool read_info(const struct tablefile *file, struct monitor_info_row *ret_info)
{
    const int table = tablefile_find(file, "info");
    return table >= 0 && tablefile_get(file, table, 0, ret_info, sizeof *ret_info) &&
           ret_info->base_ns > 0;
}

static int read_file(struct source *s)
{
    const int64_t origin = s->r->start_ns;
    s->offset_s = origin ? ((double)s->info.start_real_ns - (double)origin) / 1e9 : 0;
    /* Clocks are stepped at times; nothing was seen before the start. */
    if (!(s->offset_s >= 0) || s->offset_s > 1e9)
        s->offset_s = 0;
    add_info(s);
    int rc = read_series(s);
    if (rc == 0)
        rc = read_processes(s);
    return rc < 0 ? rc : read_gaps(s);
}

/* First the files from outside, then those of programs that watched themselves. */
struct pass {
    struct report *r;
    bool inside, alone;
    unsigned files; /* that are there */
};

static int pass_file(void *arg, const char *name, struct tablefile *file, int rc)
{
    struct pass *p = arg;
    struct source s = { .r = p->r, .file = file, .alone = p->alone };
    (void)name;
    p->files++;
    return rc == 0 && p->files <= FILES_MOST && read_info(file, &s.info) &&
                   (s.info.inside != 0) == p->inside
               ? read_file(&s)
               : 0;
}

static int read_files(struct report *r)
{
    struct pass p = { .r = r, .alone = true };
    int rc = tablefiles_each(r->run->dir, MONITOR_KIND, pass_file, &p);
    p = (struct pass){ .r = r,
                       .inside = true,
                       .alone = !r->monitors.present && p.files == 1 };
    return rc < 0 ? rc : tablefiles_each(r->run->dir, MONITOR_KIND, pass_file, &p);
}

static void mark_traced(struct report *r)
{
    for (size_t i = 0; i < r->process_count; i++) {
        const struct watched_process *p = monitors_process(&r->monitors,
                                                           r->processes[i].pid);
        if (p)
            r->monitors.processes[p - r->monitors.processes].traced = true;
    }
}

/* Who asks for one trace does not ask for the other processes. */
static void keep_traced(struct report_monitors *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->process_count; i++)
        if (m->processes[i].traced)
            m->processes[kept++] = m->processes[i];
    m->process_count = kept;
}

int monitors_read(struct report *r)
{
    const int rc = read_files(r);
    mark_traced(r);
    if (r->run->single)
        keep_traced(&r->monitors);
    return rc;
}

const struct report_series *monitors_find(const struct report_monitors *m,
                                          const char *metric, const char *subject)
{
    for (size_t i = 0; i < m->series_count; i++)
        if (strcmp(m->series[i].metric, metric) == 0 &&
            strcmp(m->series[i].subject, subject) == 0)
            return &m->series[i];
    return NULL;
}

const struct watched_process *monitors_process(const struct report_monitors *m,
                                               uint32_t pid)
{
    for (size_t i = m->process_count; i-- > 0;)
        if (m->processes[i].pid == pid)
            return &m->processes[i];
    return NULL;
}
