/* image.c: see image.h. */
#include "trace/image.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "trace/cells.h"
#include "trace/crc32c.h"
#include "trace/file.h"
#include "trace/pack.h"
#include "trace/wordpack.h"

bool source_read(const struct source *s, uint64_t offset, void *ret, size_t len)
{
    uint8_t *out = ret;
    memset(out, 0, len);
    if (offset >= s->len)
        return true;
    if (len > s->len - offset)
        len = (size_t)(s->len - offset);
    if (s->fd < 0) {
        memcpy(out, s->memory + offset, len);
        return true;
    }
    while (len > 0) {
        ssize_t n = pread(s->fd, out, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (n == 0)
            return true; /* truncated meanwhile */
        out += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return true;
}

static void note_damage(struct image *im, const char *what)
{
    if (!im->damage[0])
        snprintf(im->damage, sizeof im->damage, "%s", what);
}

void image_release(struct image *im)
{
    fold_free(im->fold);
    free(im->strings);
    free(im->sites);
    free(im->events);
    *im = (struct image){ 0 };
}

static int by_lane_and_seq(const void *a, const void *b)
{
    const struct event_block *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static void sort_events(struct image *im)
{
    if (im->event_count > 1) /* qsort wants an array even for nothing */
        qsort(im->events, im->event_count, sizeof *im->events, by_lane_and_seq);
}

/* ---- Blocks of a raw file, kept while loading ------------------------------------- */

struct block_cache {
    const struct source *source;
    uint8_t **blocks;
    uint32_t count;
};

static const uint8_t *cached_block(void *arg, uint32_t block)
{
    struct block_cache *c = arg;
    if (block >= c->count)
        return NULL;
    if (!c->blocks[block]) {
        uint8_t *p = malloc(BLOCK_SIZE);
        if (!p ||
            !source_read(c->source, (uint64_t)block * BLOCK_SIZE, p, BLOCK_SIZE)) {
            free(p);
            return NULL;
        }
        c->blocks[block] = p;
    }
    return c->blocks[block];
}

static int cache_init(struct block_cache *c, const struct source *source)
{
    uint64_t blocks = (source->len + BLOCK_SIZE - 1) / BLOCK_SIZE;
    c->source = source;
    c->count = blocks < MAX_BLOCKS ? (uint32_t)blocks : MAX_BLOCKS;
    c->blocks = calloc(c->count ? c->count : 1, sizeof *c->blocks);
    return c->blocks ? 0 : -ENOMEM;
}

static void cache_release(struct block_cache *c)
{
    for (uint32_t i = 0; c->blocks && i < c->count; i++)
        free(c->blocks[i]);
    free(c->blocks);
}

/* ---- Names ------------------------------------------------------------------------ */

/* Strings become one piece that ends in NUL, whatever the file says. */
static int load_strings(struct image *im, struct block_cache *c)
{
    uint64_t max = (uint64_t)STRING_BLOCKS * BLOCK_SIZE, len = im->live.string_bytes;
    if (len > max)
        len = max;
    im->strings = calloc(1, (size_t)len + 1);
    if (!im->strings)
        return -ENOMEM;
    for (uint64_t at = 0; at < len; at += BLOCK_SIZE) {
        uint32_t block = im->head.strings[at / BLOCK_SIZE];
        const uint8_t *p = block ? cached_block(c, block) : NULL;
        uint64_t n = len - at < BLOCK_SIZE ? len - at : BLOCK_SIZE;
        if (p)
            memcpy(im->strings + at, p, (size_t)n);
    }
    im->string_bytes = len;
    return 0;
}

static int load_sites(struct image *im, struct block_cache *c)
{
    uint32_t count = im->live.site_count < MAX_SITES ? im->live.site_count : MAX_SITES;
    im->sites = calloc((size_t)count + 1, sizeof *im->sites);
    if (!im->sites)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t block = im->head.sites[i / SITES_PER_BLOCK];
        const uint8_t *p = block ? cached_block(c, block) : NULL;
        if (p)
            memcpy(&im->sites[i], p + (size_t)(i % SITES_PER_BLOCK) * 32, 32);
    }
    im->site_count = count;
    return 0;
}

static void load_lane_names(struct image *im, struct block_cache *c)
{
    for (uint32_t i = 0; i < MAX_LANES; i++) {
        uint32_t block = im->head.lanes[i / LANES_PER_BLOCK];
        const uint8_t *p = block ? cached_block(c, block) : NULL;
        if (!p)
            continue;
        struct lane_cell cell;
        memcpy(&cell, p + (size_t)(i % LANES_PER_BLOCK) * 8192, 24);
        im->lane_tid[i] = cell.tid;
        memcpy(im->lane_name[i], cell.name, 15);
    }
}

/* ---- Events ----------------------------------------------------------------------- */

/* The block table as it is now, one word for each block. */
static int read_table(struct image *im, uint64_t **ret_words, uint32_t *ret_count)
{
    struct stat st;
    if (im->source.fd >= 0 && fstat(im->source.fd, &st) == 0)
        im->source.len = (uint64_t)st.st_size; /* it may have grown */
    uint32_t count, tables[TABLE_DIR];
    const uint64_t blocks = (im->source.len + BLOCK_SIZE - 1) / BLOCK_SIZE;
    if (!source_read(&im->source, BLOCK_SIZE + offsetof(struct trace_live, next_block),
                     &count, sizeof count) ||
        !source_read(&im->source, offsetof(struct trace_head, table), tables,
                     sizeof tables))
        return -EIO;
    if (count > blocks)
        count = (uint32_t)blocks;
    if (count > MAX_BLOCKS)
        count = MAX_BLOCKS;
    const uint32_t used = (count + TABLE_PER_BLOCK - 1) / TABLE_PER_BLOCK;
    uint64_t *words = calloc((size_t)used * TABLE_PER_BLOCK + 1, sizeof *words);
    bool good = words != NULL;
    for (uint32_t i = 0; good && i < used; i++)
        if (tables[i])
            good = source_read(&im->source, (uint64_t)tables[i] * BLOCK_SIZE,
                               words + (size_t)i * TABLE_PER_BLOCK, BLOCK_SIZE);
    if (!good) {
        const int rc = words ? -EIO : -ENOMEM;
        free(words);
        return rc;
    }
    *ret_words = words;
    *ret_count = count;
    return 0;
}

static bool holds_events(uint64_t w)
{
    const unsigned state = block_state(w);
    return block_kind(w) == BLOCK_EVENTS && block_lane(w) < MAX_LANES &&
           (state == STATE_OPEN || state == STATE_SEALED || state == STATE_FOLDED);
}

/* Threads go on taking blocks while we look: a later block may stand where we have not
 * looked yet and an earlier one where we have. Everything up to the newest of a first
 * look is there in a second. */
static int list_events(struct image *im)
{
    uint32_t newest[MAX_LANES] = { 0 }, count;
    uint64_t *words;
    int rc = read_table(im, &words, &count);
    if (rc < 0)
        return rc;
    for (uint32_t i = 2; i < count; i++)
        if (holds_events(words[i]) &&
            block_seq(words[i]) > newest[block_lane(words[i])])
            newest[block_lane(words[i])] = block_seq(words[i]);
    free(words);
    rc = read_table(im, &words, &count);
    if (rc < 0)
        return rc;
    im->events = calloc((size_t)count + 1, sizeof *im->events);
    for (uint32_t i = 2; im->events && i < count; i++)
        if (holds_events(words[i]) &&
            block_seq(words[i]) <= newest[block_lane(words[i])])
            im->events[im->event_count++] = (struct event_block){
                .lane = block_lane(words[i]),
                .seq = block_seq(words[i]),
                .offset = (uint64_t)i * BLOCK_SIZE
            };
    free(words);
    if (!im->events)
        return -ENOMEM;
    sort_events(im);
    return 0;
}

/* Counts blocks that no folder has counted. A gap in the sequence can only come
 * from damage; the blocks behind it still count. */
static int fold_pending(struct image *im)
{
    uint64_t *words = malloc(EVENTS_WORDS * sizeof *words);
    if (!words)
        return -ENOMEM;
    for (size_t i = 0; i < im->event_count; i++) {
        struct event_block *b = &im->events[i];
        struct fold_lane *l = fold_lane(im->fold, b->lane);
        if (!l || b->seq < l->carry.next_seq)
            continue;
        uint64_t base;
        int n = image_words(im, b, words, &base);
        if (b->seq > l->carry.next_seq)
            note_damage(im, "event blocks are missing");
        if (n < 0)
            note_damage(im, "an event block is damaged");
        if (n <= 0)
            continue;
        fold_words(im->fold, b->lane, words, (size_t)n, base);
        l->carry.next_seq = b->seq + 1;
        b->pending = true;
        im->unfolded_blocks++;
    }
    free(words);
    return 0;
}

int image_words(const struct image *im, const struct event_block *b,
                uint64_t *ret_words, uint64_t *ret_base_ticks)
{
    if (b->packed_len) {
        struct pack_events head;
        size_t room = b->packed_len;
        uint8_t *p = malloc(room);
        int rc = SONDE_E_FORMAT;
        if (!p)
            return -ENOMEM;
        if (room >= sizeof head && source_read(&im->source, b->offset, p, room) &&
            crc32c(0, p, room) == b->packed_crc) {
            memcpy(&head, p, sizeof head);
            rc = wordpack_decode(p + sizeof head, room - sizeof head, head.kept,
                                 head.base_ticks, ret_words);
            *ret_base_ticks = head.base_ticks;
            if (rc == 0)
                rc = (int)head.kept;
        }
        free(p);
        return rc;
    }
    struct events_head head;
    if (!source_read(&im->source, b->offset, &head, sizeof head) ||
        !source_read(&im->source, b->offset + EVENTS_OFFSET, ret_words,
                     EVENTS_WORDS * sizeof *ret_words))
        return -EIO;
    struct events_head after;
    if (!source_read(&im->source, b->offset, &after, sizeof after))
        return -EIO;
    /* Recycled while we looked (a live file), or never filled. */
    if (head.lane != b->lane || head.seq != b->seq || after.lane != b->lane ||
        after.seq != b->seq)
        return 0;
    if (after.crc_set && !b->pending &&
        crc32c_words(ret_words, EVENTS_WORDS) != after.crc)
        return SONDE_E_FORMAT;
    *ret_base_ticks = head.base_ticks;
    return EVENTS_WORDS;
}

/* ---- Loading ---------------------------------------------------------------------- */

static void end_open_zones(struct image *im)
{
    for (unsigned i = 0; i < im->fold->lane_count; i++)
        if (im->fold->lanes[i].used)
            fold_truncate_lane(im->fold, i);
}

static unsigned phase_of_site(const void *image, unsigned site)
{
    const struct image *im = image;
    return site < im->site_count ? im->sites[site].phase : 0;
}

static int new_fold(struct image *im)
{
    const int rc = fold_new(&im->fold);
    if (rc == 0) {
        im->fold->phase_of = phase_of_site;
        im->fold->phase_arg = im;
    }
    return rc;
}

static int load_raw(struct image *im)
{
    struct block_cache cache = { 0 };
    int rc = cache_init(&cache, &im->source);
    if (rc == 0 && (!source_read(&im->source, 0, &im->head, sizeof im->head) ||
                    !source_read(&im->source, BLOCK_SIZE, &im->live, sizeof im->live)))
        rc = -EIO;
    if (rc == 0 && im->head.block_size != BLOCK_SIZE)
        rc = SONDE_E_FORMAT;
    if (rc == 0)
        rc = new_fold(im);
    if (rc == 0) {
        const struct blockview view = { cached_block, &cache };
        im->damaged_cells = cells_load(im->fold, &im->head, &view, im->live.commit);
        if (im->damaged_cells)
            note_damage(im, "some statistics are damaged and were left out");
        rc = load_strings(im, &cache);
    }
    if (rc == 0)
        rc = load_sites(im, &cache);
    if (rc == 0)
        rc = list_events(im);
    if (rc == 0)
        load_lane_names(im, &cache);
    cache_release(&cache);
    if (rc == 0)
        rc = fold_pending(im);
    return rc;
}

/* Walks the lanes of a PACK_LANES payload. */
static int load_packed_lanes(struct image *im, const uint8_t *p, size_t len)
{
    while (len > 0) {
        struct pack_lane head;
        if (len < sizeof head)
            return SONDE_E_FORMAT;
        memcpy(&head, p, sizeof head);
        p += sizeof head;
        len -= sizeof head;
        size_t frames = lane_frames(&head.carry) * sizeof(struct lane_frame);
        if (frames > len || !fold_insert_lane(im->fold, head.number, &head.carry,
                                              (const struct lane_frame *)p))
            return SONDE_E_FORMAT;
        im->lane_tid[head.number] = head.tid;
        memcpy(im->lane_name[head.number], head.name, 15);
        p += frames;
        len -= frames;
    }
    return 0;
}

static int keep_section(struct image *im, const struct pack_section *s,
                        const uint8_t *p)
{
    size_t len = (size_t)s->len;
    switch (s->kind) {
    case PACK_HEAD:
        memcpy(&im->head, p, len < sizeof im->head ? len : sizeof im->head);
        return 0;
    case PACK_LIVE:
        memcpy(&im->live, p, len < sizeof im->live ? len : sizeof im->live);
        return 0;
    case PACK_STRINGS:
        free(im->strings);
        im->strings = calloc(1, len + 1);
        if (!im->strings)
            return -ENOMEM;
        memcpy(im->strings, p, len);
        im->string_bytes = len;
        return 0;
    case PACK_SITES:
        free(im->sites);
        im->site_count = (uint32_t)(len / 32 < MAX_SITES ? len / 32 : MAX_SITES);
        im->sites = calloc((size_t)im->site_count + 1, 32);
        if (!im->sites)
            return -ENOMEM;
        memcpy(im->sites, p, (size_t)im->site_count * 32);
        return 0;
    case PACK_NODES:
        return unpack_nodes(im->fold, p, len);
    case PACK_LANES:
        return load_packed_lanes(im, p, len);
    case PACK_VALUES:
        return unpack_values(im->fold, p, len);
    default:
        return 0;
    }
}

static int add_packed_events(struct image *im, uint64_t offset,
                             const struct pack_section *s)
{
    uint64_t len = s->len;
    struct pack_events head;
    if (len < sizeof head || len > 128 * 1024 ||
        !source_read(&im->source, offset, &head, sizeof head) || head.lane >= MAX_LANES)
        return SONDE_E_FORMAT;
    if ((im->event_count & (im->event_count - 1)) == 0) { /* room doubles at powers */
        size_t room = im->event_count ? 2 * im->event_count : 1;
        struct event_block *events = realloc(im->events, room * sizeof *events);
        if (!events)
            return -ENOMEM;
        im->events = events;
    }
    im->events[im->event_count++] = (struct event_block){ .lane = head.lane,
                                                          .seq = head.seq,
                                                          .offset = offset,
                                                          .packed_len = (uint32_t)len,
                                                          .packed_crc = s->crc };
    return 0;
}

enum { SECTION_MAX = 64 << 20 }; /* larger than any statistics can be */

static int load_section(struct image *im, uint64_t at, const struct pack_section *s)
{
    if (s->kind == PACK_EVENTS)
        return add_packed_events(im, at, s);
    if (s->len > SECTION_MAX)
        return SONDE_E_FORMAT;
    uint8_t *p = malloc((size_t)s->len + 1);
    if (!p)
        return -ENOMEM;
    int rc = 0;
    if (!source_read(&im->source, at, p, (size_t)s->len))
        rc = -EIO;
    else if (crc32c(0, p, (size_t)s->len) != s->crc)
        rc = SONDE_E_FORMAT;
    else
        rc = keep_section(im, s, p);
    free(p);
    return rc;
}

static int load_packed(struct image *im)
{
    struct pack_head head;
    int rc = new_fold(im);
    if (rc < 0)
        return rc;
    if (!source_read(&im->source, 0, &head, sizeof head))
        return -EIO;
    if (head.major != TRACE_MAJOR)
        return SONDE_E_VERSION;
    uint64_t at = sizeof head;
    for (uint32_t i = 0; i < head.sections; i++) {
        struct pack_section s;
        if (at + sizeof s > im->source.len ||
            !source_read(&im->source, at, &s, sizeof s) ||
            s.len > im->source.len - at - sizeof s) {
            note_damage(im, "the file ends too early");
            break;
        }
        at += sizeof s;
        rc = load_section(im, at, &s);
        if (rc == -ENOMEM)
            return rc;
        if (rc < 0)
            note_damage(im, "a section is damaged and was left out");
        at += (s.len + 7) & ~7ULL;
    }
    if (!im->sites || !im->strings)
        return SONDE_E_FORMAT;
    sort_events(im);
    return 0;
}

int image_load(const struct source *source, struct image *ret_image)
{
    struct image im = { .source = *source };
    uint64_t magic = 0;
    uint16_t version[2] = { 0, 0 };
    if (!source_read(source, 0, &magic, sizeof magic) ||
        !source_read(source, 8, version, sizeof version))
        return -EIO;
    if (magic != TRACE_MAGIC && magic != PACK_MAGIC)
        return SONDE_E_FORMAT;
    if (version[0] != TRACE_MAJOR)
        return SONDE_E_VERSION;
    im.packed = magic == PACK_MAGIC;
    uint32_t owner = 0;
    if (!source_read(source, offsetof(struct trace_head, pid), &owner, sizeof owner))
        return -EIO;
    bool locked = source->fd >= 0 && !im.packed &&
                  tracefile_read_lock(source->fd, owner);
    int rc = im.packed ? load_packed(&im) : load_raw(&im);
    if (locked)
        tracefile_read_unlock(source->fd, owner);
    if (rc < 0) {
        image_release(&im);
        return rc;
    }
    im.alive = !im.packed && source->fd >= 0 && !(im.live.flags & LIVE_EXITED) &&
               tracefile_owner_alive(&im.head);
    if (!im.alive)
        end_open_zones(&im);
    else if (!locked && im.damage[0]) /* more likely half written than damaged */
        (void)snprintf(im.damage, sizeof im.damage,
                       "it was written all the time while it was read: ask again");
    *ret_image = im;
    return 0;
}
