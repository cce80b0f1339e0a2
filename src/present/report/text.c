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

static const struct limits tightest = { .phases = 8, .threads = 2, .notes = 1 };
static const struct limits tight = {
    .phases = 8, .threads = 2, .notes = 1, .functions = 3, .findings = 1
};

/* What goes first when the story is longer than a screen; --full has it all. Python's own
 * lines tell more than the native functions below them. */
enum terseness {
    SAY_ALL,
    SAY_LESS,  /* shorter lists */
    NO_NATIVE, /* functions, beside Python's lines */
    NO_ENERGY,
    NO_PICTURES, /* sparklines and histograms */
    NO_MEMORY,
    NO_FILES,
    NO_FUNCTIONS,
    NO_LINES,
    NO_PARTS, /* of the run */
    TERSEST = NO_PARTS,
};

/* What stands above the operations, and what below. */
struct halves {
    struct page before, after;
};

static void halves_print(struct halves *h, const struct report *r,
                         const struct report_style *style, enum terseness level)
{
    const struct limits *limits = style->full        ? &all
                                  : level == SAY_ALL ? &roomy
                                  : level < NO_PARTS ? &tight
                                                     : &tightest;
    const int width = clamp_width(style->width);
    page_init(&h->before, width, style->color, style->unicode);
    page_init(&h->after, width, style->color, style->unicode);
    h->before.terse = h->after.terse = level >= NO_PICTURES;
    section_head(&h->before, r);
    section_verdict(&h->before, r);
    section_hangs(&h->before, r, style->full);
    section_steps(&h->before, r);
    section_training(&h->before, r);
    section_phases(&h->before, r, limits);
    if (level < NO_PARTS)
        section_account(&h->before, r);
    section_forecasts(&h->before, r);
    section_findings(&h->before, r, limits, style->full);
    section_end(&h->after, r, limits);
    section_loaders(&h->after, r, style->full);
    section_metrics(&h->after, r, limits);
    section_alerts(&h->after, r);
    if (level < NO_LINES)
        section_python(&h->after, r, style->full);
    if (level < (r->python.present ? NO_NATIVE : NO_FUNCTIONS))
        section_functions(&h->after, r, limits);
    section_machine(&h->after, r);
    if (level < NO_MEMORY)
        section_memory(&h->after, r, style);
    if (level < NO_FILES)
        section_io(&h->after, r, limits);
    if (level < NO_ENERGY)
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
    halves_print(&h, report, style, SAY_ALL);
    for (int level = SAY_LESS; !style->full && level <= TERSEST; level++) {
        if (halves_room(&h) >= LEAST_ROWS)
            break;
        halves_release(&h);
        halves_print(&h, report, style, (enum terseness)level);
    }
    size_t rows = halves_room(&h);
    if (rows == 0)
        rows = 1; /* one screen comes first, but no table is empty */
    int rc = section_operations(&h.before, report, style, style->full ? 0 : rows);
    if (rc == 0)
        rc = page_flush(&h.before, out);
    if (rc == 0)
        rc = page_flush(&h.after, out);
    halves_release(&h);
    return rc;
}
