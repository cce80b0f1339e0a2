/* loadersection.c: data loaders in the text report: what they are, who waited for whom,
 * what samples are made of, and which were slow.
 */
#include "present/report/sections.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/human.h"

enum { FEW_LOADERS = 2, FEW_TRANSFORMS = 4, FEW_SLOW = 2, TAIL = 40 };
/* A sample is worth a name when it took so many times the median. */
static const double slow_times = 5;

static const char *tail_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void put_clean(struct flow *flow, const char *fmt, const char *text)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, text, TAIL);
    if (clean.len)
        flow_put(flow, fmt, clean.data); // NOLINT: formats are literals below
    buf_release(&clean);
}

static void put_settings(struct flow *flow, const struct loader *l)
{
    struct buf place = BUF_INIT;
    if (l->file[0]) {
        clean_text(&place, tail_of(l->file), TAIL);
        flow_put(flow, "%s:%d", place.data, l->line);
    }
    buf_release(&place);
    put_clean(flow, "%s", l->dataset);
    if (l->num_workers)
        flow_put(flow, "%d worker%s × %d", l->num_workers,
                 l->num_workers == 1 ? "" : "s", l->prefetch_factor);
    else
        flow_put(flow, "no workers");
    if (l->batch_size > 0)
        flow_put(flow, "batch %d", l->batch_size);
    if (l->pin_memory)
        flow_put(flow, "pinned");
    if (l->persistent_workers)
        flow_put(flow, "persistent");
}

static void put_waiting(struct flow *flow, const struct loader *l)
{
    char a[HUMAN_LEN];
    char b[HUMAN_LEN];
    flow_put(flow, "%s batches in %s epoch%s", human_count(a, l->batches),
             human_count(b, l->epochs), l->epochs == 1 ? "" : "s");
    flow_put(flow, "waited %s", human_duration(a, l->wait_s * 1e9));
    if (!isnan(l->wait_share))
        flow_put(flow, "%s of its loop", human_percent(a, l->wait_share));
    if (!isnan(l->ready_share))
        flow_put(flow, "already there %s of the times",
                 human_percent(a, l->ready_share));
    if (l->first_fetch.d.count && l->epoch_count)
        flow_put(flow, "first batch after %s",
                 human_duration(a, l->first_fetch.d.mean));
    if (l->out_of_order.wait_s > 0.01 * l->wait_s && l->out_of_order.count)
        flow_put(flow, "%s out of order, %s", human_count(a, l->out_of_order.count),
                 human_duration(b, l->out_of_order.wait_s * 1e9));
}

/* Reading the clock of a thread's CPU time takes a microsecond itself. */
static const double least_cpu_ns = 20e3;

static void put_sample(struct flow *flow, const struct loader *l)
{
    char a[HUMAN_LEN];
    char b[HUMAN_LEN];
    /* batch_size=None: the data set gives whole batches. */
    const bool whole = l->batch_size <= 0 && l->sample.d.count <= l->batches;
    const char *what = whole ? "item of the data set" : "sample";
    human_duration(a, l->sample.d.mean);
    if (l->sample_cpu.d.count && l->sample.d.mean >= least_cpu_ns)
        flow_put(flow, "%s %s (CPU %s)", what, a,
                 human_duration(b, l->sample_cpu.d.mean));
    else
        flow_put(flow, "%s %s", what, a);
}

static void put_making(struct flow *flow, const struct loader *l)
{
    char a[HUMAN_LEN];
    if (l->sample.d.count)
        put_sample(flow, l);
    for (size_t i = 0; i < l->transform_count && i < FEW_TRANSFORMS; i++) {
        const struct loader_transform *t = &l->transforms[i];
        struct buf name = BUF_INIT;
        clean_text(&name, t->name, TAIL);
        flow_put(flow, "%s %s", name.data, human_duration(a, t->wall.d.mean));
        buf_release(&name);
    }
    if (l->collate.d.count)
        flow_put(flow, "collate %s", human_duration(a, l->collate.d.mean));
    if (l->pickle.d.count)
        flow_put(flow, "sending %s a batch",
                 human_duration(a, l->pickle.d.mean + l->send.d.mean));
    if (l->batch_bytes.count)
        flow_put(flow, "%s a batch", human_bytes(a, l->batch_bytes.mean));
}

static void put_workers(struct flow *flow, const struct loader *l)
{
    double busy = 0;
    double idle = 0;
    uint32_t unheard = 0;
    char a[HUMAN_LEN];
    for (size_t i = 0; i < l->worker_count; i++) {
        busy += l->workers[i].busy_s;
        idle += l->workers[i].idle_s;
        unheard += l->workers[i].unheard;
    }
    if (busy + idle > 0)
        flow_put(flow, "workers busy %s", human_percent(a, busy / (busy + idle)));
    if (loader_copied_mb(l) >= 1)
        flow_put(flow, "copied %.0f MiB of the main process's pages",
                 loader_copied_mb(l));
    if (unheard)
        flow_put(flow, "%u worker%s left no word", unheard, unheard == 1 ? "" : "s");
}

/* Share of what the loop waited for, together, below which slow samples are no news. */
static const double slow_share = 0.005;

static bool slow_matter(const struct loader *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->slowest_count; i++)
        sum += l->slowest[i].wall_ns;
    return sum >= slow_share * l->wait_s * 1e9;
}

static void put_slow(struct page *page, const struct loader *l)
{
    char a[HUMAN_LEN];
    char b[HUMAN_LEN];
    for (size_t i = 0; i < l->slowest_count && i < FEW_SLOW; i++) {
        const struct loader_slow_sample *s = &l->slowest[i];
        struct flow flow;
        if (!(s->times_median >= slow_times))
            break;
        flow_begin(&flow, page, "");
        if (s->index >= 0)
            flow_put(&flow, "slow sample %lld", (long long)s->index);
        else
            flow_put(&flow, "slow sample, number %s of its worker",
                     human_count(a, s->number + 1));
        put_clean(&flow, "%s", tail_of(s->path));
        flow_put(&flow, "%s, %.0f× the median", human_duration(a, s->wall_ns),
                 s->times_median);
        if (s->slowest[0] && s->slowest_ns > s->wall_ns / 2)
            put_clean(&flow, "by %s", s->slowest);
        else if (!isnan(s->cpu_ns))
            flow_put(&flow, "CPU %s", human_duration(b, s->cpu_ns));
        flow_end(&flow);
    }
}

void section_loaders(struct page *page, const struct report *r, bool full)
{
    const struct loader_report *loaders = &r->loaders;
    struct flow flow;
    size_t shown = 0;
    for (size_t i = 0; i < loaders->count; i++) {
        const struct loader *l = &loaders->list[i];
        if (!l->batches || (!full && shown == FEW_LOADERS))
            continue;
        flow_begin(&flow, page, shown ? "" : "LOADER");
        put_settings(&flow, l);
        flow_end(&flow);
        flow_begin(&flow, page, "");
        put_waiting(&flow, l);
        flow_end(&flow);
        flow_begin(&flow, page, "");
        put_making(&flow, l);
        put_workers(&flow, l);
        flow_end(&flow);
        if (full || slow_matter(l))
            put_slow(page, l);
        shown++;
    }
    if (shown)
        page_puts(page, PLAIN, "\n");
}
