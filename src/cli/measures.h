/* measures.h: what a gate can compare, by name, and what a profile says of it. */
#ifndef SONDE_CLI_MEASURES_H
#define SONDE_CLI_MEASURES_H

#include <stdbool.h>

#include "analyse/report.h"

/* Which kind of run tells it. */
enum measure_source {
    MEASURE_PLAIN,    /* any: time and memory of the process */
    MEASURE_PROFILED, /* one under `sonde run` */
    MEASURE_COUNTED,  /* one whose system calls are counted */
};

struct measure {
    const char
        *name; /* as it is kept: aliases are resolved; borrowed or the caller's */
    enum measure_source source;
    bool more_is_better;
};

/* All names there are, for messages. */
extern const char measure_names[];

/* False: there is none of that name. */
bool measure_find(const char *name, struct measure *ret_measure);

/* NaN when the run did not record it, which is never zero. */
double measure_of_report(const struct report *report, const char *name);

/* What to do so that it is recorded; never NULL, "" when nobody knows. */
const char *measure_hint(const char *name);

#endif
