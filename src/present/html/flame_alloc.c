/* flame_alloc.c: bytes allocated, held at the peak and kept, by place in the program.
 *
 * A site knows the stack that allocated most of it; its bytes are drawn there.
 */
#include <string.h>

#include "present/html/flame.h"

static const char *place_name(const struct alloc_place *p, char *room, size_t len)
{
    const char *slash = strrchr(p->module, '/');
    if (p->function[0])
        return p->function;
    (void)snprintf(room, len, "[%.200s+0x%llx]",
                   p->module[0] ? (slash ? slash + 1 : p->module) : "unknown",
                   (unsigned long long)p->offset);
    return room;
}

static uint32_t go_down(struct calltree *tree, struct site_names *sites, uint32_t at,
                        const struct alloc_place *p)
{
    char room[256];
    const struct site_name site = { place_name(p, room, sizeof(room)),
                                    p->file[0] ? p->file : p->module, p->line, 0 };
    return calltree_child(tree, at, site_number(sites, &site));
}

static void add_site(struct calltree *tree, struct site_names *sites,
                     const struct alloc_site *s, double bytes)
{
    uint32_t at = 0;
    if (!(bytes > 0))
        return;
    for (unsigned i = s->depth; i-- > 0;)
        at = go_down(tree, sites, at, &s->stack[i]);
    if (s->depth == 0)
        at = go_down(tree, sites, at, &s->at);
    calltree_add(tree, at, bytes);
}

static int put_tree(struct json_writer *w, const struct report *report,
                    struct site_names *sites, const struct calltree_head *head,
                    size_t offset)
{
    struct calltree tree;
    calltree_init(&tree);
    for (size_t i = 0; i < report->allocations.site_count; i++) {
        const struct alloc_site *s = &report->allocations.sites[i];
        double bytes;
        memcpy(&bytes, (const char *)s + offset, sizeof(bytes));
        add_site(&tree, sites, s, bytes);
    }
    calltree_put(w, &tree, head);
    const int rc = tree.error;
    calltree_release(&tree);
    return rc;
}

int flame_allocations(struct json_writer *w, const struct report *report,
                      struct site_names *sites)
{
    static const struct {
        struct calltree_head head;
        size_t offset;
    } trees[] = {
        { { "alloc", "Allocations, bytes", "bytes",
            "Bytes allocated by call path, estimated from samples.", 0 },
          offsetof(struct alloc_site, bytes) },
        { { "alloc-peak", "Allocations, at the peak", "bytes",
            "Bytes live when the process held most, estimated from samples.", 0 },
          offsetof(struct alloc_site, peak_bytes) },
        { { "alloc-live", "Allocations, kept", "bytes",
            "Bytes never freed by the end, estimated from samples.", 0 },
          offsetof(struct alloc_site, live_bytes) },
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(trees) / sizeof(trees[0]); i++)
        rc = put_tree(w, report, sites, &trees[i].head, trees[i].offset);
    return rc;
}
