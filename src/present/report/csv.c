/* csv.c: the operations of a run as CSV (RFC 4180).
 *
 * One header line, CRLF line ends, every text cell quoted. A text that a spreadsheet
 * would take for a formula (= + - @ and what looks like them) gets an apostrophe in
 * front. Unknown numbers are empty cells. Units are those of report.json.
 */
#include "present/report/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "present/report/csvcell.h"
#include "present/report/filter.h"
#include "present/report/page.h"

static const char header[] =
    "name,path,kind,component,category,phase,file,line,tags,count,calls_per_s,total_s,"
    "self_s,mean_ms,std_ms,min_ms,max_ms,p50_ms,p95_ms,p99_ms,start_s,end_s,cpu_s,"
    "mem_before_mb,mem_after_mb,mem_peak_mb,truncated,open,unbalanced\r\n";

static const char *const kind_names[] = {
    [OP_ROOT] = "root",
    [OP_ZONE] = "zone",
    [OP_SPAN] = "span",
    [OP_OTHER] = "other",
};

static void put_count(struct buf *out, uint64_t value)
{
    buf_printf(out, ",%llu", (unsigned long long)value);
}

/* Outermost first, joined by " › ". */
static void join_path(struct buf *out, const struct op_table *t, uint32_t index)
{
    uint32_t chain[256];
    size_t n = 0;
    for (uint32_t at = index; at && n < 256; at = t->ops[at].parent)
        chain[n++] = at;
    while (n > 0) {
        buf_puts(out, t->ops[chain[--n]].name);
        if (n > 0)
            buf_puts(out, " › ");
    }
}

static void put_identity(struct buf *out, const struct op_table *t, uint32_t index)
{
    const struct op *op = &t->ops[index];
    const char *phase = op->phase ? sonde_phase_name(op->phase) : NULL;
    struct buf path = BUF_INIT;
    join_path(&path, t, index);
    csv_put_text(out, op->name);
    buf_putc(out, ',');
    csv_put_text(out, path.data);
    buf_printf(out, ",%s,", kind_names[op->kind]);
    csv_put_text(out, op->component);
    buf_putc(out, ',');
    csv_put_text(out, op->category);
    buf_printf(out, ",%s,", phase ? phase : "");
    csv_put_text(out, op->file);
    if (op->file[0])
        buf_printf(out, ",%d,", op->line);
    else
        buf_puts(out, ",,");
    csv_put_text(out, op->tags);
    buf_release(&path);
}

static double since_start_s(const struct report *r, int64_t ns)
{
    return ns && r->start_ns ? (double)(ns - r->start_ns) / 1e9 : NAN;
}

static void put_numbers(struct buf *out, const struct report *r, const struct op *op)
{
    const struct distribution *d = &op->durations;
    const bool any = d->count > 0;
    put_count(out, d->count);
    csv_put_number(out, (double)d->count / report_duration_s(r), 1);
    csv_put_number(out, op->total_ns, 1e-9);
    csv_put_number(out, op->self_ns, 1e-9);
    csv_put_number(out, any ? d->mean : NAN, 1e-6);
    csv_put_number(out, distribution_std(d), 1e-6);
    csv_put_number(out, any ? d->min : NAN, 1e-6);
    csv_put_number(out, any ? d->max : NAN, 1e-6);
    csv_put_number(out, distribution_quantile(d, 0.50), 1e-6);
    csv_put_number(out, distribution_quantile(d, 0.95), 1e-6);
    csv_put_number(out, distribution_quantile(d, 0.99), 1e-6);
    csv_put_number(out, since_start_s(r, op->first_ns), 1);
    csv_put_number(out, since_start_s(r, op->last_ns), 1);
    csv_put_number(out, op->op_count ? op->cpu_ns : NAN, 1e-9);
    csv_put_number(out, op->mem_before_mb, 1);
    csv_put_number(out, op->mem_after_mb, 1);
    csv_put_number(out, op->mem_peak_mb, 1);
    put_count(out, op->truncated);
    put_count(out, op->open);
    put_count(out, op->unbalanced);
    buf_puts(out, "\r\n");
}

static int write_out(struct buf *line, FILE *out)
{
    if (line->error)
        return line->error;
    errno = 0;
    if (fwrite(line->data, 1, line->len, out) != line->len)
        return errno > 0 ? -errno : -EIO;
    buf_clear(line);
    return 0;
}

int report_csv(const struct report *report, const struct report_style *style, FILE *out)
{
    const struct op_table *t = &report->ops;
    struct op_filter filter;
    struct buf line = BUF_INIT;
    int rc = op_filter_init(&filter, t, style, 0);
    if (rc < 0)
        return rc;
    buf_puts(&line, header);
    rc = write_out(&line, out);
    for (size_t i = 0; rc == 0 && i < t->order_count; i++) {
        if (!filter.shown[t->order[i]])
            continue;
        put_identity(&line, t, t->order[i]);
        put_numbers(&line, report, &t->ops[t->order[i]]);
        rc = write_out(&line, out);
    }
    buf_release(&line);
    op_filter_release(&filter);
    return rc;
}
