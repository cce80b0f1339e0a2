/* iotable.c: files and sockets in the text report: totals, the files that took the most
 * time, and what to know about the numbers.
 */
#include "present/report/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/human.h"

enum { INDENT = 3, NUMBERS = 59, PATH_MIN = 12, FEW = 3, LEAST_SMALL = 1000 };

static void put_total(struct flow *flow, const struct io_sum *sum, const char *verb)
{
    char bytes[HUMAN_LEN], calls[HUMAN_LEN], time[HUMAN_LEN];
    if (sum->calls)
        flow_put(flow, "%s %s in %s calls, %s", human_bytes(bytes, (double)sum->bytes),
                 verb, human_count(calls, sum->calls), human_duration(time, sum->ns));
}

static void put_head(struct page *page, const struct io_report *io)
{
    char text[HUMAN_LEN];
    struct flow flow;
    flow_begin(&flow, page, "I/O");
    put_total(&flow, &io->total[IO_READ], "read");
    put_total(&flow, &io->total[IO_WRITE], "written");
    if (!isnan(io->coverage))
        flow_put(&flow, "%s of the kernel's count seen",
                 human_percent(text, io->coverage));
    flow_end(&flow);
}

/* "cold", "warm", or how much of it was cached when it was first read. */
static const char *cache_words(const struct io_path *p, char text[HUMAN_LEN])
{
    const double warm = io_warm_share(p);
    if (isnan(warm) || p->side[IO_READ].bytes == 0)
        return "";
    if (warm >= 0.99 || warm <= 0.01)
        return warm > 0.5 ? "warm" : "cold";
    (void)snprintf(text, HUMAN_LEN, "%.0f %% warm", warm * 100);
    return text;
}

static const char *order_words(const struct io_path *p)
{
    const struct io_sum *sum = &p->side[p->side[1].calls > p->side[0].calls];
    const double share = io_sequential_share(sum);
    if (p->io_class != IO_CLASS_FILE || isnan(share) ||
        sum->calls - sum->sizes[0] < FEW)
        return io_class_name(p->io_class);
    return share >= 0.9 ? "sequential" : share <= 0.5 ? "random" : "mixed";
}

/* The end of a path tells more than its beginning. */
static void put_path(struct page *page, const char *path, size_t columns)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, path, 0);
    const size_t wide = text_columns(clean.data);
    const char *from = clean.data;
    for (size_t skip = wide > columns ? wide - columns + 1 : 0; skip && *from; skip--)
        do
            from++;
        while ((*from & 0xc0) == 0x80);
    struct buf shown = BUF_INIT;
    buf_printf(&shown, "%s%s", from == clean.data ? "" : "…", from);
    page_left(page, shown.data, columns);
    buf_release(&shown);
    buf_release(&clean);
}

static void put_row(struct page *page, const struct io_path *p, size_t columns)
{
    char text[HUMAN_LEN];
    const struct io_sum *read = &p->side[IO_READ], *write = &p->side[IO_WRITE];
    const struct io_sum *main = write->ns > read->ns ? write : read;
    page_fill(page, INDENT);
    put_path(page, p->path, columns);
    page_right(page, human_duration(text, read->ns + write->ns + p->sync_ns), 9);
    page_right(page, read->bytes ? human_bytes(text, (double)read->bytes) : "", 9);
    page_right(page, write->bytes ? human_bytes(text, (double)write->bytes) : "", 9);
    page_right(page, main->timed ? human_duration(text, main->p99_ns) : "", 9);
    page_fill(page, 2);
    page_left(page, order_words(p), 11);
    page_right(page, cache_words(p, text), 9);
    page_puts(page, PLAIN, "\n");
}

static void put_table(struct page *page, const struct io_report *io, size_t limit)
{
    const size_t columns = (size_t)page->width - INDENT - NUMBERS;
    size_t shown = 0;
    page_fill(page, INDENT);
    page_left(page, "", columns);
    page_puts(page, DIM,
              "     time     read  written      p99  order          cache\n");
    for (size_t i = 0; i < io->path_count && shown < limit; i++) {
        const struct io_path *p = &io->paths[i];
        if (p->side[0].calls + p->side[1].calls + p->syncs + p->mapped_bytes == 0)
            continue;
        put_row(page, p, columns);
        shown++;
    }
}

/* ---- What to know ------------------------------------------------------------------- */

static void say_open(struct buf *out, const struct io_report *io)
{
    char text[HUMAN_LEN];
    const struct io_path *most = NULL;
    for (size_t i = 0; i < io->path_count; i++)
        if (!most || io->paths[i].open_at_end > most->open_at_end)
            most = &io->paths[i];
    if (io->open_at_end < FEW || !most)
        return;
    buf_printf(out, "%s descriptors were open at the end%s",
               human_count(text, io->open_at_end),
               io->open_grows ? ", more and more all along" : "");
    buf_printf(out, ", %s of them ", human_count(text, most->open_at_end));
    clean_text(out, most->path, 48);
    buf_puts(out, ". ");
}

static void say_small(struct buf *out, const struct io_report *io)
{
    char share[HUMAN_LEN], count[HUMAN_LEN];
    if (io->file_reads < LEAST_SMALL || io->small_reads * 2 < io->file_reads)
        return;
    buf_printf(out, "%s of %s reads of files were below 4 KiB. ",
               human_percent(share, (double)io->small_reads / (double)io->file_reads),
               human_count(count, io->file_reads));
}

static void put_remarks(struct page *page, const struct io_report *io)
{
    char text[HUMAN_LEN];
    struct buf out = BUF_INIT;
    say_small(&out, io);
    say_open(&out, io);
    if (io->events)
        buf_printf(&out,
                   "%s calls one by one: sonde export --format csv --what "
                   "io-events. ",
                   human_count(text, io->events));
    if (io->events_dropped)
        buf_printf(&out, "%s events beyond the limit were not kept. ",
                   human_count(text, io->events_dropped));
    if (io->coverage < 0.95)
        buf_printf(&out, "%s of the bytes were not seen: %s. ",
                   human_percent(text, 1 - io->coverage), io->coverage_why);
    if (out.len)
        page_paragraph(page, "", PLAIN, out.data);
    buf_release(&out);
}

void section_io(struct page *page, const struct report *r, const struct limits *limits)
{
    const struct io_report *io = &r->io;
    if (!io->captured || io->total[0].calls + io->total[1].calls == 0)
        return;
    put_head(page, io);
    if (limits->files && page->width >= INDENT + NUMBERS + PATH_MIN)
        put_table(page, io, limits->files);
    put_remarks(page, io);
    page_puts(page, PLAIN, "\n");
}
