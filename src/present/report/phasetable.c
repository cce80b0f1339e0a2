/* phasetable.c: every second of the main thread in one phase, and what the card did for
 * it. See sections.h. */
#include "present/report/sections.h"

#include <math.h>

#include "base/human.h"

enum {
    NAME = 16,
    NUMBERS = 20, /* "   7.60 s   62.0 % " */
    DEVICE = 12,
    BAR_MAX = 60,
};

struct phase_row {
    const char *name;
    double ns, share;
    double device_s; /* 0: nothing, or not known */
    bool bar;
};

static void put_row(struct page *page, const struct phase_row *row, bool device)
{
    char text[HUMAN_LEN];
    const size_t numbers = NUMBERS + (device ? DEVICE : 0);
    const size_t room = (size_t)page->width - 3 - NAME - numbers;
    const size_t columns = room < BAR_MAX ? room : BAR_MAX;
    page_fill(page, 3);
    page_left(page, row->name, NAME);
    if (row->bar)
        page_bar(page, row->share, columns);
    else
        page_fill(page, columns);
    page_right(page, human_duration(text, row->ns), 10);
    page_right(page, human_percent(text, row->share), 9);
    if (device && row->device_s > 0)
        page_right(page, human_duration(text, row->device_s * 1e9), DEVICE);
    page_puts(page, PLAIN, "\n");
}

/* Everything that took time; when there are too many, the larger ones. */
static bool is_shown(const struct phase_split *s, int phase, size_t limit)
{
    size_t larger = 0;
    if (s->total_ns[phase] <= 0 && s->count[phase] == 0)
        return false;
    for (int p = 1; p < SONDE_PHASE_COUNT; p++)
        larger += s->total_ns[p] > s->total_ns[phase] ||
                  (p < phase && s->total_ns[p] == s->total_ns[phase]);
    return larger < limit;
}

static void put_head(struct page *page, const struct report *r)
{
    const struct phase_split *s = &r->phases;
    char text[HUMAN_LEN], busy[HUMAN_LEN];
    page_puts(page, PLAIN, " ");
    page_puts(page, BOLD, "PHASE");
    page_printf(page, "             main thread of process %u, %s",
                r->processes[r->main_process].pid, human_duration(text, s->wall_ns));
    const double share = report_gpu_busy_share(r);
    if (s->has_busy && isfinite(share))
        page_printf(page, " · last column: the GPU's work, busy %s",
                    human_percent(busy, share));
    else if (s->has_device)
        page_puts(page, PLAIN, " · last column: on the GPU");
    if (phase_device_is_sampled(s))
        page_printf(page, ", from 1 of %.0f calls", s->device_calls / s->device_timed);
    page_puts(page, PLAIN, "\n");
}

void section_phases(struct page *page, const struct report *r,
                    const struct limits *limits)
{
    const struct phase_split *s = &r->phases;
    struct phase_row rest = { "(smaller ones)", .bar = true };
    struct phase_row sum = { "sum", s->wall_ns, 1, 0, false };
    if (r->main_process == SIZE_MAX || !(s->wall_ns > 0))
        return;
    put_head(page, r);
    for (int phase = 1; phase < SONDE_PHASE_COUNT; phase++) {
        const struct phase_row row = { sonde_phase_name(phase), s->total_ns[phase],
                                       s->share[phase], s->device_s[phase], true };
        sum.device_s += row.device_s;
        if (is_shown(s, phase, limits->phases)) {
            put_row(page, &row, s->has_device);
            continue;
        }
        rest.ns += row.ns;
        rest.device_s += row.device_s;
    }
    rest.share = rest.ns / s->wall_ns;
    if (rest.ns > 0)
        put_row(page, &rest, s->has_device);
    put_row(page, &sum, s->has_device);
    page_puts(page, PLAIN, "\n");
}
