/* capture_alerts.c: the supervisor's alerts. One supervisor has one run, so the engine is
 * its only one. */
#include "launch/capture_alerts.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "capture/monitor/alerts.h"

static struct alerts *engine; /* NULL: nobody asked for any */

bool alert_expression_check(const char *expression, char *ret_message, size_t len)
{
    struct alert_rule rule;
    struct alert_error error = { 0 };
    if (strcmp(expression, "reference") == 0 ||
        alert_parse(expression, &rule, &error) == 0)
        return true;
    (void)snprintf(ret_message, len, "'%s': character %zu: %s", expression,
                   error.position, error.message);
    return false;
}

static void add(const struct capture_context *context, const char *expression)
{
    struct alert_error error = { 0 };
    if (alerts_add(engine, expression, NULL, NULL, &error) < 0)
        runfile_note(context->file, "alert '%s' is not watched: %s", expression,
                     error.message);
}

static int prepare(const struct capture_context *context, void **ret_state)
{
    const struct capture_options *o = context->options;
    const struct alerts_options options = {
        .dir = context->dir,
        .control = context->control,
        .interval_ns = o->interval_ns,
    };
    *ret_state = NULL;
    if (o->alert_count == 0)
        return 0;
    const int rc = alerts_new(&options, &engine);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < o->alert_count; i++)
        add(context, o->alerts[i]);
    return 0;
}

static void release(void *state)
{
    (void)state;
    alerts_free(engine);
    engine = NULL;
}

struct monitor_sink *alerts_attach(struct monitor_sink *next)
{
    return engine ? alerts_sink(engine, next) : next;
}

void alerts_round_begins(const struct monitor_round *round)
{
    if (engine)
        alerts_round(engine, round);
}

const struct capture_ops capture_alerts = {
    .name = "alerts",
    .prepare = prepare,
    .release = release,
};
