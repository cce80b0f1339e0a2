/* collect.h: a sink that keeps what a monitor said in one round, for tests. */
#ifndef TESTS_UNIT_CAPTURE_COLLECT_H
#define TESTS_UNIT_CAPTURE_COLLECT_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "capture/monitor/monitor.h"

enum { COLLECT_MAX = 256 };
struct collect {
    struct monitor_sink sink;
    struct {
        char name[64], unit[16]; /* "metric/subject" */
        double value;
    } values[COLLECT_MAX];
    size_t count;
    char unavailable[32][256]; /* "metric: why" */
    size_t unavailable_count;
};

static void collect_set(struct monitor_sink *sink, const char *metric,
                        const char *subject, const char *unit, double value)
{
    struct collect *c = (struct collect *)sink;
    if (c->count == COLLECT_MAX)
        return;
    (void)snprintf(c->values[c->count].name, 64, "%s%s%s", metric, *subject ? "/" : "",
                   subject);
    (void)snprintf(c->values[c->count].unit, 16, "%s", unit);
    c->values[c->count++].value = value;
}

static void collect_unavailable(struct monitor_sink *sink, const char *metric,
                                const char *why)
{
    struct collect *c = (struct collect *)sink;
    if (c->unavailable_count < 32)
        (void)snprintf(c->unavailable[c->unavailable_count++], 256, "%s: %s", metric,
                       why);
}

static inline void collect_init(struct collect *c)
{
    *c = (struct collect){ .sink = { .set = collect_set,
                                     .unavailable = collect_unavailable } };
}

/* NaN: not set in this round. */
static inline double collected(const struct collect *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->values[i].name, name) == 0)
            return c->values[i].value;
    return NAN;
}

static inline int said_unavailable(const struct collect *c, const char *part)
{
    int times = 0;
    for (size_t i = 0; i < c->unavailable_count; i++)
        times += strstr(c->unavailable[i], part) != NULL;
    return times;
}

#endif
