/* packwriter.c: words into blocks, blocks into sections. See packwriter.h. */
#include "trace/packwriter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "trace/fold.h"
#include "trace/format.h"
#include "trace/pack.h"
#include "trace/space.h"
#include "trace/wordpack.h"

enum { FLUSH_BYTES = 1 << 20 };

struct open_block {
    uint64_t *words; /* EVENTS_WORDS, made on first use */
    uint32_t count, seq;
    uint64_t base_ticks;
};

struct packwriter {
    int fd, error;
    char path[1024], temporary[1100];
    struct buf out, strings;
    uint64_t written;
    uint32_t sections;
    struct trace_head head;
    struct trace_live live;
    struct site_entry *sites;
    uint32_t site_count; /* from 0: FIRST_SITE are there at once */
    struct fold *fold;
    struct open_block blocks[MAX_LANES];
    uint32_t tid[MAX_LANES];
    char name[MAX_LANES][16];
    bool step_ended[MAX_LANES];
    uint64_t last_ticks;
};

static void note_error(struct packwriter *w, int rc)
{
    if (rc < 0 && !w->error)
        w->error = rc;
}

/* ---- Opening ------------------------------------------------------------------------ */

static void fill_head(struct packwriter *w, const struct packwriter_about *about)
{
    struct trace_head *h = &w->head;
    h->magic = TRACE_MAGIC;
    h->major = TRACE_MAJOR;
    h->minor = TRACE_MINOR;
    h->block_size = BLOCK_SIZE;
    h->pid = about->pid;
    h->ppid = about->ppid;
    h->tick_source = TICKS_CLOCK_NS;
    h->level = 2;
    /* Ticks are nanoseconds since the epoch; words keep the low 48 bits of them, which
     * the base of each block completes. */
    h->start = (struct clock_reading){ .ticks = about->start_ns,
                                       .mono_raw_ns = about->start_ns,
                                       .mono_ns = about->start_ns,
                                       .real_ns = about->start_ns };
    (void)snprintf(h->exe, sizeof h->exe, "%s", about->exe ? about->exe : "");
    (void)snprintf(h->role, sizeof h->role, "%s", about->role ? about->role : "main");
    w->live.flags = LIVE_EXITED | LIVE_COMPACTED;
    w->last_ticks = about->start_ns;
}

static int open_file(struct packwriter *w, const char *path)
{
    if (snprintf(w->path, sizeof w->path, "%s", path) >= (int)sizeof w->path)
        return -ENAMETOOLONG;
    (void)snprintf(w->temporary, sizeof w->temporary, "%s.tmp-%d", path, (int)getpid());
    w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                 0600);
    return w->fd < 0 ? -errno : 0;
}

int packwriter_new(const char *path, const struct packwriter_about *about,
                   struct packwriter **ret_writer)
{
    struct packwriter *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->fd = -1;
    buf_init(&w->out);
    buf_init(&w->strings);
    buf_putc(&w->strings, '\0'); /* offset 0 is the empty string */
    w->sites = calloc(MAX_SITES, sizeof *w->sites);
    w->site_count = FIRST_SITE;
    fill_head(w, about);
    int rc = w->sites ? fold_new(&w->fold) : -ENOMEM;
    if (rc == 0)
        rc = open_file(w, path);
    if (rc == 0) {
        const struct pack_head head = { PACK_MAGIC, TRACE_MAJOR, TRACE_MINOR, 0 };
        buf_append(&w->out, &head, sizeof head);
        *ret_writer = w;
        return 0;
    }
    packwriter_discard(w);
    return rc;
}

void packwriter_discard(struct packwriter *w)
{
    if (!w)
        return;
    if (w->fd >= 0) {
        (void)close(w->fd);
        (void)unlink(w->temporary);
    }
    for (unsigned i = 0; i < MAX_LANES; i++)
        free(w->blocks[i].words);
    fold_free(w->fold);
    free(w->sites);
    buf_release(&w->out);
    buf_release(&w->strings);
    free(w);
}

/* ---- Sections ----------------------------------------------------------------------- */

static void flush(struct packwriter *w)
{
    if (w->out.error)
        note_error(w, w->out.error);
    if (!w->error)
        note_error(w, space_reserve(w->fd, w->written, w->out.len));
    if (!w->error)
        note_error(w,
                   fd_pwrite_full(w->fd, w->out.data, w->out.len, (off_t)w->written));
    w->written += w->out.len;
    buf_clear(&w->out);
}

static void put(struct packwriter *w, enum pack_kind kind, const void *data, size_t len)
{
    pack_section_put(&w->out, kind, data, len);
    w->sections++;
    if (w->out.len > FLUSH_BYTES)
        flush(w);
}

