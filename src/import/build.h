/* build.h: events become the traces of a run. */
#ifndef SONDE_IMPORT_BUILD_H
#define SONDE_IMPORT_BUILD_H

#include "import/events.h"

struct built {
    int64_t start_ns, end_ns; /* of all events, since the epoch */
    uint32_t main_pid;
    uint64_t steps, processes;
};

/* One trace per process of the events, in dir. Sorts the events. */
int build_traces(struct events *e, const char *dir, struct built *ret_built);

#endif
