/* alloc_places.c: return addresses as places in programs.
 *
 * The one join between allocations and names: module and offset come from the heap file
 * itself, function, file and line from what launch/symbolise.c found.
 */
#include <string.h>

#include "analyse/alloc_parts.h"
#include "base/files.h"
#include "trace/module_rows.h"

/* Libraries that allocate on behalf of others: the frame behind them is the one that
 * asked. */
static const char *const allocators[] = {
    "libc.so",  "libc-2",      "libstdc++",   "libc++",      "libsonde-preload",
    "ld-linux", "libjemalloc", "libtcmalloc", "libmimalloc", "ld-2",
};

bool alloc_is_allocator(const char *module)
{
    const char *base = path_base(module);
    for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++)
        if (strncmp(base, allocators[i], strlen(allocators[i])) == 0)
            return true;
    return false;
}

/* The last row that covers the address counts. */
static bool find_module(const struct alloc_reader *r, uint64_t address,
                        struct module_row *ret_row)
{
    const int table = tablefile_find(r->file, MODULES_TABLE);
    const uint32_t count = table < 0 ? 0 : tablefile_count(r->file, table);
    for (uint32_t i = count; i-- > 0;)
        if (tablefile_get(r->file, table, i, ret_row, sizeof *ret_row) &&
            address >= ret_row->start && address < ret_row->end)
            return true;
    return false;
}

static void look_up(struct alloc_reader *r, uint64_t address,
                    struct alloc_place *ret_place)
{
    struct module_row module;
    struct symbol_name name;
    *ret_place = (struct alloc_place){ .function = "", .file = "", .module = "" };
    /* The call is before its return address, maybe in another function. */
    if (find_module(r, address - 1, &module)) {
        ret_place->module = alloc_keep(r, tablefile_text(r->file, module.path));
        ret_place->offset = address - 1 - module.start + module.file_offset;
    }
    if (!r->symbols || symbols_find(r->symbols, r->name, address, &name, 1) == 0)
        return;
    ret_place->function = alloc_keep(r, name.function);
    ret_place->file = alloc_keep(r, name.file);
    ret_place->line = name.line;
}

/* Sites share most of their frames. */
void alloc_place_of(struct alloc_reader *r, uint64_t address,
                    struct alloc_place *ret_place)
{
    struct alloc_place *known = strmap_get_ptr(&r->places, (const char *)&address,
                                               sizeof address);
    if (known) {
        *ret_place = *known;
        return;
    }
    look_up(r, address, ret_place);
    known = arena_alloc(&r->report->arena, sizeof *known);
    if (!known)
        return;
    *known = *ret_place;
    (void)strmap_put_ptr(&r->places, (const char *)&address, sizeof address, known);
}
