/* watch_rows.h: what the supervisor knew last, for whoever finds the run without it.
 *
 * File of tables of kind "watch", table "state", one row. Where both the program and
 * its supervisor are killed (the OOM killer with memory.oom.group, a container's end)
 * nobody is left to judge; the next command does, by this. */
#ifndef SONDE_TRACE_WATCH_ROWS_H
#define SONDE_TRACE_WATCH_ROWS_H

#include <stdint.h>

#define WATCH_KIND  "watch"
#define WATCH_STATE "state"

struct watch_row {
    uint64_t key;             /* 1 */
    uint32_t group_version;   /* 0: no control group */
    uint32_t asked_signal;    /* that came from outside; 0: none */
    uint64_t kills, at_top;   /* of the group before the program; UINT64_MAX unknown */
    uint64_t limit;           /* bytes; UINT64_MAX: none */
    uint64_t rss;             /* bytes of the whole tree, last look */
    int64_t growth;           /* bytes/s; 0 unknown */
    uint32_t scheduler;       /* asked under a batch system */
    uint32_t hanging;         /* a hang was going on */
    char dir[512], path[512]; /* of the group, as struct memcg has them */
};
_Static_assert(sizeof(struct watch_row) == 1088, "rows are shared");

#endif
