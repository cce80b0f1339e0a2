// link: all
/* check.c: what a run directory really holds, after a benchmark.
 *
 *     check DIR
 *
 * Reads the files as `sonde report` does and prints one JSON object: zones counted,
 * events lost and why, how often the program waited for the folder, bytes on disk.
 */
#include <dirent.h>

#include "measure.h"
#include "trace/reader.h"

struct totals {
    double files, zones, events, lost, holes, broken;
    unsigned lost_reason; /* bits of enum lost_reason */
    double waits, wait_ns, self_folds, file_bytes, disk_bytes, timeline_words;
};

static void add_nodes(struct totals *t, const struct trace *trace)
{
    for (unsigned i = 0; i < trace_node_count(trace); i++) {
        const struct trace_node *node = trace_node(trace, i);
        if (!node || node->parent == TRACE_NO_NODE)
            continue;
        t->zones += (double)node->count;
        t->broken += (double)(node->truncated + node->unbalanced + node->open);
    }
    for (unsigned i = 0; i < trace_lane_count(trace); i++)
        t->broken += (double)trace_lane(trace, i)->orphan_ends;
}

static void add_file(struct totals *t, const char *path)
{
    struct trace *trace;
    if (trace_open(path, NULL, &trace) < 0)
        die(path, "cannot read it");
    if (trace_damage(trace)[0])
        die(path, trace_damage(trace));
    const struct trace_info *info = trace_info(trace);
    t->files++;
    t->events += (double)info->events;
    t->lost += (double)info->lost;
    t->lost_reason |= info->lost_reason;
    t->holes += (double)info->holes;
    t->waits += (double)info->waits;
    t->wait_ns += info->wait_ns;
    t->self_folds += (double)info->self_folds;
    t->file_bytes += (double)info->file_bytes;
    t->disk_bytes += (double)info->disk_bytes;
    t->timeline_words += (double)info->timeline_words;
    add_nodes(t, trace);
    trace_free(trace);
}

static bool is_process_file(const char *name)
{
    const size_t len = strlen(name);
    return len > 6 && strcmp(name + len - 6, ".sonde") == 0 &&
           strcmp(name, "control.sonde") != 0;
}

static void print(const struct totals *t)
{
    put_number("files", t->files);
    put_number("zones", t->zones);
    put_number("events", t->events);
    put_number("lost", t->lost + t->holes);
    put_number("lost_reason", t->lost_reason);
    put_number("broken", t->broken);
    put_number("waits", t->waits);
    put_number("wait_ns", t->wait_ns);
    put_number("self_folds", t->self_folds);
    put_number("file_bytes", t->file_bytes);
    put_number("disk_bytes", t->disk_bytes);
    put_number("timeline_words", t->timeline_words);
    put_end();
}

int main(int argc, char **argv)
{
    if (argc != 2)
        die("usage", "check DIR");
    DIR *dir = opendir(argv[1]);
    if (!dir)
        die(argv[1], "cannot open it");
    struct totals totals = { 0 };
    for (struct dirent *e; (e = readdir(dir));) {
        char path[4096];
        if (!is_process_file(e->d_name))
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        add_file(&totals, path);
    }
    (void)closedir(dir);
    print(&totals);
    return 0;
}
