/* capture_alerts.h: --alert: expressions are read before the program starts, watched
 * while monitors sample, and shown in the report at the end.
 *
 * How it is joined with whoever samples. The row `capture_alerts` stands before that of
 * the monitors in captures.c; the capture of the monitors puts
 *
 *     sink = alerts_attach(sink)         once, around the sink its monitors get
 *     alerts_round_begins(&round)        before every round
 *
 * and nothing else. Without --alert both do nothing. Without monitors (--no-monitors)
 * rules still stand in the run: those on the trace are judged when it is reported, of the
 * others the report says that they were not measured.
 */
#ifndef SONDE_LAUNCH_CAPTURE_ALERTS_H
#define SONDE_LAUNCH_CAPTURE_ALERTS_H

#include "capture/monitor/monitor.h"
#include "launch/captures.h"

extern const struct capture_ops capture_alerts;

/* A sink in front of `next` that watches; `next` itself when there are no alerts. */
struct monitor_sink *alerts_attach(struct monitor_sink *next);
void alerts_round_begins(const struct monitor_round *round);

/* Whether an expression (or "reference") is well formed; else what is wrong, where. */
bool alert_expression_check(const char *expression, char *ret_message, size_t len);

#endif
