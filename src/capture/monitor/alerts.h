/* alerts.h: watches what monitors say and tells when it is too much.
 *
 * Stands between the monitors and their sink:
 *
 *     alerts_new(&options, &alerts);
 *     alerts_add(alerts, "cpu>80%:10s", NULL, NULL, &error);
 *     struct monitor_sink *sink = alerts_sink(alerts, next);   monitors get this one
 *     alerts_round(alerts, &round);                            before each round
 *     …
 *     alerts_free(alerts);
 *
 * A rule fires when its condition has held for its duration, as far as anybody looked:
 * a pause in which nothing was sampled (a suspended machine, a stopped supervisor) counts
 * for nothing. It clears when the value has been on the good side by 5 % of the threshold
 * for half the duration and at least two samples, so that a value that sways around the
 * threshold is one alert. Each subject (card, process) has a state of its own.
 *
 * One thread at a time. Nothing is allocated after alerts_new().
 */
#ifndef SONDE_CAPTURE_MONITOR_ALERTS_H
#define SONDE_CAPTURE_MONITOR_ALERTS_H

#include <sonde/sonde.h>

#include "capture/monitor/alert.h"
#include "capture/monitor/monitor.h"
#include "trace/control.h"

typedef void alert_fn(const struct sonde_alert *alert, void *arg);

struct alerts_options {
    const char *dir;         /* of the run: kept there; NULL: callbacks only */
    struct control *control; /* its budget; may be NULL */
    uint64_t interval_ns;    /* between rounds, as planned */
    unsigned cores;          /* of the machine; 0: ask the system */
};

struct alerts;

/* −errno of the file when there is a directory; nothing is left behind then. */
int alerts_new(const struct alerts_options *options, struct alerts **ret_alerts);
/* Takes NULL. Open alerts stay open in the file: the run ended with them. */
void alerts_free(struct alerts *alerts);

/* An expression, or "reference" for all of alert_reference. −EINVAL with the error set;
 * SONDE_E_LIMIT when there are too many. `fn` may be NULL; it is called by
 * alerts_deliver(), once when the rule has fired and once when it has cleared. */
int alerts_add(struct alerts *alerts, const char *expression, alert_fn *fn, void *arg,
               struct alert_error *ret_error);
size_t alerts_count(const struct alerts *alerts);

/* A sink that looks and forwards to `next` (NULL: nowhere). Belongs to `alerts`. */
struct monitor_sink *alerts_sink(struct alerts *alerts, struct monitor_sink *next);
/* A round begins; it is borrowed until the next. */
void alerts_round(struct alerts *alerts, const struct monitor_round *round);
/* Calls whom there is something to tell since the last time; after a round, without
 * locks. What does not fit until then (256) is in the file only. */
void alerts_deliver(struct alerts *alerts);

#endif
