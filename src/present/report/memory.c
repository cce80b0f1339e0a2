/* memory.c: allocations in the text report: how much, who leaks, who allocates most. */
#include <math.h>

#include "base/files.h"
#include "base/human.h"
#include "present/report/sections.h"

enum { NEAR = 2 }; /* times the largest batch: farther is nobody's worry */
enum { LEAKS_SHOWN = 3, SITES_SHOWN = 3, FULL_SITES = 20, NAME_WIDTH = 44 };

/* What stands around a place: the label, a word, and two numbers with theirs. */
enum { AROUND_PLACE = 10 + 5 + 33 };

static size_t place_width(const struct page *page)
{
    const int room = page->width - AROUND_PLACE;
    return room > NAME_WIDTH ? NAME_WIDTH : room < 12 ? 12 : (size_t)room;
}

/* "train.c:33 make_node", as much of it as is known. */
static void put_place(struct buf *out, const struct alloc_place *p, size_t width)
{
    struct buf raw = BUF_INIT;
    if (p->line)
        buf_printf(&raw, "%s:%u %s", path_base(p->file), p->line, p->function);
    else if (p->function[0])
        buf_printf(&raw, "%s (%s)", p->function, path_base(p->module));
    else if (p->module[0])
        buf_printf(&raw, "%s+0x%llx", path_base(p->module),
                   (unsigned long long)p->offset);
    else
        buf_printf(&raw, "(unknown place)");
    clean_text(out, raw.data, width);
    buf_release(&raw);
}

static void put_totals(struct page *page, const struct allocations *a)
{
    char count[HUMAN_LEN], bytes[HUMAN_LEN], peak[HUMAN_LEN], live[HUMAN_LEN];
    struct flow flow;
    flow_begin(&flow, page, "MEMORY");
    flow_put(&flow, "%s%s allocations, %s", a->in_spells ? "about " : "",
             human_count(count, a->count), human_bytes(bytes, (double)a->bytes));
    if (a->peak_bytes)
        flow_put(&flow, "at most %s at once%s",
                 human_bytes(peak, (double)a->peak_bytes),
                 a->process_count > 1 ? " in one process" : "");
    if (isfinite(a->live_bytes))
        flow_put(&flow, "%s at the end", human_bytes(live, a->live_bytes));
    if (a->counts_only)
        flow_put(&flow, "no call sites, no live bytes (--no-sites)");
    flow_end(&flow);
}

static void put_leak(struct page *page, const struct alloc_site *s)
{
    struct buf place = BUF_INIT;
    char live[HUMAN_LEN], rate[HUMAN_LEN];
    put_place(&place, &s->at, place_width(page));
    page_label(page, "");
    page_puts(page, RED, "leak ");
    page_left(page, place.data, place_width(page));
    page_printf(page, " %s live", human_bytes(live, s->live_bytes));
    if (isfinite(s->growth_per_step))
        page_printf(page, ", +%s a step", human_bytes(rate, s->growth_per_step));
    else if (isfinite(s->growth_per_s))
        page_printf(page, ", +%s/s", human_bytes(rate, s->growth_per_s));
    page_puts(page, PLAIN, "\n");
    buf_release(&place);
}

static void put_site(struct page *page, const struct alloc_site *s)
{
    struct buf place = BUF_INIT;
    char bytes[HUMAN_LEN], live[HUMAN_LEN];
    put_place(&place, &s->at, place_width(page));
    page_label(page, "");
    page_puts(page, PLAIN, "site ");
    page_left(page, place.data, place_width(page));
    page_printf(page, " about %s", human_bytes(bytes, s->bytes));
    if (s->live_bytes > 0)
        page_printf(page, ", %s live", human_bytes(live, s->live_bytes));
    page_puts(page, PLAIN, "\n");
    buf_release(&place);
}

/* "batches  up to 12 MiB, in 1.9 GiB; 14 MiB will fit into 2 GiB (1.2 times, modelled)" */
static bool put_fit(struct page *page, const char *label, const struct batch_fit *f,
                    const char *where, bool full)
{
    char largest[HUMAN_LEN], used[HUMAN_LEN], limit[HUMAN_LEN], fits[HUMAN_LEN];
    struct buf text = BUF_INIT;
    if (!f->known || !(f->fits <= (full ? INFINITY : NEAR * f->largest)))
        return false;
    buf_printf(&text, "batches of up to %s, with %s of %s in use%s: ",
               human_bytes(largest, f->largest), human_bytes(used, f->held),
               human_bytes(limit, f->limit), where);
    buf_printf(&text, "none beyond %s (%.2f times) will fit, modelled",
               human_bytes(fits, f->fits), f->fits / f->largest);
    if (f->possible > f->fits)
        buf_printf(&text, "; samples seen make up to %s",
                   human_bytes(largest, f->possible));
    page_paragraph(page, label, PLAIN, text.data);
    buf_release(&text);
    return true;
}

static void put_events(struct page *page, const struct allocations *a)
{
    char count[HUMAN_LEN], lost[HUMAN_LEN];
    struct buf text = BUF_INIT;
    if (!a->events)
        return;
    buf_printf(&text,
               "%s allocations and frees one by one: sonde export --format csv --what "
               "alloc-events",
               human_count(count, a->events));
    if (a->events_lost)
        buf_printf(&text, " (%s older ones were written over)",
                   human_count(lost, a->events_lost));
    page_paragraph(page, "", PLAIN, text.data);
    buf_release(&text);
}

static void put_unseen(struct page *page, const struct allocations *a, size_t most,
                       bool labelled)
{
    for (size_t i = 0; i < a->unseen_count && i < most; i++) {
        struct buf text = BUF_INIT;
        clean_text(&text, a->unseen[i], 0);
        page_paragraph(page, i == 0 && !labelled ? "MEMORY" : "", DIM, text.data);
        buf_release(&text);
    }
}

void section_memory(struct page *page, const struct report *r,
                    const struct report_style *style)
{
    const struct allocations *a = &r->allocations;
    const size_t sites = style->full ? FULL_SITES : SITES_SHOWN;
    if (a->known)
        put_totals(page, a);
    bool any = a->known;
    any |= put_fit(page, any ? "" : "MEMORY", &r->fits[FIT_HOST], "", style->full);
    any |= put_fit(page, any ? "" : "MEMORY", &r->fits[FIT_CARD], " on the card",
                   style->full);
    if (!any && a->unseen_count == 0)
        return;
    size_t shown = 0;
    for (size_t i = 0; i < a->site_count && (style->full || shown < LEAKS_SHOWN); i++)
        if (a->sites[i].leak) {
            put_leak(page, &a->sites[i]);
            shown++;
        }
    for (size_t i = 0; i < a->site_count && i < sites; i++)
        put_site(page, &a->sites[i]);
    put_events(page, a);
    put_unseen(page, a, style->full ? SIZE_MAX : 2, any);
    page_puts(page, PLAIN, "\n");
}
