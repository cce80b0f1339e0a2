/* alert_api.h: what sonde_alert_add() collected, for whoever samples inside a program. */
#ifndef SONDE_CAPTURE_MONITOR_ALERT_API_H
#define SONDE_CAPTURE_MONITOR_ALERT_API_H

#include "capture/monitor/alerts.h"

/* Adds those that are not in `alerts` yet; call it before each round, any thread. The
 * number added. Cheap when there is nothing new. */
size_t alert_api_attach(struct alerts *alerts);
/* `alerts` is about to be freed: all of them are new to the next. */
void alert_api_detach(struct alerts *alerts);

#endif
