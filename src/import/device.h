/* device.h: what the cards of a foreign trace did, and for which phase. */
#ifndef SONDE_IMPORT_DEVICE_H
#define SONDE_IMPORT_DEVICE_H

#include <sonde/sonde.h>

#include "import/events.h"

struct device_time {
    bool known; /* there were kernels or copies at all */
    /* Kernels, copies and fills by the phase of the host that launched them; what nobody
     * is known to have launched is `other`. The sum is all of the cards' work. */
    double phase_s[SONDE_PHASE_COUNT];
    /* Time in which a card had work, side by side counted once; mean over the cards. */
    double busy_s;
};

/* After events_sort(). */
int device_time_read(const struct events *e, struct device_time *ret_time);

#endif
