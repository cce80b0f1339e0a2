/* launches.h: how much of a foreign trace the host spent launching work on cards. */
#ifndef SONDE_IMPORT_LAUNCHES_H
#define SONDE_IMPORT_LAUNCHES_H

#include <stddef.h>

#include "import/events.h"

/* The share of a process's steps (of all its time where it has none) that its threads
 * were in operators that launch, less what they waited for a card in there. NaN: no
 * operator is known to have launched anything. After events_sort(). */
int launch_share_read(const struct events *e, size_t process, double *ret_share);

#endif
