/* chrome_parts.h: what the files of the Chrome export share. Private to them.
 *
 *     chrome_begin(c, name, category, "i", time_ns, tid);
 *     chrome_args(c);
 *     chrome_number(c, "bytes", 12);
 *     json_object_end(&c->w);
 *     rc = chrome_end(c);
 */
#ifndef SONDE_PRESENT_EXPORT_CHROME_PARTS_H
#define SONDE_PRESENT_EXPORT_CHROME_PARTS_H

#include <stdbool.h>

#include "analyse/timeline.h"
#include "base/json.h"
#include "present/export/export.h"

struct span_mark {
    uint64_t id;
    int64_t time_ns;
    uint32_t tid, site;
    bool end;
};

/* What every zone of a site has in common, as JSON: most zones are this and times. */
struct site_text {
    char *head; /* {"name":…,"cat":…,"ph":"X" */
    char *tail; /* "args":{…}} */
    size_t head_len, tail_len;
};

struct chrome {
    FILE *out;
    int64_t origin_ns;
    const struct trace *trace;
    uint32_t pid;
    bool alive;
    struct buf text; /* one event */
    struct json_writer w;
    bool any;
    int64_t last_ns;         /* of this trace */
    struct site_text *sites; /* by site, filled when first met */
    size_t site_count;
    struct span_mark *spans;
    size_t span_count, span_cap;
    struct export_totals totals;
};

/* ---- chrome_event.c: one event ---- */

/* Leaves the event's object open for more keys. */
void chrome_begin(struct chrome *c, const char *name, const char *cat,
                  const char *phase, int64_t time_ns, uint32_t tid);
int chrome_end(struct chrome *c);
/* Writes the event in c->text. */
int chrome_write(struct chrome *c);
/* Opens "args", an object. */
void chrome_args(struct chrome *c);
void chrome_text(struct json_writer *w, const char *key, const char *text);
void chrome_us(struct chrome *c, const char *key, int64_t ns);
/* Nothing when it is not set. */
void chrome_flag(struct chrome *c, const char *key, bool set);
/* Nothing when it is not known. */
void chrome_number(struct chrome *c, const char *key, double value);

/* ---- chrome_zones.c ---- */

/* timeline_visitor's. */
int chrome_zone(void *arg, const struct timeline_zone *zone);
void chrome_forget_sites(struct chrome *c);

/* ---- chrome_spans.c ---- */

int chrome_span(struct chrome *c, uint32_t tid, const struct trace_event *e);
/* After all events of a trace. */
int chrome_unended_spans(struct chrome *c);

/* ---- chrome_singles.c: allocations and I/O calls (--trace=alloc,io) ---- */

int chrome_singles(struct chrome *c, const struct run *run);

#endif