static void put_block(struct packwriter *w, unsigned lane)
{
    struct open_block *b = &w->blocks[lane];
    if (b->count == 0 || w->error)
        return;
    uint8_t *out = malloc(sizeof(struct pack_events) +
                          (size_t)b->count * WORDPACK_FACTOR + 8);
    if (!out) {
        note_error(w, -ENOMEM);
        return;
    }
    struct pack_events head = { .lane = lane,
                                .seq = ++b->seq,
                                .base_ticks = b->base_ticks };
    size_t kept;
    const size_t len = wordpack_encode(b->words, b->count, b->base_ticks,
                                       out + sizeof head, &kept);
    head.kept = (uint32_t)kept;
    memcpy(out, &head, sizeof head);
    put(w, PACK_EVENTS, out, sizeof head + len);
    free(out);
    fold_words(w->fold, lane, b->words, b->count, b->base_ticks);
    struct fold_lane *l = fold_lane(w->fold, lane);
    if (l)
        l->carry.next_seq = b->seq + 1;
    b->count = 0;
}

/* ---- Events ------------------------------------------------------------------------- */

static bool open_block(struct packwriter *w, unsigned lane, unsigned need, uint64_t ns)
{
    if (lane >= MAX_LANES || w->error)
        return false;
    struct open_block *b = &w->blocks[lane];
    if (!b->words)
        b->words = malloc(EVENTS_WORDS * sizeof *b->words);
    if (!b->words) {
        note_error(w, -ENOMEM);
        return false;
    }
    if (b->count + need > EVENTS_WORDS)
        put_block(w, lane);
    if (b->count == 0)
        b->base_ticks = ns;
    if (ns > w->last_ticks)
        w->last_ticks = ns;
    return true;
}

static void put_record(struct packwriter *w, unsigned lane, unsigned tag, uint64_t ns,
                       const uint64_t *payload, unsigned count)
{
    if (!open_block(w, lane, count + 1, ns))
        return;
    struct open_block *b = &w->blocks[lane];
    b->words[b->count++] = ns << 16 | tag;
    for (unsigned i = 0; i < count; i++)
        b->words[b->count++] = payload[i] << 16 | TAG_CONT;
}

void packwriter_lane(struct packwriter *w, unsigned lane, uint32_t tid,
                     const char *name)
{
    if (lane >= MAX_LANES)
        return;
    w->tid[lane] = tid;
    (void)snprintf(w->name[lane], sizeof w->name[lane], "%s", name);
    put_record(w, lane, TAG_THREAD, w->head.start.ticks, (const uint64_t[]){ tid }, 1);
}

void packwriter_begin(struct packwriter *w, unsigned lane, unsigned site, uint64_t ns)
{
    put_record(w, lane, site << 1, ns, NULL, 0);
}

void packwriter_end(struct packwriter *w, unsigned lane, unsigned site, uint64_t ns)
{
    put_record(w, lane, site << 1 | 1, ns, NULL, 0);
}

void packwriter_step(struct packwriter *w, unsigned lane, uint64_t samples, uint64_t ns)
{
    put_record(w, lane, TAG_STEP, ns, &samples, 1);
    w->live.steps++;
}

void packwriter_step_end(struct packwriter *w, unsigned lane, uint64_t ns)
{
    const uint64_t none = 0;
    put_record(w, lane, TAG_STEP, ns, &none, 1);
    if (lane < MAX_LANES)
        w->step_ended[lane] = true;
}

void packwriter_value(struct packwriter *w, unsigned lane, unsigned name, int kind,
                      double value, uint64_t ns)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t payload[2] = { (uint64_t)name << 32 | bits >> 32,
                                  (uint64_t)kind << 32 | (bits & 0xffffffff) };
    put_record(w, lane, TAG_VALUE, ns, payload, 2);
}

void packwriter_mark(struct packwriter *w, unsigned lane, unsigned name, uint64_t ns)
{
    put_record(w, lane, TAG_MARK, ns, (const uint64_t[]){ name }, 1);
}

/* ---- Sites -------------------------------------------------------------------------- */

static uint32_t put_string(struct packwriter *w, const char *text)
{
    if (!text || !text[0])
        return 0;
    static const char ellipsis[] = "\xE2\x80\xA6";
    size_t len = strnlen(text, MAX_NAME);
    const bool cut = len == MAX_NAME;
    const size_t at = w->strings.len;
    if (at + len + 1 > UINT32_MAX / 2)
        return 0;
    if (cut)
        for (len = MAX_NAME - sizeof ellipsis; ((uint8_t)text[len] & 0xC0) == 0x80;)
            len--;
    buf_append(&w->strings, text, len);
    if (cut)
        buf_puts(&w->strings, ellipsis);
    buf_putc(&w->strings, '\0');
    return (uint32_t)at;
}

