/* machine.c: what the run did to the machine, as text. */
#include "present/report/sections.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>

#include "base/human.h"

enum { SPARK_MAX = 60, POINTS_MOST = 256, PROCESSES_SHOWN = 1000 };

static const struct report_series *find(const struct report *r, const char *metric)
{
    return monitors_find(&r->monitors, metric, "");
}

/* "3.1 of 128 GiB" reads best in the unit of the larger. */
static void put_mib(struct buf *out, double mib)
{
    if (mib >= 1024)
        buf_printf(out, "%.3g GiB", mib / 1024);
    else
        buf_printf(out, "%.3g MiB", mib);
}

static void put_cpu(struct flow *flow, const struct report *r)
{
    const struct report_series *cpu = find(r, "cpu");
    const int cores = r->run->meta.cores;
    if (!cpu)
        return;
    if (cores > 0)
        flow_put(flow, "CPU %.2g of %d core%s, peak %.2g", cpu->avg / 100, cores,
                 cores == 1 ? "" : "s", cpu->max / 100);
    else
        flow_put(flow, "CPU %.2g cores, peak %.2g", cpu->avg / 100, cpu->max / 100);
}

/* Grown, shrunk or the same: the last quarter against the second. */
static const char *trend(const struct report_series *s)
{
    double early = 0, late = 0;
    const size_t quarter = s->point_count / 4;
    if (quarter < 2)
        return "";
    for (size_t i = 0; i < quarter; i++) {
        early += s->points[quarter + i].mean;
        late += s->points[s->point_count - quarter + i].mean;
    }
    if (late > early * 1.05)
        return ", growing";
    return late < early * 0.95 ? ", shrinking" : ", flat";
}

static const struct report_series *memory_of(const struct report *r)
{
    const struct report_series *pss = find(r, "pss"), *rss = find(r, "rss");
    /* PSS now and then, because it was dear, says less than RSS all the time. */
    return pss && rss && pss->count * 2 >= rss->count ? pss : rss;
}

static void put_memory(struct flow *flow, const struct report *r)
{
    const struct report_series *used = memory_of(r);
    const struct report_series *limit = find(r, "cgroup_memory_limit");
    const struct report_series *total = limit ? limit : find(r, "memory_total");
    struct buf b = BUF_INIT;
    if (!used)
        return;
    /* A program that died between two readings had more than they saw. */
    const double peak = report_peak_rss_mb(r);
    put_mib(&b, peak > used->max ? peak : used->max);
    if (total) {
        buf_puts(&b, " of ");
        put_mib(&b, total->last);
        buf_puts(&b, limit ? " allowed" : "");
    }
    /* Added up over processes, RSS counts what they share in each of them. */
    const bool shared = strcmp(used->metric, "rss") == 0 && peak < used->max &&
                        r->monitors.process_count > 1;
    flow_put(flow, "RAM %s %s%s", shared ? "up to" : "peak", b.data, trend(used));
    buf_release(&b);
}

/* "read 100 MiB/s"; nothing when there was next to nothing. */
static void put_rate(struct flow *flow, const struct report *r, const char *metric,
                     const char *words)
{
    const struct report_series *s = find(r, metric);
    if (s && s->avg >= 0.05)
        flow_put(flow, "%s %.3g MiB/s", words, s->avg);
}

static void put_worries(struct flow *flow, const struct report *r)
{
    static const struct {
        const char *metric, *words, *unit;
        double from;
    } list[] = {
        { "cgroup_throttled", "throttled", " %", 1 },
        { "cpu_steal", "stolen", " % of a core", 5 },
        { "cpu_iowait", "I/O wait", " % of a core", 10 },
        { "pressure_memory", "memory pressure", " %", 1 },
        { "page_faults_major", "major faults", "/s", 10 },
        { "tcp_retransmits", "TCP retransmits", "/s", 1 },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const struct report_series *s = find(r, list[i].metric);
        if (s && s->avg >= list[i].from)
            flow_put(flow, "%s %.3g%s", list[i].words, s->avg, list[i].unit);
    }
    const struct report_series *swap = find(r, "swap");
    if (swap && swap->max >= 1)
        flow_put(flow, "swapped %.3g MiB", swap->max);
}

