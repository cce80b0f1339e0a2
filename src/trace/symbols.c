/* symbols.c: see symbols.h. */
#include "trace/symbols.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "trace/tablefiles.h"

/* Where a place of depth 0 is, by source and key. */
struct slot {
    uint64_t key;
    uint32_t source; /* + 1; 0: free */
    uint32_t place;
};

struct symbols {
    struct tablefile *file;
    int sources, modules, functions, places;
    struct slot *slots;
    size_t mask;
};

static size_t slot_of(const struct symbols *s, uint32_t source, uint64_t key)
{
    uint64_t h = (key + source) * 0x9e3779b97f4a7c15ULL;
    return (size_t)(h ^ h >> 29) & s->mask;
}

static struct slot *look(const struct symbols *s, uint32_t source, uint64_t key)
{
    size_t i = slot_of(s, source, key);
    while (s->slots[i].source &&
           (s->slots[i].source != source + 1 || s->slots[i].key != key))
        i = (i + 1) & s->mask;
    return &s->slots[i];
}

static int index_places(struct symbols *s)
{
    const uint32_t count = tablefile_count(s->file, s->places);
    size_t cap = 16;
    while (cap < (size_t)count * 2)
        cap *= 2;
    s->mask = cap - 1;
    s->slots = calloc(cap, sizeof *s->slots);
    if (!s->slots)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        struct symbol_place_row row;
        if (!tablefile_get(s->file, s->places, i, &row, sizeof row) || row.depth != 0 ||
            row.source == UINT32_MAX)
            continue;
        *look(s, row.source, row.key) = (struct slot){ row.key, row.source + 1, i };
    }
    return 0;
}

int symbols_open(const char *dir, struct symbols **ret_symbols)
{
    struct symbols *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    int rc = tablefiles_newest(dir, SYMBOLS_KIND, NULL, &s->file);
    if (rc == 0) {
        s->sources = tablefile_find(s->file, "sources");
        s->modules = tablefile_find(s->file, "modules");
        s->functions = tablefile_find(s->file, "functions");
        s->places = tablefile_find(s->file, "places");
        rc = index_places(s);
    }
    if (rc < 0)
        symbols_free(s);
    else
        *ret_symbols = s;
    return rc;
}

void symbols_free(struct symbols *s)
{
    if (!s)
        return;
    tablefile_free(s->file);
    free(s->slots);
    free(s);
}

static bool find_source(const struct symbols *s, const char *name, uint32_t *ret_source)
{
    const uint32_t count = tablefile_count(s->file, s->sources);
    for (uint32_t i = 0; i < count; i++) {
        struct symbol_source_row row;
        if (tablefile_get(s->file, s->sources, i, &row, sizeof row) &&
            strcmp(tablefile_text(s->file, row.name), name) == 0) {
            *ret_source = i;
            return true;
        }
    }
    return false;
}

static void fill(const struct symbols *s, const struct symbol_place_row *place,
                 struct symbol_name *name)
{
    struct symbol_function_row f = { 0 };
    const bool known = place->function &&
                       tablefile_get(s->file, s->functions, place->function - 1, &f,
                                     sizeof f);
    *name = (struct symbol_name){
        .function = tablefile_text(s->file, f.name),
        .module = tablefile_text(s->file, f.module),
        .function_file = tablefile_text(s->file, f.file),
        .function_line = f.line,
        .file = tablefile_text(s->file, place->file),
        .line = place->line,
        .id = known ? place->function : 0,
    };
}

unsigned symbols_find(const struct symbols *s, const char *source, uint64_t key,
                      struct symbol_name *ret_names, unsigned max)
{
    uint32_t number, n = 0;
    if (!find_source(s, source, &number))
        return 0;
    const struct slot *slot = look(s, number, key);
    if (!slot->source)
        return 0;
    /* `max` ends loops of damaged files as well. */
    for (uint32_t at = slot->place + 1; at && n < max; n++) {
        struct symbol_place_row place;
        if (!tablefile_get(s->file, s->places, at - 1, &place, sizeof place))
            break;
        fill(s, &place, &ret_names[n]);
        at = place.outer;
    }
    return n;
}

void symbols_totals(const struct symbols *s, struct symbols_totals *ret_totals)
{
    struct symbols_totals t = { .modules = tablefile_count(s->file, s->modules) };
    for (uint32_t i = 0; i < t.modules; i++) {
        struct symbol_module_row row;
        if (!tablefile_get(s->file, s->modules, i, &row, sizeof row))
            continue;
        t.addresses += row.addresses;
        t.named += row.named;
        t.with_line += row.with_line;
        if (row.state <= SYMBOL_UNSUPPORTED)
            t.by_state[row.state]++;
    }
    *ret_totals = t;
}
