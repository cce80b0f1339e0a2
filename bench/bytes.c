// link: all
/* bytes.c: disk space per zone, live and compacted.
 *
 *     bytes pattern=tight|nested|training|values zones=N output=DIR
 *
 * `event_bytes` are the words of the events alone; `live_bytes` and `compacted_bytes`
 * are what the file system gives to the whole file, names and statistics included.
 */
#include <sys/stat.h>

#include "rawfile.h"
#include "trace/reader.h"
#include "trace/recover.h"

struct content {
    double zones, event_bytes;
};

static struct content content_of(const char *path)
{
    struct trace *trace;
    if (trace_open(path, NULL, &trace) < 0)
        die(path, "cannot read it");
    struct content c = { .event_bytes = 8.0 * (double)trace_info(trace)->events };
    for (unsigned i = 0; i < trace_node_count(trace); i++) {
        const struct trace_node *node = trace_node(trace, i);
        if (node && node->parent != TRACE_NO_NODE)
            c.zones += (double)node->count;
    }
    trace_free(trace);
    return c;
}

static double allocated(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        die(path, strerror(errno));
    return (double)st.st_blocks * 512;
}

int main(int argc, char **argv)
{
    (void)argc;
    char path[4096];
    rawfile_make(argument(argv, "output", "bytes.run"),
                 pattern_named(argument(argv, "pattern", "tight")),
                 argument_number(argv, "zones", 1000000), path, sizeof path);
    const struct content before = content_of(path);
    put_number("zones", before.zones);
    put_number("event_bytes", before.event_bytes);
    put_number("live_bytes", allocated(path));
    uint64_t was, is;
    if (compact_file(path, &was, &is) < 0)
        die(path, "cannot compact it");
    put_number("compacted_bytes", allocated(path));
    const struct content after = content_of(path);
    put_number("lost", before.zones - after.zones);
    put_end();
    return 0;
}
