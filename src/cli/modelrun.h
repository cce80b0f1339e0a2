/* modelrun.h: what `model` and `scale` share while they measure: a progress line. */
#ifndef SONDE_CLI_MODELRUN_H
#define SONDE_CLI_MODELRUN_H

#include <stdbool.h>
#include <stddef.h>

/* On stderr, when that is a terminal and nobody asked for quiet. */
struct progress {
    bool quiet;
    const char *what; /* in front: "nodes"; may be NULL */
};

/* As struct scale_options wants it; `arg` is a struct progress. */
void progress_point(void *arg, size_t done, size_t count, const char *label);
void progress_clear(const struct progress *progress);

#endif
