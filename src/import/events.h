/* events.h: events of a foreign trace, kept until they can be put in order.
 *
 * Other tools write events as they come to know of them: kernels after the step, outer
 * scopes after inner ones. So all of them are kept, 32 bytes each, and sorted. */
#ifndef SONDE_IMPORT_EVENTS_H
#define SONDE_IMPORT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/strmap.h"

enum {
    EVENT_NAMES = 16000, /* a trace has room for 32,752; each may be there twice */
    EVENT_LANES = 4096,  /* threads of all processes together */
    EVENT_PROCESSES = 256,
    EVENTS_MAX = 100 << 20 /* 3.2 GB: beyond that it is an error, not a crash */
};

enum event_kind {
    EVENT_ZONE,  /* a duration */
    EVENT_BEGIN, /* B and E of chrome: paired when the lane is put in order */
    EVENT_END,
    EVENT_MARK,
    EVENT_COUNTER, /* value in `dur` as a double */
    EVENT_STEP,    /* a ProfilerStep: a zone that is a step of training */
};

struct event {
    int64_t ts_ns;
    union {
        int64_t dur_ns;
        double value;
    };
    uint32_t name, order; /* order: as it came, for events of one instant */
    uint32_t correlation; /* of a launch and what it launched; 0 none */
    uint16_t lane;
    uint8_t kind;
};
_Static_assert(sizeof(struct event) == 32, "there are millions");

struct event_name {
    const char *text, *category, *file;
    int line, phase;
    bool is_weak;     /* the phase is a guess that gives way to that of a zone around */
    bool is_backward; /* work of autograd's engine */
    bool is_device;   /* on a card: a kernel, a copy */
};

struct event_lane {
    uint16_t process; /* index */
    const char *tid;  /* as the trace calls it */
    const char *name; /* "" not told */
    bool is_main, is_device;
    uint64_t events;
    bool has_steps;
};

struct event_process {
    const char *pid;
    const char *name, *labels; /* "" not told */
    bool is_device;
};

struct events {
    struct arena arena;
    struct event *list;
    size_t count, cap;
    struct strmap name_index, lane_index, process_index;
    struct event_name *names;
    struct event_lane *lanes;
    struct event_process *processes;
    size_t name_count, lane_count, process_count;
    uint64_t left_out;  /* events without room */
    int64_t base_ns;    /* add to each ts */
    const char *device; /* name of the first card, "" none */
    int devices;
    bool is_torch;
};

int events_init(struct events *e);
void events_release(struct events *e);

/* Numbers for a name and a place; −1 when there is no room. */
long events_name(struct events *e, const char *text, const char *category);
long events_lane(struct events *e, const char *pid, const char *tid);
int events_add(struct events *e, const struct event *event);

/* Sorts by lane, time, outer zones before inner ones. */
void events_sort(struct events *e);

#endif
