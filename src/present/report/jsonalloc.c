/* jsonalloc.c: allocations in the JSON report. */
#include <math.h>

#include "present/report/jsonparts.h"

/* Sites beyond are a long tail of single samples. */
enum { MOST_SITES = 200, MOST_BRIEF = 60, MOST_PROCESSES = 100, STACK_SHOWN = 12 };

static void put_place(struct json_writer *w, const struct alloc_place *p)
{
    field_text(w, "function", p->function);
    field_text(w, "file", p->file);
    if (p->line)
        field_uint(w, "line", p->line);
    else
        field_null(w, "line");
    field_text(w, "module", p->module);
    if (p->module[0])
        field_uint(w, "offset", p->offset);
    else
        field_null(w, "offset");
}

static void put_stack(struct json_writer *w, const struct alloc_site *s)
{
    json_key(w, "stack");
    json_array_begin(w);
    const unsigned depth = w->brief ? 0 : s->depth; /* the page has a flame graph */
    for (unsigned i = 0; i < depth && i < STACK_SHOWN; i++) {
        json_object_begin(w);
        put_place(w, &s->stack[i]);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_site(struct json_writer *w, const struct alloc_site *s)
{
    json_object_begin(w);
    put_place(w, &s->at);
    field_number(w, "count", s->count, 1);
    field_number(w, "bytes", s->bytes, 0);
    field_number(w, "live_count", s->live_count, 1);
    field_number(w, "live_bytes", s->live_bytes, 0);
    field_number(w, "peak_bytes", s->peak_bytes, 0);
    field_number(w, "mean_lifetime_s",
                 s->freed_count > 0 ? s->lifetime_s / s->freed_count : NAN, 9);
    field_uint(w, "samples", s->samples);
    field_text(w, "zone", s->zone);
    put_stack(w, s);
    json_object_end(w);
}

static void put_leak(struct json_writer *w, const struct alloc_site *s)
{
    json_object_begin(w);
    put_place(w, &s->at);
    field_number(w, "live_bytes", s->live_bytes, 0);
    field_number(w, "live_count", s->live_count, 1);
    field_number(w, "bytes_per_s", s->growth_per_s, 1);
    field_number(w, "bytes_per_step", s->growth_per_step, 1);
    field_text(w, "zone", s->zone);
    put_stack(w, s);
    json_object_end(w);
}

static void put_sites(struct json_writer *w, const struct allocations *a)
{
    json_key(w, "sites");
    json_array_begin(w);
    const size_t most = w->brief ? MOST_BRIEF : MOST_SITES;
    for (size_t i = 0; i < a->site_count && i < most; i++)
        put_site(w, &a->sites[i]);
    json_array_end(w);
    json_key(w, "leaks");
    json_array_begin(w);
    for (size_t i = 0; i < a->site_count; i++)
        if (a->sites[i].leak)
            put_leak(w, &a->sites[i]);
    json_array_end(w);
}

static void put_zones(struct json_writer *w, const struct allocations *a)
{
    json_key(w, "zones");
    json_array_begin(w);
    for (size_t i = 0; i < a->zone_count; i++) {
        const struct alloc_zone *z = &a->zones[i];
        json_object_begin(w);
        field_text(w, "zone", z->name); /* null: outside of zones */
        field_uint(w, "count", z->count);
        field_uint(w, "bytes", z->bytes);
        field_uint(w, "frees", z->frees);
        field_number(w, "freed_bytes", a->counts_only ? NAN : (double)z->freed_bytes,
                     0);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_sizes(struct json_writer *w, const struct allocations *a)
{
    json_key(w, "sizes");
    json_array_begin(w);
    for (unsigned k = 0; k < HEAP_CLASSES; k++) {
        if (a->sizes[k].count == 0)
            continue;
        json_object_begin(w);
        if (k + 1 < HEAP_CLASSES)
            field_uint(w, "up_to", heap_class_limit(k));
        else
            field_null(w, "up_to");
        field_uint(w, "count", a->sizes[k].count);
        field_uint(w, "bytes", a->sizes[k].bytes);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_processes(struct json_writer *w, const struct allocations *a)
{
    json_key(w, "processes");
    json_array_begin(w);
    for (size_t i = 0; i < a->process_count && i < MOST_PROCESSES; i++) {
        const struct alloc_process *p = &a->processes[i];
        json_object_begin(w);
        field_uint(w, "pid", p->pid);
        field_text(w, "exe", p->exe);
        field_uint(w, "count", p->count);
        field_uint(w, "bytes", p->bytes);
        if (p->peak_bytes)
            field_uint(w, "peak_bytes", p->peak_bytes);
        else
            field_null(w, "peak_bytes");
        field_number(w, "live_bytes", p->live_bytes, 0);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_snapshot(struct json_writer *w, const struct alloc_snapshot *s)
{
    json_object_begin(w);
    field_text(w, "name", s->name);
    field_uint(w, "pid", s->pid);
    field_time(w, "time", s->time_ns);
    field_uint(w, "step", s->step);
    field_uint(w, "count", s->count);
    field_uint(w, "bytes", s->bytes);
    field_uint(w, "frees", s->frees);
    field_number(w, "live_bytes", (double)s->live_bytes, 0);
    field_number(w, "difference_bytes", (double)s->difference, 0);
    json_key(w, "sites");
    json_array_begin(w);
    for (size_t i = 0; i < s->site_count; i++) {
        json_object_begin(w);
        put_place(w, &s->sites[i].at);
        field_number(w, "live_bytes", s->sites[i].live_bytes, 0);
        field_number(w, "difference_bytes", s->sites[i].difference, 0);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

static void put_snapshots(struct json_writer *w, const struct allocations *a)
{
    json_key(w, "snapshots");
    json_array_begin(w);
    for (size_t i = 0; i < a->snapshot_count; i++)
        put_snapshot(w, &a->snapshots[i]);
    json_array_end(w);
}

static void put_coverage(struct json_writer *w, const struct allocations *a)
{
    json_key(w, "coverage");
    json_object_begin(w);
    field_uint(w, "processes", a->process_count);
    field_uint(w, "samples", a->samples);
    field_uint(w, "samples_lost", a->samples_lost);
    field_uint(w, "events", a->events);
    field_uint(w, "events_lost", a->events_lost);
    json_key(w, "not_seen");
    json_array_begin(w);
    for (size_t i = 0; i < a->unseen_count; i++)
        json_put_string(w, a->unseen[i]);
    json_array_end(w);
    json_object_end(w);
}

static void put_totals(struct json_writer *w, const struct report *r)
{
    const struct allocations *a = &r->allocations;
    field_uint(w, "count", a->count);
    field_uint(w, "bytes", a->bytes);
    json_key(w, "exact");
    json_put_bool(w, !a->in_spells);
    if (a->peak_bytes)
        field_uint(w, "peak_bytes", a->peak_bytes);
    else
        field_null(w, "peak_bytes");
    field_time(w, "peak_time", a->peak_ns);
    field_uint(w, "frees", a->frees);
    field_number(w, "freed_bytes", a->counts_only ? NAN : (double)a->freed_bytes, 0);
    field_uint(w, "reallocs", a->reallocs);
    field_uint(w, "failed", a->failed);
    field_number(w, "live_bytes", a->live_bytes, 0);
    field_number(w, "count_per_s", (double)a->count / report_duration_s(r), 1);
    field_number(w, "bytes_per_s", (double)a->bytes / report_duration_s(r), 1);
    field_uint(w, "mapped_count", a->map_count);
    field_uint(w, "mapped_bytes", a->mapped_bytes);
    field_uint(w, "unmapped_count", a->unmap_count);
    field_uint(w, "unmapped_bytes", a->unmapped_bytes);
}

static void put_fit(struct json_writer *w, const char *name, const struct batch_fit *f)
{
    static const double MIB = 1 << 20;
    if (!f->known) {
        field_null(w, name);
        return;
    }
    json_key(w, name);
    json_object_begin(w);
    field_uint(w, "batches", f->batches);
    field_number(w, "base_mb", f->base / MIB, 3);
    field_number(w, "per_byte", f->per_byte, 6);
    field_number(w, "per_square_byte", f->per_square, 12);
    field_number(w, "error_mb", f->error / MIB, 3);
    field_number(w, "largest_mb", f->largest / MIB, 6);
    field_number(w, "used_mb", f->held / MIB, 3);
    field_number(w, "limit_mb", f->limit / MIB, 3);
    field_number(w, "fits_mb", f->fits / MIB, 6);
    field_number(w, "fits_low_mb", f->fits_low / MIB, 6);
    field_number(w, "fits_high_mb", f->fits_high / MIB, 6);
    field_number(w, "fits_over_largest", f->fits / f->largest, 4);
    field_number(w, "possible_mb", f->possible / MIB, 6);
    field_number(w, "likely_mb", f->likely / MIB, 6);
    json_key(w, "padded");
    json_put_bool(w, f->padded);
    json_key(w, "data_set_seen");
    json_put_bool(w, f->all_seen);
    json_object_end(w);
}

static void put_fits(struct json_writer *w, const struct report *r)
{
    json_key(w, "batch_memory");
    json_object_begin(w);
    put_fit(w, "host", &r->fits[FIT_HOST]);
    put_fit(w, "gpu", &r->fits[FIT_CARD]);
    json_object_end(w);
}

void fields_of_allocations(struct json_writer *w, const struct report *r)
{
    static const char *const totals[] = { "count", "bytes", "peak_bytes", NULL };
    const struct allocations *a = &r->allocations;
    json_key(w, "allocations");
    json_object_begin(w);
    if (a->known)
        put_totals(w, r);
    else
        field_nulls(w, totals);
    put_sites(w, a);
    put_zones(w, a);
    put_sizes(w, a);
    put_processes(w, a);
    put_snapshots(w, a);
    put_coverage(w, a);
    json_object_end(w);
    put_fits(w, r);
}