static void put_heat(struct flow *flow, const struct report *r)
{
    double hottest = -INFINITY;
    for (size_t i = 0; i < r->monitors.series_count; i++)
        if (strcmp(r->monitors.series[i].metric, "temperature") == 0)
            hottest = fmax(hottest, r->monitors.series[i].max);
    if (isfinite(hottest))
        flow_put(flow, "up to %.0f °C", hottest);
}

/* One line for each card. */
static void put_gpus(struct page *page, const struct report *r)
{
    for (size_t i = 0; i < r->monitors.series_count; i++) {
        const struct report_series *busy = &r->monitors.series[i];
        if (strcmp(busy->metric, "gpu") != 0)
            continue;
        const struct report_series *used = monitors_find(&r->monitors, "gpu_memory",
                                                         busy->subject);
        const struct report_series *power = monitors_find(&r->monitors, "gpu_power",
                                                          busy->subject);
        const struct report_series *heat = monitors_find(&r->monitors, "gpu_temp",
                                                         busy->subject);
        struct flow flow;
        struct buf b = BUF_INIT;
        clean_text(&b, busy->subject, 16);
        flow_begin(&flow, page, "");
        flow_put(&flow, "%s busy %.0f %%, peak %.0f %%", b.data, busy->avg, busy->max);
        buf_clear(&b);
        if (used) {
            put_mib(&b, used->max);
            flow_put(&flow, "memory peak %s", b.data);
        }
        if (power)
            flow_put(&flow, "%.0f W, peak %.0f", power->avg, power->max);
        if (heat)
            flow_put(&flow, "up to %.0f °C", heat->max);
        flow_end(&flow);
        buf_release(&b);
    }
}

static void put_spark(struct page *page, const char *name,
                      const struct report_series *s, double unit, const char *unit_name)
{
    if (page->terse)
        return;
    double values[POINTS_MOST];
    size_t count = 0;
    double highest = 0;
    for (; s && count < s->point_count && count < POINTS_MOST; count++) {
        values[count] = s->points[count].mean / unit;
        highest = fmax(highest, s->points[count].max / unit);
    }
    if (count < 4 || !(highest > 0))
        return;
    const size_t room = (size_t)page->width - 40;
    page_fill(page, 10);
    page_left(page, name, 4);
    page_sparkline(page, values, count, room < SPARK_MAX ? room : SPARK_MAX);
    page_printf(page, "   0 – %.3g %s\n", highest, unit_name);
}

void section_machine(struct page *page, const struct report *r)
{
    struct flow flow;
    char count[HUMAN_LEN];
    if (!r->monitors.present || !find(r, "cpu_time"))
        return;
    flow_begin(&flow, page, "MACHINE");
    put_cpu(&flow, r);
    put_memory(&flow, r);
    put_rate(&flow, r, "read", "read");
    put_rate(&flow, r, "disk_read", "from disk");
    put_rate(&flow, r, "write", "written");
    put_rate(&flow, r, "disk_write", "to disk");
    put_rate(&flow, r, "net_receive", "received");
    put_rate(&flow, r, "net_send", "sent");
    if (r->syscalls.known)
        flow_put(&flow, "%s system calls", human_count(count, r->syscalls.count));
    put_heat(&flow, r);
    put_worries(&flow, r);
    flow_end(&flow);
    put_gpus(page, r);
    put_spark(page, "CPU", find(r, "cpu"), 100, "cores");
    const struct report_series *memory = memory_of(r);
    const bool large = memory && memory->max >= 1024;
    put_spark(page, "RAM", memory, large ? 1024 : 1, large ? "GiB" : "MiB");
    page_puts(page, PLAIN, "\n");
}

