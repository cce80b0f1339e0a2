/* capture_machine.h: machines we do not have, laid out below a temporary folder, and a
 * sink that remembers what monitors say of them. */
#ifndef SONDE_TESTS_UNIT_CAPTURE_MACHINE_H
#define SONDE_TESTS_UNIT_CAPTURE_MACHINE_H

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "capture/monitor/list.h"
#include "capture/monitor/monitor.h"

struct fake_machine {
    char root[64], proc[96], sys[96];
    struct monitor_roots roots;
};

static inline void machine_make(struct fake_machine *m)
{
    snprintf(m->root, sizeof m->root, "/tmp/sonde-machine-XXXXXX");
    assert_non_null(mkdtemp(m->root));
    snprintf(m->proc, sizeof m->proc, "%s/proc", m->root);
    snprintf(m->sys, sizeof m->sys, "%s/sys", m->root);
    assert_int_equal(mkdir(m->proc, 0700), 0);
    assert_int_equal(mkdir(m->sys, 0700), 0);
    m->roots = (struct monitor_roots){ .proc = m->proc, .sys = m->sys };
}

static inline void machine_remove(struct fake_machine *m)
{
    assert_int_equal(file_remove_tree(m->root), 0);
}

/* Writes in place: kept descriptors must see it. */
static inline void put_file(const char *root, const char *path, const char *text)
{
    struct buf full = BUF_INIT, parent = BUF_INIT;
    path_join(&full, root, path);
    path_parent(&parent, full.data);
    assert_true(dir_make(parent.data, 0700) >= 0);
    int fd = open(full.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    buf_release(&full);
    buf_release(&parent);
}

/* ---- A sink ---- */

enum { REMEMBERED = 512 };
struct remembered {
    struct monitor_sink sink;
    size_t count, gap_count;
    struct {
        char metric[40], subject[64], unit[16];
        double value;
    } value[REMEMBERED];
    char gap[16][160];
    double total[8][MONITOR_TOTALS];
};

static inline void on_set_(struct monitor_sink *sink, const char *metric,
                           const char *subject, const char *unit, double value)
{
    struct remembered *r = (struct remembered *)sink;
    assert_true(r->count < REMEMBERED);
    snprintf(r->value[r->count].metric, 40, "%s", metric);
    snprintf(r->value[r->count].subject, 64, "%s", subject);
    snprintf(r->value[r->count].unit, 16, "%s", unit);
    r->value[r->count++].value = value;
}

static inline void on_gap_(struct monitor_sink *sink, const char *metric,
                           const char *why)
{
    struct remembered *r = (struct remembered *)sink;
    if (r->gap_count < 16)
        snprintf(r->gap[r->gap_count++], 160, "%s: %s", metric, why);
}

static inline void on_set_process_(struct monitor_sink *sink, size_t process,
                                   const char *metric, const char *unit, double value)
{
    char subject[16];
    snprintf(subject, sizeof subject, "%zu", process + 100);
    on_set_(sink, metric, subject, unit, value);
}

static inline void on_total_(struct monitor_sink *sink, size_t process,
                             enum monitor_total what, double value)
{
    struct remembered *r = (struct remembered *)sink;
    if (process < 8)
        r->total[process][what] = value;
}

static inline void forget(struct remembered *r)
{
    memset(r, 0, sizeof *r);
    r->sink = (struct monitor_sink){ on_set_, on_gap_, on_set_process_, on_total_ };
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < MONITOR_TOTALS; k++)
            r->total[i][k] = NAN;
}

/* NaN: not set in this round. */
static inline double value_of(const struct remembered *r, const char *metric,
                              const char *subject)
{
    for (size_t i = r->count; i-- > 0;)
        if (strcmp(r->value[i].metric, metric) == 0 &&
            strcmp(r->value[i].subject, subject) == 0)
            return r->value[i].value;
    return NAN;
}

static inline void assert_value(const struct remembered *r, const char *metric,
                                const char *subject, double expected)
{
    const double got = value_of(r, metric, subject);
    if (!(fabs(got - expected) <= 1e-6 * (1 + fabs(expected))))
        fail_msg("%s of '%s' is %.9g, not %.9g", metric, subject, got, expected);
}

static inline void assert_unset(const struct remembered *r, const char *metric,
                                const char *subject)
{
    const double got = value_of(r, metric, subject);
    if (!isnan(got))
        fail_msg("%s of '%s' is %.9g: it should have no value", metric, subject, got);
}

#endif
