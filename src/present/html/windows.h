/* windows.h: stretches of the run with their zones in full. Private to present/html.
 *
 * A window keeps the longest of its zones when there are too many; how many it left
 * out is counted. */
#ifndef SONDE_PRESENT_HTML_WINDOWS_H
#define SONDE_PRESENT_HTML_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

struct window_zone {
    int64_t begin_ns, end_ns;
    uint32_t site;
    uint16_t lane;
    uint8_t depth;
};

struct window {
    const char *kind; /* "whole", "longest", "slowest", "typical" */
    uint64_t step;    /* 0 none */
    int64_t start_ns, end_ns;
    size_t most; /* zones to show */
    struct window_zone *zones;
    size_t count;
    uint64_t left_out;
};

/* Room for twice `most`, given back with window_release(). */
int window_init(struct window *window, const char *kind, int64_t start_ns,
                int64_t end_ns, size_t most);
void window_release(struct window *window);

/* Takes the zone when it reaches into the window. */
void window_add(struct window *window, const struct window_zone *zone);
void window_put(struct json_writer *w, struct window *window, int64_t origin_ns);

#endif
