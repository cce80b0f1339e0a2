/* windows.c: stretches of the run with their zones in full. */
#include "present/html/windows.h"

#include <errno.h>
#include <stdlib.h>

int window_init(struct window *window, const char *kind, int64_t start_ns,
                int64_t end_ns, size_t most)
{
    *window = (struct window){
        .kind = kind, .start_ns = start_ns, .end_ns = end_ns, .most = most
    };
    window->zones = malloc(2 * most * sizeof(*window->zones));
    return window->zones ? 0 : -ENOMEM;
}

void window_release(struct window *window)
{
    free(window->zones);
    *window = (struct window){ 0 };
}

/* Outer zones last as long as what is in them: of equal ones they stay. */
static int longest_first(const void *a, const void *b)
{
    const struct window_zone *x = a, *y = b;
    const int64_t dx = x->end_ns - x->begin_ns, dy = y->end_ns - y->begin_ns;
    if (dx != dy)
        return dx < dy ? 1 : -1;
    return (int)x->depth - (int)y->depth;
}

static int in_order(const void *a, const void *b)
{
    const struct window_zone *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return (int)x->depth - (int)y->depth;
}

static void cut(struct window *w)
{
    if (w->count <= w->most)
        return;
    qsort(w->zones, w->count, sizeof(*w->zones), longest_first);
    w->left_out += w->count - w->most;
    w->count = w->most;
}

void window_add(struct window *window, const struct window_zone *zone)
{
    if (zone->end_ns < window->start_ns || zone->begin_ns > window->end_ns)
        return;
    if (window->count == 2 * window->most)
        cut(window);
    window->zones[window->count++] = *zone;
}

/* Each column by itself: like stands beside like, and the page stays small. */
static void put_column(struct json_writer *w, const char *key,
                       const struct window *window, int column)
{
    int64_t before = window->start_ns;
    json_key(w, key);
    json_array_begin(w);
    for (size_t i = 0; i < window->count; i++) {
        const struct window_zone *z = &window->zones[i];
        switch (column) {
        case 0:
            json_put_uint(w, z->lane);
            break;
        case 1:
            json_put_uint(w, z->depth);
            break;
        case 2:
            json_put_uint(w, z->site);
            break;
        case 3: /* since the one before, in ns */
            json_put_int(w, z->begin_ns - before);
            before = z->begin_ns;
            break;
        default:
            json_put_int(w, z->end_ns - z->begin_ns);
        }
    }
    json_array_end(w);
}

void window_put(struct json_writer *w, struct window *window, int64_t origin_ns)
{
    static const char *const columns[] = { "lane", "depth", "site", "begin_delta_ns",
                                           "ns" };
    cut(window);
    qsort(window->zones, window->count, sizeof(*window->zones), in_order);
    json_object_begin(w);
    json_key(w, "kind");
    json_put_string(w, window->kind);
    json_key(w, "step");
    if (window->step)
        json_put_uint(w, window->step);
    else
        json_put_null(w);
    json_key(w, "start_s");
    json_put_fixed(w, (double)(window->start_ns - origin_ns) / 1e9, 9);
    json_key(w, "end_s");
    json_put_fixed(w, (double)(window->end_ns - origin_ns) / 1e9, 9);
    json_key(w, "left_out");
    json_put_uint(w, window->left_out);
    for (int i = 0; i < 5; i++)
        put_column(w, columns[i], window, i);
    json_object_end(w);
}
