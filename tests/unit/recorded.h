/* recorded.h: a session in a scratch directory, and what it left there.
 *
 *     struct recorded r;
 *     recorded_start(&r, NULL);
 *     SONDE_ZONE("work", SONDE_FORWARD) { … }
 *     recorded_stop(&r);
 *     assert_int_equal(recorded_count(&r, "work", NULL), 1);
 *     recorded_release(&r);
 */
#ifndef SONDE_TESTS_RECORDED_H
#define SONDE_TESTS_RECORDED_H

#include <dirent.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/files.h"
#include "trace/control.h"
#include "trace/reader.h"
#include "unit.h"

struct recorded {
    char dir[64];    /* scratch */
    char output[80]; /* the run directory in it */
    struct clock_table clock;
    struct trace *trace; /* the only process file, after recorded_stop() */
};

static inline void recorded_start(struct recorded *r,
                                  const struct sonde_options *options)
{
    struct sonde_options o;
    *r = (struct recorded){ 0 };
    assert_non_null(unit_temp_dir(r->dir));
    (void)snprintf(r->output, sizeof r->output, "%s/run", r->dir);
    sonde_options_standard(&o);
    if (options)
        o = *options;
    o.output = r->output;
    o.quiet = 1;
    const int rc = sonde_session_start(&o);
    if (rc < 0)
        fail_msg("no session: %s", sonde_session_error());
}

/* The path of the nth process file; false when there are fewer. */
static inline bool recorded_file(const struct recorded *r, unsigned n, char path[512])
{
    struct dirent **entries;
    const int count = scandir(r->output, &entries, NULL, alphasort);
    bool found = false;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (name[0] >= '0' && name[0] <= '9' && !found && n-- == 0) {
            (void)snprintf(path, 512, "%s/%s", r->output, name);
            found = true;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return found;
}

/* Reads what there is, also of a session that goes on. */
static inline void recorded_read(struct recorded *r)
{
    char path[512];
    trace_free(r->trace);
    clock_table_release(&r->clock);
    r->trace = NULL;
    assert_int_equal(control_read_clock(r->output, &r->clock), 0);
    assert_true(recorded_file(r, 0, path));
    assert_int_equal(trace_open(path, &r->clock, &r->trace), 0);
    assert_string_equal(trace_damage(r->trace), "");
}

static inline void recorded_stop(struct recorded *r)
{
    assert_int_equal(sonde_session_stop(), 0);
    recorded_read(r);
}

static inline void recorded_release(struct recorded *r)
{
    trace_free(r->trace);
    clock_table_release(&r->clock);
    assert_int_equal(file_remove_tree(r->dir), 0);
}

static inline const char *recorded_name(const struct recorded *r, unsigned node)
{
    return trace_site(r->trace, trace_node(r->trace, node)->site)->name;
}

/* Zones of this name on all paths and threads. */
static inline uint64_t recorded_zones(const struct recorded *r, const char *name)
{
    uint64_t count = 0;
    for (unsigned i = FIRST_NODE; i < trace_node_count(r->trace); i++) {
        const struct trace_node *n = trace_node(r->trace, i);
        if (n && n->parent != NODE_SPANS && strcmp(recorded_name(r, i), name) == 0)
            count += n->count;
    }
    return count;
}

/* The node of a path of names, outermost first, NULL ends it; on any thread. */
static inline const struct trace_node *recorded_node(const struct recorded *r, ...)
{
    const char *names[16];
    unsigned depth = 0;
    va_list args;
    va_start(args, r);
    while (depth < 16 && (names[depth] = va_arg(args, const char *)))
        depth++;
    va_end(args);
    for (unsigned i = FIRST_NODE; i < trace_node_count(r->trace); i++) {
        const struct trace_node *n = trace_node(r->trace, i);
        unsigned at = i, left = depth;
        if (!n || n->depth != depth)
            continue;
        while (left > 0 && strcmp(recorded_name(r, at), names[left - 1]) == 0) {
            at = trace_node(r->trace, at)->parent;
            left--;
        }
        if (left == 0)
            return n;
    }
    return NULL;
}

static inline unsigned recorded_number(const struct recorded *r,
                                       const struct trace_node *node)
{
    for (unsigned i = 0; i < trace_node_count(r->trace); i++)
        if (trace_node(r->trace, i) == node)
            return i;
    return TRACE_NO_NODE;
}

static inline const struct trace_value *recorded_value(const struct recorded *r,
                                                       const char *name)
{
    for (unsigned i = 0; i < trace_value_count(r->trace); i++)
        if (strcmp(trace_value(r->trace, i)->name, name) == 0)
            return trace_value(r->trace, i);
    return NULL;
}

static inline void spin_ns(uint64_t ns)
{
    struct timespec a, b;
    (void)clock_gettime(CLOCK_MONOTONIC, &a);
    do {
        (void)clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((uint64_t)(b.tv_sec - a.tv_sec) * 1000000000u + (uint64_t)b.tv_nsec -
                 (uint64_t)a.tv_nsec <
             ns);
}

static inline void nap_ns(uint64_t ns)
{
    const struct timespec ts = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
    (void)nanosleep(&ts, NULL);
}

/* Runs fn in a child of its own, where it may do what cannot be undone; it ends with
 * _exit(). True when it returned true. */
static inline bool in_child(bool (*fn)(void))
{
    int status;
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(fn() ? 0 : 1);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#endif
