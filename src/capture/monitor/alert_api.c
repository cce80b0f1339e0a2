/* alert_api.c: sonde_alert_add(): expressions of the program itself.
 *
 * They may be added before monitors start, while they run, from any thread; the sampling
 * thread takes over what is new at its next round. Entries are never removed and a new
 * one is published by the counter, so reading takes no lock.
 */
#include "capture/monitor/alert_api.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ADDED_MAX = 64 };

struct added {
    char expression[ALERT_TEXT_LEN];
    alert_fn *fn;
    void *arg;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct added added[ADDED_MAX];
static size_t added_count; /* atomic */
static size_t taken;       /* by the sampling thread */
static struct alerts *taker;
static __thread char error_text_[200];

static int publish(const char *expression, alert_fn *fn, void *arg)
{
    int rc = -ENOSPC;
    (void)pthread_mutex_lock(&lock);
    if (added_count < ADDED_MAX) {
        struct added *entry = &added[added_count];
        (void)snprintf(entry->expression, sizeof entry->expression, "%s", expression);
        entry->fn = fn;
        entry->arg = arg;
        __atomic_store_n(&added_count, added_count + 1, __ATOMIC_RELEASE);
        rc = 0;
    }
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

int sonde_alert_add(const char *expression, alert_fn *fn, void *arg)
{
    struct alert_rule rule;
    struct alert_error error = { 0 };
    error_text_[0] = '\0';
    if (!expression || !fn) {
        (void)snprintf(error_text_, sizeof error_text_, "no expression or no function");
        return -EINVAL;
    }
    if (strcmp(expression, "reference") != 0 &&
        alert_parse(expression, &rule, &error) < 0) {
        (void)snprintf(error_text_, sizeof error_text_, "character %zu: %s",
                       error.position, error.message);
        return -EINVAL;
    }
    const int rc = publish(expression, fn, arg);
    if (rc < 0)
        (void)snprintf(error_text_, sizeof error_text_, "more than %d alerts",
                       ADDED_MAX);
    return rc;
}

const char *sonde_alert_error(void)
{
    return error_text_;
}

size_t alert_api_attach(struct alerts *alerts)
{
    struct alert_error error;
    size_t added_now = 0;
    if (taker != alerts) {
        taker = alerts;
        taken = 0;
    }
    const size_t count = __atomic_load_n(&added_count, __ATOMIC_ACQUIRE);
    for (; taken < count; taken++)
        added_now += alerts_add(alerts, added[taken].expression, added[taken].fn,
                                added[taken].arg, &error) == 0;
    return added_now;
}

void alert_api_detach(struct alerts *alerts)
{
    if (taker == alerts)
        taker = NULL;
}