unsigned packwriter_site(struct packwriter *w, const struct packwriter_site *site)
{
    if (w->site_count == MAX_SITES) {
        w->live.names_lost++;
        return SITE_OTHER;
    }
    w->sites[w->site_count] = (struct site_entry){
        .name = put_string(w, site->name),
        .file = put_string(w, site->file),
        .component = put_string(w, site->component),
        .category = put_string(w, site->category),
        .tags = put_string(w, site->tags),
        .line = site->line,
        .phase = (uint16_t)site->phase,
    };
    return w->site_count++;
}

unsigned packwriter_sum(struct packwriter *w, unsigned parent, unsigned site,
                        uint64_t count, uint64_t total_ns)
{
    const unsigned number = w->fold->node_count;
    const struct node_stats stats = {
        .count = count,
        .total = total_ns,
        .min = count ? total_ns / count : 0,
        .max = count ? total_ns / count : 0,
        .first_ticks = w->head.start.ticks,
        .last_ticks = w->head.start.ticks + total_ns,
    };
    if (number >= MAX_NODES ||
        !fold_insert_node(w->fold, number, parent, site, &stats)) {
        w->fold->nodes[NODE_OTHER].stats.count += count;
        return parent;
    }
    if (w->fold->node_count <= number)
        w->fold->node_count = number + 1;
    if (w->last_ticks < stats.last_ticks)
        w->last_ticks = stats.last_ticks;
    return number;
}

void packwriter_sum_value(struct packwriter *w, unsigned node, unsigned name,
                          double value)
{
    const struct fold_value v = {
        .node = (uint16_t)node,
        .name = (uint16_t)name,
        .kind = VALUE_ZONE,
        .used = 1,
        .stats = { 1, value, value, value, value, w->head.start.ticks },
    };
    fold_insert_value(w->fold, &v);
}

/* ---- Closing ------------------------------------------------------------------------ */

static void put_lanes(struct packwriter *w)
{
    struct buf lanes = BUF_INIT;
    for (unsigned i = 0; i < w->fold->lane_count; i++) {
        const struct fold_lane *l = &w->fold->lanes[i];
        if (!l->used)
            continue;
        struct pack_lane item = { .number = i, .tid = w->tid[i], .carry = l->carry };
        item.carry.steps -= w->step_ended[i] && item.carry.steps > 0;
        memcpy(item.name, w->name[i], sizeof item.name);
        buf_append(&lanes, &item, sizeof item);
        buf_append(&lanes, l->frames, lane_frames(&l->carry) * sizeof l->frames[0]);
    }
    put(w, PACK_LANES, lanes.data, lanes.len);
    note_error(w, lanes.error);
    buf_release(&lanes);
}

static void put_statistics(struct packwriter *w)
{
    struct buf b = BUF_INIT;
    w->live.site_count = w->site_count - FIRST_SITE;
    w->live.last_ticks = w->last_ticks;
    w->live.string_bytes = w->strings.len;
    put(w, PACK_HEAD, &w->head, sizeof w->head);
    put(w, PACK_LIVE, &w->live, sizeof w->live);
    put(w, PACK_STRINGS, w->strings.data, w->strings.len);
    put(w, PACK_SITES, w->sites, (size_t)w->site_count * sizeof *w->sites);
    pack_nodes(w->fold, &b);
    put(w, PACK_NODES, b.data, b.len);
    put_lanes(w);
    buf_clear(&b);
    pack_values(w->fold, &b);
    put(w, PACK_VALUES, b.data, b.len);
    note_error(w, b.error ? b.error : w->strings.error);
    buf_release(&b);
}

int packwriter_finish(struct packwriter *w)
{
    for (unsigned i = 0; i < MAX_LANES; i++)
        if (w->blocks[i].words)
            put_block(w, i);
    for (unsigned i = 0; i < w->fold->lane_count; i++)
        if (w->fold->lanes[i].used)
            fold_truncate_lane(w->fold, i);
    put_statistics(w);
    flush(w);
    const struct pack_head head = { PACK_MAGIC, TRACE_MAJOR, TRACE_MINOR, w->sections };
    if (!w->error)
        note_error(w, fd_pwrite_full(w->fd, &head, sizeof head, 0));
    if (!w->error && rename(w->temporary, w->path) != 0)
        note_error(w, -errno);
    if (!w->error) {
        (void)close(w->fd);
        w->fd = -1; /* nothing to unlink */
    }
    const int rc = w->error;
    packwriter_discard(w);
    return rc;
}
