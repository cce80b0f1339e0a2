/* kin.h: what the post-mortem keeps about each process of the run.
 *
 * The family (family.h) knows who is there; here each one gets a pidfd, its memory and
 * CPU time of the last look, and, once it is gone, how it ended. Only the parent may
 * wait for a process, and we must not become everybody's parent: as a subreaper we
 * would change getppid() of daemons and of workers that watch for their parent's death.
 * So ends are learnt from the side:
 *
 *  - PIDFD_GET_INFO tells the exit status after the parent has reaped it (Linux 6.15);
 *  - on older kernels, whoever is seen as a zombie (family.h).
 *
 * An end that nobody saw stays unknown.
 */
#ifndef SONDE_LAUNCH_KIN_H
#define SONDE_LAUNCH_KIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "launch/family.h"

enum { KIN_MAX = 512, KIN_NAME = 16 };

struct kin_process {
    uint32_t pid, parent;
    uint64_t start_ticks;
    char comm[KIN_NAME];
    uint64_t exe_dev, exe_ino; /* 0: unknown */
    bool is_worker;         /* runs what the program runs: a part of it, no command */
    int pidfd;              /* −1: none */
    uint64_t rss, peak_rss; /* bytes */
    uint64_t cpu_ticks;
    bool alive, status_known;
    int status;       /* as from wait() */
    uint64_t last_ns; /* monotonic: last look at which it was there */
    uint64_t order;   /* of dying: 1 the first; 0 lives or nobody saw it die */
};

struct kin {
    const char *proc;
    struct kin_process *process; /* the first is the program */
    size_t count;
    uint64_t deaths;
    bool program_changed; /* at this look: who is a worker is asked anew */
    uint64_t rss;         /* of all that live */
    uint64_t cpu_ticks;   /* of all, dead ones with what they had */
    unsigned pidfds, pidfd_max;
};

/* `proc` is borrowed. */
int kin_new(const char *proc, struct kin **ret_kin);
void kin_free(struct kin *kin);

/* Takes over who is in the family now, and what it has just read of each. */
void kin_look(struct kin *kin, const struct family *family, uint64_t now_ns);
/* Between looks: the memory of the program and a few others, one read each. */
void kin_look_again(struct kin *kin);

/* Bytes that the living share fairly (PSS): exact but dear. 0 when nobody tells. */
uint64_t kin_pss(const struct kin *kin);
/* Bytes read and written by the living so far, whatever the device. */
uint64_t kin_io(const struct kin *kin);
/* A signal for all of them, the program last. */
void kin_signal(const struct kin *kin, int signal);

/* Whether this kernel tells how a process ended after its parent has reaped it. */
bool kin_learns_ends(void);

#endif
