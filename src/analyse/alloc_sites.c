/* alloc_sites.c: sites of all processes joined; which of them leak. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/alloc_parts.h"
#include "base/buf.h"

/* Without steps to count by: a program that lives shorter is still setting up. */
static const double LEAK_LEAST_S = 5;

/* A leak must be seen often enough to tell growth from chance, and matter. */
enum { LEAK_LEAST_SAMPLES = 8, LEAK_LEAST_WINDOWS = 7, LEAK_LEAST_BYTES = 256 << 10 };

/* ---- Joining ----------------------------------------------------------------------- */

static unsigned find_caller(const struct alloc_place *stack, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++)
        if (!alloc_is_allocator(stack[i].module))
            return i;
    return 0; /* libraries among themselves */
}

/* Named places are joined by line; others by module and offset. */
static int site_key(const struct alloc_place *at, struct buf *out)
{
    if (at->line)
        buf_printf(out, "%s\n%s\n%u", at->function, at->file, at->line);
    else
        buf_printf(out, "%s\n%s\n%llx", at->function, at->module,
                   (unsigned long long)at->offset);
    return out->error;
}

static struct alloc_site *enter_site(struct alloc_reader *r,
                                     const struct alloc_place *at, uint32_t *ret_number)
{
    struct buf key = BUF_INIT;
    struct alloc_site *site = NULL;
    struct strmap_entry *e = site_key(at, &key) < 0
                                 ? NULL
                                 : strmap_enter(&r->sites, key.data, key.len, NULL);
    buf_release(&key);
    if (!e)
        return NULL;
    struct allocations *all = r->all;
    if (e->value == 0) {
        if (alloc_grow((void **)&all->sites, &all->site_cap, all->site_count,
                       sizeof *all->sites) < 0)
            return NULL;
        all->sites[all->site_count] = (struct alloc_site){ .at = *at, .zone = "" };
        e->value = ++all->site_count;
    }
    *ret_number = (uint32_t)e->value;
    site = &all->sites[e->value - 1];
    return site;
}

static void add_row(struct alloc_reader *r, struct alloc_site *site,
                    const struct heap_site_row *row)
{
    site->samples += row->samples;
    site->live_samples += row->live_samples;
    site->count += row->count;
    site->bytes += row->bytes;
    site->live_count += row->live_count;
    site->live_bytes += row->live_bytes;
    site->peak_bytes += row->peak_bytes;
    site->freed_count += row->freed_count;
    site->lifetime_s += row->lifetime_ticks * r->ns_per_tick / 1e9;
}

static int add_site(struct alloc_reader *r, uint32_t index,
                    const struct heap_site_row *row)
{
    const unsigned depth = row->depth < HEAP_FRAMES ? row->depth : HEAP_FRAMES;
    struct alloc_place stack[HEAP_FRAMES + 1];
    for (unsigned i = 0; i < depth; i++)
        alloc_place_of(r, row->frame[i], &stack[i]);
    if (depth == 0)
        stack[0] = (struct alloc_place){ .function = "", .file = "", .module = "" };
    const unsigned caller = find_caller(stack, depth);
    struct alloc_site *site = enter_site(r, &stack[caller], &r->site_of[index]);
    if (!site)
        return -1;
    add_row(r, site, row);
    if (row->bytes <= site->path_bytes)
        return 0;
    site->path_bytes = row->bytes;
    site->zone = alloc_keep(r, alloc_zone_name(r, row->zone));
    site->stack = arena_alloc_array(&r->report->arena, depth + 1, sizeof *stack);
    if (!site->stack)
        return -1;
    memcpy(site->stack, stack, depth * sizeof *stack);
    site->depth = depth;
    return 0;
}

/* ---- What is still live, by when it was allocated ---------------------------------- */

static unsigned window_of(double at, double span)
{
    const double w = span > 0 ? at / span * LEAK_WINDOWS : 0;
    return w <= 0 ? 0 : w >= LEAK_WINDOWS ? LEAK_WINDOWS - 1 : (unsigned)w;
}

static void add_live(struct alloc_reader *r, const struct heap_live_row *row)
{
    const uint32_t number = row->site < r->site_rows ? r->site_of[row->site] : 0;
    if (number == 0)
        return;
    struct alloc_site *site = &r->all->sites[number - 1];
    const double ticks = (double)(r->end_ticks - r->process.start_ticks);
    const double at = (double)(row->ticks - r->process.start_ticks);
    const bool steps = r->last_step >= 2 * LEAK_WINDOWS;
    const unsigned w = steps ? window_of((double)row->step, (double)r->last_step + 1)
                             : window_of(at, ticks);
    /* What is allocated before the first step is set-up, not growth over steps. */
    if (!steps || row->step > 0)
        site->window[w] += row->weight * (double)row->size;
    site->span_s = fmax(site->span_s, ticks * r->ns_per_tick / 1e9);
    if (steps)
        site->span_steps = fmax(site->span_steps, (double)r->last_step);
}

int alloc_sites_add(struct alloc_reader *r)
{
    const int sites = tablefile_find(r->file, "sites");
    const int live = tablefile_find(r->file, "live");
    r->site_rows = sites < 0 ? 0 : tablefile_count(r->file, sites);
    r->site_of = calloc(r->site_rows + 1, sizeof *r->site_of);
    int rc = r->site_of ? 0 : -1;
    for (uint32_t i = 0; rc == 0 && i < r->site_rows; i++) {
        struct heap_site_row row;
        if (tablefile_get(r->file, sites, i, &row, sizeof row))
            rc = add_site(r, i, &row);
    }
    const uint32_t blocks = live < 0 ? 0 : tablefile_count(r->file, live);
    for (uint32_t i = 0; rc == 0 && i < blocks; i++) {
        struct heap_live_row row;
        if (tablefile_get(r->file, live, i, &row, sizeof row))
            add_live(r, &row);
    }
    return rc;
}

/* ---- Leaks ------------------------------------------------------------------------- */

static bool is_leak(const struct alloc_site *s)
{
    unsigned filled = 0;
    double sum = 0;
    for (unsigned w = 0; w < LEAK_WINDOWS; w++)
        sum += s->window[w];
    for (unsigned w = 0; w < LEAK_WINDOWS; w++)
        filled += s->window[w] > sum / LEAK_WINDOWS / 8;
    return !(s->span_steps == 0 && s->span_s > 0 && s->span_s < LEAK_LEAST_S) &&
           s->live_samples >= LEAK_LEAST_SAMPLES && sum >= LEAK_LEAST_BYTES &&
           filled >= LEAK_LEAST_WINDOWS && s->window[LEAK_WINDOWS - 1] > 0;
}

static int by_bytes(const void *a, const void *b)
{
    const struct alloc_site *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

void alloc_sites_finish(struct allocations *all)
{
    for (size_t i = 0; i < all->site_count; i++) {
        struct alloc_site *s = &all->sites[i];
        s->growth_per_step = NAN;
        s->leak = is_leak(s);
        s->growth_per_s = s->span_s > 0 ? s->live_bytes / s->span_s : NAN;
        if (s->span_steps > 0)
            s->growth_per_step = s->live_bytes / s->span_steps;
    }
    if (all->site_count)
        qsort(all->sites, all->site_count, sizeof *all->sites, by_bytes);
}
