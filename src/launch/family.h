/* family.h: the processes of a run.
 *
 * Who belongs to it is found in three ways, because each misses some:
 *
 *  - children of members, from /proc/PID/task/TID/children. A member stays one when its
 *    parent dies and it gets a new one (double forks, daemons).
 *  - pids of the files in the run directory: processes that recorded something, even
 *    those whose parents came and went between two looks. The head of the file tells
 *    the start of the process, so a reused number is not mistaken.
 *  - every second or so, new pids in /proc whose environment has SONDE_RUN=<this run>:
 *    what the two above missed, static programs included.
 *
 * A process is its number and its start (field 22 of stat); the kept descriptor of its
 * stat answers for that very process and for no later one of the same number. What dies
 * between two looks without a file is not seen; its CPU time is in its parent's.
 *
 * One thread. Costs: one pread per member and look, plus one per thread; looks are made
 * rarer when they are dear (family_look() then only checks who is still there).
 */
#ifndef SONDE_LAUNCH_FAMILY_H
#define SONDE_LAUNCH_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAMILY_MAX = 4096,        /* members kept, dead ones included */
    FAMILY_LIVING_MAX = 2048, /* more are counted as missed */
};

/* How a member was found. */
enum family_source { FAMILY_PROGRAM, FAMILY_CHILD, FAMILY_FILE, FAMILY_ENVIRON };

struct family_member {
    uint32_t pid;
    uint32_t ppid;   /* of the last look: 1 (or a subreaper) for orphans */
    uint32_t parent; /* pid of its first parent known */
    uint64_t start_ticks;
    enum family_source source;
    char state; /* as in stat: 'R', 'S', 'Z' … at the last look */
    uint32_t threads;
    char comm[16];
    uint64_t cpu_ticks;
    uint64_t rss_pages; /* the last there were: a zombie has none */
    bool alive;         /* false: gone; a zombie is still there */
    bool exit_known;    /* it was seen as a zombie */
    int exit_status;    /* as from wait() */
    uint64_t seen_ns;   /* monotonic: first look that knew it … */
    uint64_t last_ns;   /* … and the last at which it was there */
};

struct family_options {
    const char *proc;    /* root; NULL or "": /proc */
    const char *run_dir; /* NULL: neither files nor environments are searched */
    uint32_t pid;        /* the program; the first member, for ever at index 0 */
    uint64_t scan_ns;    /* most between scans of all of /proc; 0: 3 s */
};

struct family;

/* −ESRCH when there is no such process. */
int family_new(const struct family_options *options, struct family **ret_family);
void family_free(struct family *family);

/* Looks who is there. Returns the number of living members. */
size_t family_look(struct family *family, uint64_t now_ns);

/* The same, unless the last look is younger than max_age_ns: several ask. */
void family_fresh(struct family *family, uint64_t now_ns, uint64_t max_age_ns);

/* Members, dead ones included while there is room for them (the oldest dead go first).
 * Indices are those of the last look only; 0 is always the program. */
size_t family_count(const struct family *family);
const struct family_member *family_at(const struct family *family, size_t index);
/* NULL: not a member, as far as is known. start_ticks 0: whichever start. */
const struct family_member *family_find(const struct family *family, uint32_t pid,
                                        uint64_t start_ticks);
/* Members ever; and processes there was no room for. */
uint64_t family_total(const struct family *family);
uint64_t family_missed(const struct family *family);

#endif
