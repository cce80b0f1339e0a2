/* memcg.h: the control groups that bound a process's memory, and what they did to it.
 *
 * Both versions: of v2 memory.max, memory.events and memory.peak; of v1
 * memory.limit_in_bytes, memory.oom_control, memory.failcnt and
 * memory.max_usage_in_bytes. The group of a process and all above it that can be seen
 * are levels, the innermost first, for the limit that killed may be an ancestor's.
 *
 * Counters only grow: what was there before the program is the baseline.
 */
#ifndef SONDE_LAUNCH_MEMCG_H
#define SONDE_LAUNCH_MEMCG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { MEMCG_LEVELS = 12, MEMCG_PATH = 512 };
#define MEMCG_UNKNOWN UINT64_MAX

struct memcg_level {
    size_t dir_len;  /* of memcg.dir */
    uint64_t limit;  /* bytes; MEMCG_UNKNOWN: none */
    uint64_t kills;  /* processes killed; v1: in this very group only */
    uint64_t at_top; /* times the limit was reached and nothing could be freed */
};

struct memcg {
    int version; /* 1 or 2; 0: no group to be seen */
    char dir[MEMCG_PATH], path[MEMCG_PATH];
    size_t mount_len; /* of dir */
    struct memcg_level level[MEMCG_LEVELS];
    unsigned level_count;
};

/* The group of a process, with the counters of now as its baseline. `proc` is where
 * /proc is, for tests. SONDE_E_NOTFOUND without a memory controller. */
int memcg_open(const char *proc, pid_t pid, struct memcg *ret_group);
/* Whether the process is (still) in this group. True when that cannot be read. */
bool memcg_holds(const struct memcg *group, const char *proc, pid_t pid);

struct memcg_news {
    bool readable;         /* kills could be read; else they are unknown, not 0 */
    uint64_t kills;        /* since the baseline, in this group and, of v2, below */
    bool at_limit;         /* a limit was reached */
    uint64_t limit, peak;  /* bytes of that level or the tightest; MEMCG_UNKNOWN */
    char path[MEMCG_PATH]; /* its name, as in /proc/PID/cgroup */
};
void memcg_look(const struct memcg *group, struct memcg_news *ret_news);

/* The tightest limit on the way up; MEMCG_UNKNOWN: none. */
uint64_t memcg_limit(const struct memcg *group);
/* Bytes charged to the innermost group; MEMCG_UNKNOWN when it does not tell. */
uint64_t memcg_usage(const struct memcg *group);

#endif
