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
    .phases = 8, .threads = 2, .notes = 1, .functions = 3, .findings = 1
};
static const struct limits tightest = { .phases = 8, .threads = 2, .notes = 1 };
static const struct limits last_resort = { .phases = 3, .threads = 1, .notes = 1 };

/* What goes first when the story is longer than a screen; --full has it all. Python's own
 * lines tell more than the native functions below them; what to do is kept to the end. */
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
    NO_METRICS,
    NO_TRAINING,
    NO_MACHINE,
    NO_LOADERS,
    NO_FORECASTS,
    NO_NOTES,
    NO_OPERATIONS,
    CUT_SHORT, /* what is left, to a few lines each … */
    CUT_HARD,  /* … to half of them */
    NEVER,
};

/* What stands above the operations, and what below. */
struct halves {
    struct page before, after;
    struct buf left_out; /* what there was no room for, in words */
    enum terseness level;
    unsigned dropped; /* bit by enum terseness: what is left out */
    bool has_operations;
};

/* How a section ends that began at `mark`: it stays, or is named among those left out. */
static void keep_until(struct halves *h, struct page *page, size_t mark,
                       enum terseness until, const char *name)
{
    if (!(h->dropped & 1U << until) || page->out.len == mark)
        return;
    buf_truncate(&page->out, mark);
    buf_printf(&h->left_out, "%s%s", h->left_out.len ? ", " : "", name);
}

/* At the last levels no section has more than `most` lines, then half of it. */
static void cut_section(const struct halves *h, struct page *page, size_t mark,
                        size_t most)
{
    size_t lines = 0, end = 0;
    if (h->level < CUT_SHORT)
        return;
    if (h->level == CUT_HARD)
        most = (most + 1) / 2;
    for (size_t i = mark; i < page->out.len; i++)
        if (page->out.data[i] == '\n' && ++lines == most)
            end = i + 1;
    if (lines <= most + 1) /* its blank line */
        return;
    buf_truncate(&page->out, end);
    page_printf(page, "          … %zu more lines (--full)\n\n", lines - 1 - most);
}

static const struct limits *limits_of(const struct report_style *style,
                                      enum terseness level)
{
    return style->full         ? &all
           : level == SAY_ALL  ? &roomy
           : level < NO_PARTS  ? &tight
           : level < CUT_SHORT ? &tightest
                               : &last_resort;
}

#define KEEP_UNTIL(half, until, name, call)                                            \
    do {                                                                               \
        const size_t mark_ = h->half.out.len;                                          \
        call;                                                                          \
        keep_until(h, &h->half, mark_, until, name);                                   \
    } while (0)

#define KEEP_LINES(half, most, call)                                                   \
    do {                                                                               \
        const size_t mark_ = h->half.out.len;                                          \
        call;                                                                          \
        cut_section(h, &h->half, mark_, most);                                         \
    } while (0)

static void print_before(struct halves *h, const struct report *r,
                         const struct report_style *style, const struct limits *limits)
{
    struct page *p = &h->before;
    section_head(p, r);
    KEEP_LINES(before, 9, section_verdict(p, r, style));
    KEEP_LINES(before, 5, section_hangs(p, r, style->full));
    section_steps(p, r);
    if (style->full)
        section_trend(p, r);
    KEEP_UNTIL(before, NO_TRAINING, "training", section_training(p, r));
    section_phases(p, r, limits);
    KEEP_UNTIL(before, NO_PARTS, "parts of the run", section_account(p, r));
    KEEP_UNTIL(before, NO_FORECASTS, "forecasts", section_forecasts(p, r));
    KEEP_LINES(before, 4, section_trials(p, r, style->full));
    KEEP_LINES(before, 5, section_findings(p, r, limits, style->full));
}

