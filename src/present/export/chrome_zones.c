/* chrome_zones.c: zones as complete events. See chrome.c.
 *
 * There are millions of them and they are alike: what all zones of a site have in common is
 * made into text once. */
#include "present/export/chrome_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

/* The phase is the category viewers colour and filter by; a free one comes first. */
static const char *category_of(const struct trace_site *site)
{
    if (site->category[0])
        return site->category;
    const char *phase = site->phase ? sonde_phase_name(site->phase) : NULL;
    return phase ? phase : "zone";
}

static void put_place(struct chrome *c, const struct trace_site *site)
{
    if (site->file[0]) {
        struct buf where = BUF_INIT;
        buf_printf(&where, "%s:%d", site->file, site->line);
        chrome_text(&c->w, "where", where.data);
        buf_release(&where);
    }
    if (site->component[0])
        chrome_text(&c->w, "component", site->component);
    if (site->tags[0])
        chrome_text(&c->w, "tags", site->tags);
}

/* A value's name is the program's: it must not replace an argument of ours. */
static void put_values(struct chrome *c, const struct timeline_zone *zone)
{
    if (zone->value_count == 0)
        return;
    json_key(&c->w, "values");
    json_array_begin(&c->w);
    for (unsigned i = 0; i < zone->value_count; i++) {
        json_object_begin(&c->w);
        json_key(&c->w, trace_site(c->trace, zone->values[i].name)->name);
        json_put_double(&c->w, zone->values[i].value);
        json_object_end(&c->w);
    }
    json_array_end(&c->w);
}

/* A zone about which there is more to say than its times. */
static int put_special_zone(struct chrome *c, const struct timeline_zone *zone)
{
    const struct trace_site *site = trace_site(c->trace, zone->site);
    chrome_begin(c, site->name, category_of(site), "X", zone->begin_ns, zone->tid);
    chrome_us(c, "dur", zone->end_ns - zone->begin_ns);
    chrome_args(c);
    put_place(c, site);
    chrome_flag(c, "truncated", zone->truncated);
    chrome_flag(c, "open", zone->open);
    chrome_flag(c, "unbalanced", zone->unbalanced);
    chrome_flag(c, "begin_lost", zone->begin_lost);
    if (zone->has_op) {
        chrome_number(c, "cpu_ms", zone->cpu_ns / 1e6);
        chrome_number(c, "mem_before_mb", zone->mem_before_mb);
        chrome_number(c, "mem_after_mb", zone->mem_after_mb);
        chrome_number(c, "mem_peak_mb", zone->mem_peak_mb);
    }
    put_values(c, zone);
    json_object_end(&c->w);
    return chrome_end(c);
}

/* The text of a special zone that is not special, cut where the times go. */
static int make_site_text(struct chrome *c, unsigned number, struct site_text *ret_text)
{
    const struct trace_site *site = trace_site(c->trace, number);
    struct buf head = BUF_INIT;
    struct buf tail = BUF_INIT;
    json_init_buf(&c->w, &head, JSON_STYLE_COMPACT);
    json_object_begin(&c->w);
    chrome_text(&c->w, "name", site->name);
    chrome_text(&c->w, "cat", category_of(site));
    chrome_text(&c->w, "ph", "X");
    json_object_end(&c->w);
    int rc = json_finish(&c->w);
    json_init_buf(&c->w, &tail, JSON_STYLE_COMPACT);
    json_object_begin(&c->w);
    chrome_args(c);
    put_place(c, site);
    json_object_end(&c->w);
    json_object_end(&c->w);
    if (rc == 0)
        rc = json_finish(&c->w);
    if (rc == 0) {
        *ret_text = (struct site_text){ .head_len = head.len - 1, /* without } */
                                        .tail_len = tail.len };
        ret_text->head = buf_steal(&head);
        ret_text->tail = buf_steal(&tail);
        rc = ret_text->head && ret_text->tail ? 0 : -ENOMEM;
    }
    buf_release(&head);
    buf_release(&tail);
    return rc;
}

void chrome_forget_sites(struct chrome *c)
{
    for (size_t i = 0; i < c->site_count; i++) {
        free(c->sites[i].head);
        free(c->sites[i].tail);
    }
    free(c->sites);
    c->sites = NULL;
    c->site_count = 0;
}

/* Microseconds with three decimals; times before the origin have their sign. */
static void append_us(struct buf *out, const char *key, int64_t ns)
{
    char digits[32];
    size_t at = sizeof(digits);
    uint64_t rest = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    for (int i = 0; i < 4 || rest > 0; i++) {
        if (i == 3)
            digits[--at] = '.';
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    }
    if (ns < 0)
        digits[--at] = '-';
    buf_puts(out, key);
    buf_append(out, digits + at, sizeof(digits) - at);
}

static int put_plain_zone(struct chrome *c, const struct timeline_zone *zone)
{
    struct site_text *site = &c->sites[zone->site];
    int rc = site->head ? 0 : make_site_text(c, zone->site, site);
    if (rc < 0)
        return rc;
    buf_clear(&c->text);
    buf_puts(&c->text, c->any ? ",\n" : "\n");
    buf_append(&c->text, site->head, site->head_len);
    append_us(&c->text, ",\"ts\":", zone->begin_ns - c->origin_ns);
    append_us(&c->text, ",\"dur\":", zone->end_ns - zone->begin_ns);
    buf_printf(&c->text, ",\"pid\":%u,\"tid\":%u,", c->pid, zone->tid);
    buf_append(&c->text, site->tail + 1, site->tail_len - 1); /* without { */
    return chrome_write(c);
}

int chrome_zone(void *arg, const struct timeline_zone *zone)
{
    struct chrome *c = arg;
    const bool plain = !zone->truncated && !zone->open && !zone->unbalanced &&
                       !zone->begin_lost && !zone->has_op && zone->value_count == 0;
    if (zone->end_ns > c->last_ns)
        c->last_ns = zone->end_ns;
    return plain && zone->site < c->site_count ? put_plain_zone(c, zone)
                                               : put_special_zone(c, zone);
}
