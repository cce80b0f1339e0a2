/* flame_python.c: sampled Python call paths: CPU time of all threads, wall time of all.
 *
 * Reads the tables of trace/pystack_rows.h, hostile like all of a run directory: chains
 * of parents go down in number, or they are damage and end.
 */
#include <dirent.h>
#include <errno.h>

#include "base/files.h"
#include "present/html/flame.h"
#include "trace/pystack_counts.h"

enum { DEPTH_MOST = 512 };

struct python {
    const struct report *report;
    struct site_names *sites;
    struct tablefile *file;
    struct calltree cpu, wall;
};

static int open_file(const char *dir, struct tablefile **ret_file)
{
    DIR *d = opendir(dir);
    int rc = -ENOENT;
    for (const struct dirent *e; d && rc != 0 && (e = readdir(d));) {
        if (!tablefile_is_name(e->d_name, PYSTACKS_KIND))
            continue;
        struct buf path = BUF_INIT;
        path_join(&path, dir, e->d_name);
        rc = path.error ? path.error : tablefile_open(path.data, ret_file);
        buf_release(&path);
    }
    if (d)
        (void)closedir(d);
    return rc;
}

/* The sites of a path, innermost first. */
static unsigned chain_of(struct python *p, uint32_t node, uint32_t sites[DEPTH_MOST])
{
    struct pystack_node_row n;
    struct pystack_frame_row f;
    struct pystack_code_row c;
    unsigned depth = 0;
    while (node && depth < DEPTH_MOST &&
           tablefile_get(p->file, PYSTACKS_NODES, node, &n, sizeof(n)) &&
           tablefile_get(p->file, PYSTACKS_FRAMES, n.frame, &f, sizeof(f)) &&
           tablefile_get(p->file, PYSTACKS_CODES, f.code, &c, sizeof(c))) {
        const struct site_name site = { tablefile_text(p->file, c.name),
                                        tablefile_text(p->file, c.file), c.first_line,
                                        0 };
        sites[depth++] = site_number(p->sites, &site);
        if (n.parent >= node)
            break;
        node = n.parent;
    }
    return depth;
}

static uint32_t thread_node(struct python *p, struct calltree *tree, uint32_t task)
{
    struct pystack_task_row row;
    if (!tablefile_get(p->file, PYSTACKS_TASKS, task, &row, sizeof(row)))
        return 0;
    const struct flame_thread t = { .pid = row.pid,
                                    .tid = row.tid,
                                    .process = flame_role(p->report, row.pid),
                                    .name = row.pid == row.tid
                                                ? ""
                                                : tablefile_text(p->file, row.thread) };
    return flame_thread_node(tree, p->sites, &t);
}

static void add_path(struct python *p, struct calltree *tree,
                     const struct pystack_count_row *row, const uint32_t *sites,
                     unsigned depth, uint64_t ns)
{
    if (ns == 0 || depth == 0)
        return;
    uint32_t at = thread_node(p, tree, row->task);
    while (at && depth > 0)
        at = calltree_child(tree, at, sites[--depth]);
    calltree_add(tree, at, (double)ns);
}

static void add_counts(struct python *p)
{
    struct pystack_counts counts;
    if (pystack_counts_init(&counts, p->file) < 0) {
        p->cpu.error = -ENOMEM;
        return;
    }
    for (uint32_t i = 0; i < counts.count; i++) {
        struct pystack_count_row row;
        uint32_t sites[DEPTH_MOST];
        if (!pystack_counts_get(&counts, i, &row))
            continue;
        const unsigned depth = chain_of(p, row.node, sites);
        add_path(p, &p->cpu, &row, sites, depth, row.cpu_ns);
        add_path(p, &p->wall, &row, sites, depth, row.wall_ns);
    }
    pystack_counts_release(&counts);
}

int flame_python(struct json_writer *w, const struct report *report,
                 struct site_names *sites)
{
    static const struct calltree_head wall = {
        "python-wall", "Python, wall time", "s",
        "Sampled from outside: width is time a thread was there, waiting included.", 2
    };
    static const struct calltree_head cpu = {
        "python-cpu", "Python, CPU time", "s",
        "Sampled from outside: width is time a thread ran there.", 2
    };
    struct python p = { .report = report, .sites = sites };
    if (open_file(report->run->dir, &p.file) < 0)
        return 0;
    calltree_init(&p.cpu);
    calltree_init(&p.wall);
    add_counts(&p);
    calltree_put(w, &p.wall, &wall);
    calltree_put(w, &p.cpu, &cpu);
    const int rc = p.cpu.error < 0 ? p.cpu.error : p.wall.error;
    calltree_release(&p.cpu);
    calltree_release(&p.wall);
    tablefile_free(p.file);
    return rc;
}
