/* flame_zones.c: time by call path of zones, thread by thread.
 *
 * From the statistics, so every call counts however long ago its events were recycled.
 */
#include <errno.h>
#include <stdlib.h>

#include "analyse/tree.h"
#include "present/html/flame.h"
#include "store/run.h"

struct zones {
    struct calltree tree;
    struct site_names *sites;
    const struct report *report;
};

static uint32_t thread_of(struct zones *z, const struct trace *trace, unsigned root)
{
    const struct trace_info *info = trace_info(trace);
    struct flame_thread t = { .pid = info->pid, .name = "" };
    t.process = info->role[0] ? info->role : flame_role(z->report, info->pid);
    if (root + 1 == ROOT_NODES)
        t.name = "(beyond 31)";
    for (unsigned i = 0; root + 1 < ROOT_NODES && i < trace_lane_count(trace); i++) {
        const struct trace_lane *lane = trace_lane(trace, i);
        if (!lane || tree_lane_root(lane->number) != root)
            continue;
        t.tid = lane->is_main ? info->pid : lane->tid;
        t.name = lane->is_main ? "" : lane->name;
    }
    return flame_thread_node(&z->tree, z->sites, &t);
}

static void add_nodes(struct zones *z, const struct trace *trace,
                      const struct tree *tree, uint32_t *node_of)
{
    for (size_t i = 0; i < tree->order_count; i++) {
        const unsigned n = tree->order[i];
        const unsigned root = tree->root[n];
        const struct trace_node *node = trace_node(trace, n);
        if (root >= ROOT_NODES || !node)
            continue;
        const struct trace_site *s = trace_site(trace, node->site);
        const struct site_name site = { s->name, s->file,
                                        s->line > 0 ? (uint32_t)s->line : 0,
                                        tree->phase[n] };
        if (!node_of[root])
            node_of[root] = thread_of(z, trace, root);
        const uint32_t parent = node_of[node->parent];
        if (parent)
            node_of[n] = calltree_child(&z->tree, parent, site_number(z->sites, &site));
        calltree_add(&z->tree, node_of[n], tree->self_ns[n]);
    }
}

static int add_trace(struct zones *z, const struct trace *trace)
{
    struct tree tree;
    int rc = tree_build(trace, &tree);
    if (rc < 0)
        return rc;
    uint32_t *node_of = calloc(tree.node_count + ROOT_NODES, sizeof(*node_of));
    if (node_of)
        add_nodes(z, trace, &tree, node_of);
    else
        rc = -ENOMEM;
    free(node_of);
    tree_release(&tree);
    return rc;
}

int flame_zones(struct json_writer *w, const struct report *report,
                struct site_names *sites)
{
    static const struct calltree_head head = {
        "zones", "Zones, time", "s",
        "Every call of every thread; measured. Width is time inside zones.", 2
    };
    struct zones z = { .sites = sites, .report = report };
    calltree_init(&z.tree);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < report->run->file_count; i++) {
        struct trace *trace;
        if (run_trace_open(report->run, i, &trace) < 0)
            continue; /* the report's notes name it */
        rc = add_trace(&z, trace);
        trace_free(trace);
    }
    calltree_put(w, &z.tree, &head);
    if (rc == 0)
        rc = z.tree.error;
    calltree_release(&z.tree);
    return rc;
}