/* ---- The full report --------------------------------------------------------------------- */

static void put_number(struct page *page, double value, const char *format,
                       size_t width)
{
    struct buf b = BUF_INIT;
    if (isfinite(value))
        buf_printf(&b, strcmp(format, "f2") == 0 ? "%.2f" : "%.1f", value);
    else
        buf_puts(&b, "–");
    page_right(page, b.data, width);
    buf_release(&b);
}

static void put_count(struct page *page, double count, size_t width)
{
    char text[HUMAN_LEN];
    page_right(page,
               isfinite(count) && count >= 0 ? human_count(text, (uint64_t)count) : "–",
               width);
}

static void put_end(struct buf *out, const struct watched_process *p)
{
    if (!p->end_known)
        buf_puts(out, "?");
    else if (WIFSIGNALED(p->end_status))
        buf_printf(out, "signal %d", WTERMSIG(p->end_status));
    else
        buf_printf(out, "exit %d", WEXITSTATUS(p->end_status));
}

static void put_watched(struct page *page, const struct watched_process *p)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "%u", p->pid);
    page_fill(page, 3);
    page_left(page, text.data, 9);
    put_number(page, p->cpu_s, "f2", 9);
    put_number(page, p->peak_rss_mb, "f1", 10);
    put_number(page, p->peak_private_mb, "f1", 10);
    put_number(page, p->read_mb, "f1", 10);
    put_number(page, p->written_mb, "f1", 10);
    put_count(page, p->voluntary_switches, 10);
    put_count(page, p->involuntary_switches, 10);
    buf_clear(&text);
    put_end(&text, p);
    page_puts(page, PLAIN, "  ");
    page_left(page, text.data, 10);
    buf_clear(&text);
    const size_t used = 3 + 9 + 9 + 10 + 10 + 10 + 10 + 10 + 10 + 2 + 10;
    clean_text(&text, p->command[0] ? p->command : p->exe,
               (size_t)page->width > used + 10 ? (size_t)page->width - used : 10);
    page_printf(page, "%s\n", text.data);
    buf_release(&text);
}

void section_watched(struct page *page, const struct report *r)
{
    const struct report_monitors *m = &r->monitors;
    if (m->process_count == 0)
        return;
    page_puts(page, PLAIN, " ");
    page_puts(page, BOLD, "PROCESS TABLE");
    page_puts(page, PLAIN, "\n");
    page_puts(page, DIM,
              "   pid          CPU s  peak MiB   private  read MiB   written     waits"
              "  taken off  end       command\n");
    for (size_t i = 0; i < m->process_count && i < PROCESSES_SHOWN; i++)
        put_watched(page, &m->processes[i]);
    page_puts(page, PLAIN, "\n");
}

void section_monitors(struct page *page, const struct report *r)
{
    const struct report_monitors *m = &r->monitors;
    struct buf name = BUF_INIT;
    if (m->series_count == 0)
        return;
    page_puts(page, PLAIN, " ");
    page_puts(page, BOLD, "MONITORS");
    page_puts(page, PLAIN, "\n");
    for (size_t i = 0; i < m->series_count; i++) {
        const struct report_series *s = &m->series[i];
        if (s->subject[0] >= '0' && s->subject[0] <= '9' && m->process_count > 1)
            continue; /* of a process: the table above has what matters */
        buf_clear(&name);
        clean_text(&name, s->name, 32);
        page_fill(page, 3);
        page_left(page, name.data, 32);
        buf_clear(&name);
        clean_text(&name, s->unit, 10);
        page_printf(page, "  avg %.5g, %.5g … %.5g, last %.5g%s%s\n", s->avg, s->min,
                    s->max, s->last, strcmp(name.data, "1") == 0 ? "" : " ",
                    strcmp(name.data, "1") == 0 ? "" : name.data);
    }
    page_puts(page, PLAIN, "\n");
    buf_release(&name);
}
