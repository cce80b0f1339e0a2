/* pack.c: statistics in the compact form. See pack.h. */
#include "trace/pack.h"

#include <string.h>

#include "base/error.h"
#include "trace/crc32c.h"

void pack_section_put(struct buf *out, enum pack_kind kind, const void *payload,
                      size_t len)
{
    static const char zeros[8];
    struct pack_section s = { kind, crc32c(0, payload, len), len };
    buf_append(out, &s, sizeof s);
    buf_append(out, payload, len);
    buf_append(out, zeros, (8 - len % 8) % 8);
}

/* ---- Nodes ----------------------------------------------------------------------- */

static void pack_octave(const uint64_t *counts, unsigned octave, struct buf *out)
{
    struct pack_octave head = { .octave = (uint16_t)octave };
    for (unsigned i = 0; i < LOGHIST_SUBS; i++)
        head.buckets += counts[i] != 0;
    buf_append(out, &head, sizeof head);
    for (unsigned i = 0; i < LOGHIST_SUBS; i++) {
        if (!counts[i])
            continue;
        uint64_t bucket = counts[i] << 8 | i;
        buf_append(out, &bucket, sizeof bucket);
    }
}

void pack_nodes(const struct fold *f, struct buf *out)
{
    for (unsigned i = 0; i < f->node_count; i++) {
        const struct fold_node *n = &f->nodes[i];
        if (!n->used || (i < FIRST_NODE && n->stats.count == 0 && n->stats.total == 0))
            continue;
        struct pack_node head = { (uint16_t)i, n->parent, n->site, 0, n->stats };
        for (unsigned k = 0; k < LOGHIST_CHUNKS; k++)
            head.octaves += n->stats.chunk[k] != 0;
        memset(head.stats.chunk, 0, sizeof head.stats.chunk);
        buf_append(out, &head, sizeof head);
        for (unsigned k = 0; k < LOGHIST_CHUNKS; k++)
            if (n->stats.chunk[k])
                pack_octave(f->chunks[n->stats.chunk[k] - 1], k, out);
    }
}

static int take(const uint8_t **p, size_t *len, void *ret, size_t size)
{
    if (*len < size)
        return SONDE_E_FORMAT;
    memcpy(ret, *p, size);
    *p += size;
    *len -= size;
    return 0;
}

static int unpack_octave(struct fold *f, struct fold_node *n, const uint8_t **p,
                         size_t *len)
{
    struct pack_octave head;
    int rc = take(p, len, &head, sizeof head);
    if (rc < 0)
        return rc;
    if (head.octave >= LOGHIST_CHUNKS || n->stats.chunk[head.octave] ||
        f->chunk_count >= MAX_CHUNKS)
        return SONDE_E_FORMAT;
    unsigned chunk = ++f->chunk_count;
    n->stats.chunk[head.octave] = (uint16_t)chunk;
    for (unsigned i = 0; i < head.buckets; i++) {
        uint64_t bucket;
        rc = take(p, len, &bucket, sizeof bucket);
        if (rc < 0)
            return rc;
        f->chunks[chunk - 1][bucket & (LOGHIST_SUBS - 1)] += bucket >> 8;
    }
    return 0;
}

int unpack_nodes(struct fold *f, const uint8_t *p, size_t len)
{
    while (len > 0) {
        struct pack_node head;
        int rc = take(&p, &len, &head, sizeof head);
        if (rc < 0)
            return rc;
        memset(head.stats.chunk, 0, sizeof head.stats.chunk);
        if ((head.number >= FIRST_NODE && head.parent >= head.number) ||
            !fold_insert_node(f, head.number, head.parent, head.site & (MAX_SITES - 1),
                              &head.stats))
            return SONDE_E_FORMAT;
        for (unsigned i = 0; i < head.octaves; i++) {
            rc = unpack_octave(f, &f->nodes[head.number], &p, &len);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

/* ---- Values ---------------------------------------------------------------------- */

void pack_values(const struct fold *f, struct buf *out)
{
    for (unsigned i = 0; i < f->value_count; i++) {
        const struct fold_value *v = &f->values[i];
        struct pack_value item = { v->node, v->name, v->kind, v->stats };
        buf_append(out, &item, sizeof item);
    }
}

int unpack_values(struct fold *f, const uint8_t *p, size_t len)
{
    struct pack_value item;
    while (len > 0) {
        int rc = take(&p, &len, &item, sizeof item);
        if (rc < 0)
            return rc;
        struct fold_value v = { .node = item.node,
                                .name = item.name & (MAX_SITES - 1),
                                .kind = (uint8_t)item.kind,
                                .stats = item.stats };
        fold_insert_value(f, &v);
    }
    return 0;
}