static void print_after(struct halves *h, const struct report *r,
                        const struct report_style *style, const struct limits *limits)
{
    struct page *p = &h->after;
    const enum terseness functions = r->python.present ? NO_NATIVE : NO_FUNCTIONS;
    KEEP_LINES(after, 4, section_end(p, r, limits));
    KEEP_UNTIL(after, NO_LOADERS, "loaders", section_loaders(p, r, style->full));
    KEEP_UNTIL(after, NO_METRICS, "metrics", section_metrics(p, r, limits));
    KEEP_LINES(after, 3, section_alerts(p, r));
    KEEP_UNTIL(after, NO_LINES, "Python lines", section_python(p, r, style->full));
    KEEP_UNTIL(after, functions, "native functions", section_functions(p, r, limits));
    KEEP_UNTIL(after, NO_MACHINE, "machine", section_machine(p, r));
    KEEP_UNTIL(after, NO_MEMORY, "memory", section_memory(p, r, style));
    KEEP_UNTIL(after, NO_FILES, "files", section_io(p, r, limits));
    KEEP_UNTIL(after, NO_ENERGY, "energy", section_energy(p, r, limits));
    if (style->full) {
        section_processes(p, r);
        section_watched(p, r);
        section_monitors(p, r);
        section_details(p, r);
        section_provenance(p, r);
    }
    KEEP_UNTIL(after, NO_NOTES, "notes", section_notes(p, r, limits));
}

static void halves_print(struct halves *h, const struct report *r,
                         const struct report_style *style, enum terseness level,
                         unsigned dropped)
{
    const struct limits *limits = limits_of(style, level);
    const int width = clamp_width(style->width);
    *h = (struct halves){ .left_out = BUF_INIT,
                          .level = level,
                          .dropped = dropped,
                          .has_operations = r->ops.order_count > 0 };
    page_init(&h->before, width, style->color, style->unicode);
    page_init(&h->after, width, style->color, style->unicode);
    h->before.terse = h->after.terse = level >= NO_PICTURES;
    print_before(h, r, style, limits);
    print_after(h, r, style, limits);
    if (h->has_operations && level >= NO_OPERATIONS)
        buf_printf(&h->left_out, "%soperations", h->left_out.len ? ", " : "");
    if (h->left_out.len) {
        buf_puts(&h->left_out, " (--full)");
        page_paragraph(&h->after, "NO ROOM", PLAIN, h->left_out.data);
    }
    section_trust(&h->after, r, style);
}

static void halves_release(struct halves *h)
{
    page_release(&h->before);
    page_release(&h->after);
    buf_release(&h->left_out);
}

/* Whether it is one screen, with a few operations where there are any. */
static bool halves_fit(const struct halves *h)
{
    const bool table = h->has_operations && h->level < NO_OPERATIONS;
    const size_t operations = table ? OPERATIONS_EXTRA + LEAST_ROWS : 0;
    return page_lines(&h->before) + page_lines(&h->after) + operations <= SCREEN_LINES;
}

/* Lines left for operations. */
static size_t halves_room(const struct halves *h)
{
    const size_t used = page_lines(&h->before) + page_lines(&h->after) +
                        OPERATIONS_EXTRA;
    return used < SCREEN_LINES ? SCREEN_LINES - used : 0;
}

/* The first level that fits, and all it leaves out. */
static enum terseness find_level(const struct report *r,
                                 const struct report_style *style)
{
    int level = SAY_ALL;
    for (bool fits = style->full; !fits && level < NEVER - 1; level += !fits) {
        struct halves h;
        halves_print(&h, r, style, (enum terseness)level, (2U << level) - 1);
        fits = halves_fit(&h);
        halves_release(&h);
    }
    return (enum terseness)level;
}

/* What was left out before something longer may have room after it: the more important
 * comes back first. */
static unsigned take_back(const struct report *r, const struct report_style *style,
                          enum terseness level, unsigned dropped)
{
    const bool functions = limits_of(style, level)->functions > 0;
    for (int part = level; part > SAY_LESS; part--) {
        struct halves h;
        if (!functions && (part == NO_NATIVE || part == NO_FUNCTIONS))
            continue; /* a table of none */
        halves_print(&h, r, style, level, dropped & ~(1U << part));
        if (halves_fit(&h))
            dropped &= ~(1U << part);
        halves_release(&h);
    }
    return dropped;
}

int report_text(const struct report *report, const struct report_style *style,
                FILE *out)
{
    struct halves h;
    int rc = 0;
    const enum terseness level = find_level(report, style);
    const unsigned dropped = level == SAY_ALL
                                 ? 0
                                 : take_back(report, style, level, (2U << level) - 1);
    halves_print(&h, report, style, level, dropped);
    if (style->full || h.level < NO_OPERATIONS)
        rc = section_operations(&h.before, report, style,
                                style->full ? 0 : halves_room(&h));
    if (rc == 0)
        rc = page_flush(&h.before, out);
    if (rc == 0)
        rc = page_flush(&h.after, out);
    halves_release(&h);
    return rc;
}
