/* text.c: the report on a terminal, one screen of it.
 *
 * Everything but the operations is written first and counted; the operations get
 * the lines that are left.
 */
#include "present/report/report.h"

#include <stdint.h>

#include "present/report/sections.h"

enum { SCREEN_LINES = 46, LEAST_ROWS = 4, OPERATIONS_EXTRA = 3 };

static int clamp_width(int width)
{
    if (width == 0)
        return 100;
    return width < 60 ? 60 : width > 200 ? 200 : width;
}

static const struct limits all = { SIZE_MAX,
                                   SIZE_MAX,
                                   SIZE_MAX,
                                   SIZE_MAX,
                                   SIZE_MAX,
                                   .functions = 40,
                                   .findings = SIZE_MAX };
static const struct limits roomy = { .phases = 8,
                                     .threads = 5,
                                     .notes = 3,
                                     .metrics = 6,
                                     .files = 4,
                                     .functions = 6,
                                     .findings = 4 };

static const struct limits tight = {
    .phases = 8, .threads = 2, .notes = 1, .functions = 3, .findings = 0
};

/* What stands above the operations, and what below. */
struct halves {
    struct page before, after;
};

static void halves_print(struct halves *h, const struct report *r,
                         const struct report_style *style, const struct limits *limits)
{
    const int width = clamp_width(style->width);
    page_init(&h->before, width, style->color, style->unicode);
    page_init(&h->after, width, style->color, style->unicode);
    section_head(&h->before, r);
    section_verdict(&h->before, r);
    section_hangs(&h->before, r, style->full);
    section_steps(&h->before, r);
    section_training(&h->before, r);
    section_phases(&h->before, r, limits);
    if (limits->findings > 0)
        section_account(&h->before, r);
    section_forecasts(&h->before, r);
    section_findings(&h->before, r, limits, style->full);
    section_end(&h->after, r, limits);
    section_loaders(&h->after, r, style->full);
    section_metrics(&h->after, r, limits);
    section_alerts(&h->after, r);
    section_python(&h->after, r, style->full);
    section_functions(&h->after, r, limits);
    section_machine(&h->after, r);
    section_memory(&h->after, r, style);
    section_io(&h->after, r, limits);
    section_energy(&h->after, r, limits);
    if (style->full) {
        section_processes(&h->after, r);
        section_watched(&h->after, r);
        section_monitors(&h->after, r);
        section_details(&h->after, r);
        section_provenance(&h->after, r);
    }
    section_notes(&h->after, r, limits);
    section_trust(&h->after, r, style);
}

static void halves_release(struct halves *h)
{
    page_release(&h->before);
    page_release(&h->after);
}

/* Lines left for operations. */
static size_t halves_room(const struct halves *h)
{
    const size_t used = page_lines(&h->before) + page_lines(&h->after) +
                        OPERATIONS_EXTRA;
    return used < SCREEN_LINES ? SCREEN_LINES - used : 0;
}

int report_text(const struct report *report, const struct report_style *style,
                FILE *out)
{
    struct halves h;
    halves_print(&h, report, style, style->full ? &all : &roomy);
    if (!style->full && halves_room(&h) < LEAST_ROWS) {
        halves_release(&h);
        halves_print(&h, report, style, &tight);
    }
    size_t rows = halves_room(&h);
    if (rows < LEAST_ROWS)
        rows = LEAST_ROWS;
    int rc = section_operations(&h.before, report, style, style->full ? 0 : rows);
    if (rc == 0)
        rc = page_flush(&h.before, out);
    if (rc == 0)
        rc = page_flush(&h.after, out);
    halves_release(&h);
    return rc;
}
