/* alert_api.c: sonde_alert_add(): expressions of the program itself.
 *
 * They may be added before monitors start, while they run, from any thread; the sampling
 * thread takes over what is new at its next round. No lock: a child of fork() must not
 * find one that somebody else's thread holds. A slot is claimed by the counter and
 * published by its flag; slots are never given back.
 */
#include "capture/monitor/alert_api.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "record/copies.h"

enum { ADDED_MAX = 64 };

static struct added {
    char expression[ALERT_TEXT_LEN];
    alert_fn *fn;
    void *arg;
    uint32_t ready; /* atomic */
    bool taken;     /* by `taker`; the sampling thread's */
} added[ADDED_MAX];
static uint32_t claimed; /* atomic */
static struct alerts *taker;
static char last_error[200]; /* of the process: threads that fail at once share it */

static int publish(const char *expression, alert_fn *fn, void *arg)
{
    const uint32_t slot = __atomic_fetch_add(&claimed, 1, __ATOMIC_RELAXED);
    if (slot >= ADDED_MAX) {
        __atomic_store_n(&claimed, ADDED_MAX, __ATOMIC_RELAXED); /* never round */
        return -ENOSPC;
    }
    struct added *entry = &added[slot];
    (void)snprintf(entry->expression, sizeof entry->expression, "%s", expression);
    entry->fn = fn;
    entry->arg = arg;
    __atomic_store_n(&entry->ready, 1, __ATOMIC_RELEASE);
    return 0;
}

int watch_alert_add(const char *expression, alert_fn *fn, void *arg)
{
    struct alert_rule rule;
    struct alert_error error = { 0 };
    last_error[0] = '\0';
    if (!expression || !fn) {
        (void)snprintf(last_error, sizeof last_error, "no expression or no function");
        return -EINVAL;
    }
    if (strcmp(expression, "reference") != 0 &&
        alert_parse(expression, &rule, &error) < 0) {
        (void)snprintf(last_error, sizeof last_error, "character %zu: %s",
                       error.position, error.message);
        return -EINVAL;
    }
    const int rc = publish(expression, fn, arg);
    if (rc < 0)
        (void)snprintf(last_error, sizeof last_error, "more than %d alerts", ADDED_MAX);
    return rc;
}

const char *watch_alert_error(void)
{
    return last_error;
}

/* Also when there are too many: it was tried. */
static bool take(struct added *entry, struct alerts *alerts)
{
    struct alert_error error = { 0 };
    if (entry->taken || !__atomic_load_n(&entry->ready, __ATOMIC_ACQUIRE))
        return false;
    entry->taken = true;
    return alerts_add(alerts, entry->expression, entry->fn, entry->arg, &error) == 0;
}

size_t alert_api_attach(struct alerts *alerts)
{
    size_t added_now = 0;
    if (taker != alerts)
        for (size_t i = 0; i < ADDED_MAX; i++)
            added[i].taken = false;
    taker = alerts;
    const uint32_t count = __atomic_load_n(&claimed, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count && i < ADDED_MAX; i++)
        added_now += take(&added[i], alerts);
    return added_now;
}

void alert_api_detach(struct alerts *alerts)
{
    if (taker == alerts)
        taker = NULL;
}
