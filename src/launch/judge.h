/* judge.h: why did it end? From evidence to one of the causes of DESIGN §6.
 *
 * Rules stand in one list, the strongest evidence first; the first that applies gives
 * the cause and the sentence. Pure: whoever collects the evidence (postmortem.c, tests)
 * fills in what there is, and unknown is unknown.
 */
#ifndef SONDE_LAUNCH_JUDGE_H
#define SONDE_LAUNCH_JUDGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launch/filling.h"
#include "launch/hang.h"
#include "launch/kernellog.h"
#include "launch/kin.h"
#include "launch/memcg.h"
#include "trace/runfile.h"

/* Who asked for the end: the last SIGTERM, SIGINT … that came from outside. */
struct asked {
    int signal;   /* 0: nobody */
    pid_t sender; /* 0: outside our PID name space, or the kernel */
    char comm[COMM_LEN];
    uint64_t at_ns;
    char scheduler[64]; /* "Slurm job 12", "Kubernetes" …; "": none known */
};

/* What somebody inside the program knew (hints.h). */
struct hint {
    pid_t pid; /* 0: none */
    const char *cause;
    char text[256];
};

/* A fault seen from inside (capture/interpose/crash.c) or by the kernel. */
struct fault {
    int signal; /* 0: none */
    pid_t pid;
    uint64_t address;
    char place[160];      /* "libfoo.so+0x12", "" unknown */
    uint64_t shm_free;    /* at that moment; MEMCG_UNKNOWN */
    unsigned frame_count; /* innermost first; 0 unknown */
    char frame[DEATH_FRAMES][DEATH_GROUP];
};

struct evidence {
    int status; /* of the program, as from wait() */
    uint64_t now_ns;
    const struct kin *kin;             /* may be empty */
    uint64_t max_rss;                  /* of the program, bytes; 0 unknown */
    double growth;                     /* of the tree, bytes/s; NaN */
    bool timed_out;                    /* we ended it … */
    bool over_limit;                   /* … for its memory */
    uint64_t timeout_ns, memory_limit; /* 0: none */
    bool limit_is_group;               /* the limit was given to a group of ours */
    uint64_t size_over;                /* bytes when we ended it */
    struct memcg_news group;           /* .readable false: nothing known */
    uint64_t host_kills;               /* of the machine meanwhile; MEMCG_UNKNOWN */
    const struct kernellog *log;       /* may be NULL */
    const struct filling *filling;     /* may be NULL */
    const struct hang *hang;           /* may be NULL */
    struct asked asked;
    struct hint hint;
    struct fault fault;
};

/* Fills in exit and death. death->text stays "" when the status says it all. */
void judge(const struct evidence *evidence, struct runfile_exit *ret_exit,
           struct runfile_death *ret_death);

#endif
