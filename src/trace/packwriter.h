/* packwriter.h: a process file made from events that are known already.
 *
 * For imports: the events of somebody else's trace, in order of time within each lane,
 * become a file in compact form (pack.h) like that of a process that ended long ago. Ticks
 * are nanoseconds. Memory is bounded by one block per lane and the statistics.
 *
 *     packwriter_new(path, &about, &w);
 *     site = packwriter_site(w, &(struct packwriter_site){ .name = "forward" });
 *     packwriter_begin(w, lane, site, ns);
 *     packwriter_end(w, lane, site, ns);
 *     rc = packwriter_finish(w);     — the file is there now, or it is not
 *
 * Errors stick; packwriter_finish() reports the first one. Lane 0 is the main thread.
 */
#ifndef SONDE_TRACE_PACKWRITER_H
#define SONDE_TRACE_PACKWRITER_H

#include <stdint.h>

struct packwriter;

struct packwriter_about {
    uint32_t pid, ppid;
    uint64_t start_ns; /* since the epoch; no event is earlier */
    const char *exe, *role;
};

struct packwriter_site {
    const char *name, *file, *component, *category, *tags; /* NULL: "" */
    int line, phase;
};

int packwriter_new(const char *path, const struct packwriter_about *about,
                   struct packwriter **ret_writer);
/* Writes what is left, then puts the file in its place. Frees the writer. */
int packwriter_finish(struct packwriter *w);
/* Gives up: no file is left. NULL is fine. */
void packwriter_discard(struct packwriter *w);

/* A number for a site; the caller asks once per site. "(other names)" when there are
 * too many. */
unsigned packwriter_site(struct packwriter *w, const struct packwriter_site *site);
/* Names a lane before its first event. Lanes are below 1,024. */
void packwriter_lane(struct packwriter *w, unsigned lane, uint32_t tid,
                     const char *name);

/* ns since the epoch, never before start_ns nor before the lane's last event. */
void packwriter_begin(struct packwriter *w, unsigned lane, unsigned site, uint64_t ns);
void packwriter_end(struct packwriter *w, unsigned lane, unsigned site, uint64_t ns);
void packwriter_step(struct packwriter *w, unsigned lane, uint64_t samples,
                     uint64_t ns);
/* The end of the last step, where no other one begins: it is timed, not counted. */
void packwriter_step_end(struct packwriter *w, unsigned lane, uint64_t ns);
/* kind: enum value_kind. */
void packwriter_value(struct packwriter *w, unsigned lane, unsigned name, int kind,
                      double value, uint64_t ns);
void packwriter_mark(struct packwriter *w, unsigned lane, unsigned name, uint64_t ns);

/* Statistics without events, for profiles that are sums: `count` calls of a path that
 * took `total_ns` together, of which the children's are added on their own. Returns the
 * node for children; parent 0 is the main lane. */
unsigned packwriter_sum(struct packwriter *w, unsigned parent, unsigned site,
                        uint64_t count, uint64_t total_ns);
/* A number that belongs to such a path; `name` is a site. */
void packwriter_sum_value(struct packwriter *w, unsigned node, unsigned name,
                          double value);

#endif
