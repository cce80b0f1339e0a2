/* lanes.h: the threads of a run as rows of the timeline. Private to present/html. */
#ifndef SONDE_PRESENT_HTML_LANES_H
#define SONDE_PRESENT_HTML_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "analyse/report.h"
#include "base/json.h"

enum {
    LANES_MOST = 96,
    BUCKETS_MAIN = 2048, /* of the training thread */
    BUCKETS = 512,       /* of the others */
    LANE_DEPTHS = 240,   /* MAX_DEPTH of trace/format.h */
};

struct lane {
    uint32_t pid, tid;
    size_t file; /* of the run */
    unsigned number;
    char name[16], role[32];
    bool is_main;     /* the main thread of its process */
    bool trains;      /* … of the main process: where steps are */
    bool partial;     /* older events were recycled */
    unsigned buckets; /* of time */
    unsigned depth;   /* deepest zone + 1 */
    uint64_t zones;
    float *busy[SONDE_PHASE_COUNT]; /* ns in a phase, by bucket; NULL: never */
};

struct lanes {
    struct lane *lanes;
    size_t count, left_out;
    int64_t start_ns, end_ns; /* of the run */
    uint64_t zones;
    /* Of the lane that is being read: by depth, ns of a bucket that inner zones have
     * claimed for their phase. */
    float *claimed[LANE_DEPTHS];
};

/* Lists the lanes of all traces; those of the main process first. */
int lanes_init(struct lanes *ret_lanes, const struct report *report);
void lanes_release(struct lanes *lanes);

/* NULL: left out. */
struct lane *lanes_find(struct lanes *lanes, size_t file, unsigned number);
void lanes_begin(struct lanes *lanes); /* before the zones of each trace */
/* A zone that ended: inner ones before outer ones, lane by lane. 0 or −ENOMEM. */
int lanes_add_zone(struct lanes *lanes, struct lane *lane, unsigned depth, int phase,
                   int64_t begin_ns, int64_t end_ns);

void lanes_put(struct json_writer *w, const struct lanes *lanes);

#endif
