/* hangnames.c: see hangnames.h. */
#include "launch/hangnames.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/strmap.h"

enum { PLACES_MAX = 4096, AT_ONCE = 400, FRAMES_AT_ONCE = 1024, PATIENCE_S = 5 };

/* Processes have their modules at different addresses; here each file gets a range of
 * its own, so that one list of mappings does for all. */
enum { MODULE_SHIFT = 40 };

struct place {
    uint32_t module;
    bool caller;
    uint64_t offset;
    const struct symbolise_frame *frames;
    unsigned count;
};

struct hangnames {
    struct strmap modules, places; /* numbers of both */
    struct buf maps;
    struct arena arena;
    struct place place[PLACES_MAX];
    uint32_t count;
};

struct hangnames *hangnames_new(void)
{
    struct hangnames *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    strmap_init(&n->modules);
    strmap_init(&n->places);
    buf_init(&n->maps);
    arena_init(&n->arena);
    return n;
}

void hangnames_free(struct hangnames *n)
{
    if (!n)
        return;
    strmap_release(&n->modules);
    strmap_release(&n->places);
    buf_release(&n->maps);
    arena_release(&n->arena);
    free(n);
}

/* ---- Asking ------------------------------------------------------------------------------ */

static uint64_t base_of(uint32_t module)
{
    return (uint64_t)(module + 1) << MODULE_SHIFT;
}

static bool enter_module(struct hangnames *n, const struct sleeper_frame *f,
                         uint32_t *ret_number)
{
    struct buf key = BUF_INIT;
    bool added = false;
    buf_printf(&key, "%" PRIu64 " %s", f->inode, f->path);
    struct strmap_entry *e = key.error
                                 ? NULL
                                 : strmap_enter(&n->modules, key.data, key.len, &added);
    buf_release(&key);
    if (!e)
        return false;
    if (added) {
        e->value = n->modules.count - 1;
        const uint64_t base = base_of((uint32_t)e->value);
        buf_printf(&n->maps, "%" PRIx64 "-%" PRIx64 " r-xp 0 00:00 %" PRIu64 " %s\n",
                   base, base + ((uint64_t)1 << MODULE_SHIFT), f->inode, f->path);
    }
    *ret_number = (uint32_t)e->value;
    return true;
}

uint32_t hangnames_add(struct hangnames *n, const struct sleeper_frame *f)
{
    struct place place = { .offset = f->offset, .caller = f->caller };
    bool added = false;
    if (!f->path[0] || f->offset >> MODULE_SHIFT || !enter_module(n, f, &place.module))
        return UINT32_MAX;
    const uint64_t key[2] = { (uint64_t)place.module << 1 | f->caller, f->offset };
    uint64_t old;
    if (strmap_get(&n->places, (const char *)key, sizeof key, &old))
        return (uint32_t)old;
    struct strmap_entry *e = n->count < PLACES_MAX
                                 ? strmap_enter(&n->places, (const char *)key,
                                                sizeof key, &added)
                                 : NULL;
    if (!e)
        return UINT32_MAX;
    e->value = n->count;
    n->place[n->count] = place;
    return n->count++;
}

/* ---- Looking up -------------------------------------------------------------------------- */

/* Sorted by module: each file is opened once. */
struct turn {
    struct place *place;
};

static int by_module(const void *a, const void *b)
{
    const struct place *x = ((const struct turn *)a)->place;
    const struct place *y = ((const struct turn *)b)->place;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Behind the first all addresses count as return addresses, so that what is none is
 * moved by one. */
static uint64_t address_of(const struct place *p, bool first)
{
    return base_of(p->module) + p->offset - (first && p->caller) +
           (!first && !p->caller);
}

static void take_answers(struct hangnames *n, const struct turn *turns, size_t count,
                         const struct symbolise_frame *frames, size_t frame_count)
{
    struct symbolise_frame *kept = arena_alloc_array(&n->arena, frame_count,
                                                     sizeof *kept);
    if (!kept)
        return;
    for (size_t i = 0, p = 0; i < frame_count && p < count; i++) {
        kept[i] = frames[i];
        if (!turns[p].place->frames)
            turns[p].place->frames = &kept[i];
        turns[p].place->count++;
        p += !frames[i].inlined;
    }
}

static void look_up(struct hangnames *n, const struct turn *turns, size_t count)
{
    uint64_t address[AT_ONCE];
    struct symbolise_frame *frames = calloc(FRAMES_AT_ONCE, sizeof *frames);
    for (size_t i = 0; i < count; i++)
        address[i] = address_of(turns[i].place, i == 0);
    const int found = frames ? symbolise_addresses(n->maps.data, address, count, frames,
                                                   FRAMES_AT_ONCE)
                             : 0;
    if (found > 0)
        take_answers(n, turns, count, frames, (size_t)found);
    free(frames);
}

void hangnames_find(struct hangnames *n)
{
    struct turn *sorted = calloc(n->count, sizeof *sorted);
    const time_t enough = time(NULL) + PATIENCE_S;
    if (sorted && !n->maps.error) {
        for (uint32_t i = 0; i < n->count; i++)
            sorted[i].place = &n->place[i];
        qsort(sorted, n->count, sizeof *sorted, by_module);
        for (size_t at = 0; at < n->count && time(NULL) <= enough; at += AT_ONCE)
            look_up(n, sorted + at, n->count - at < AT_ONCE ? n->count - at : AT_ONCE);
    }
    free(sorted);
}

unsigned hangnames_get(const struct hangnames *n, uint32_t number,
                       const struct symbolise_frame **ret_frames)
{
    if (number >= n->count || !n->place[number].count)
        return 0;
    *ret_frames = n->place[number].frames;
    return n->place[number].count;
}
