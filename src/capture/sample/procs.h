/* procs.h: the processes that are sampled: where what is mapped, how threads are called.
 *
 * Kept up to date by records of the kernel. Memory is bounded: processes beyond
 * PROCS_MAX and mappings beyond PROC_MAPPINGS are not followed.
 */
#ifndef SONDE_CAPTURE_SAMPLE_PROCS_H
#define SONDE_CAPTURE_SAMPLE_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strmap.h"
#include "capture/sample/cfi.h"
#include "capture/sample/stacktab.h"

enum {
    PROCS_MAX = 4096,
    PROC_MAPPINGS = 8192,
    PROC_NAME = 16,
    PROC_GENERATED = 32,
    THREADS_MAX = 65536,
};

/* A file with code, once for all processes; of a JIT one per process. */
struct code_file {
    uint32_t number; /* in the file of tables; UINT32_MAX: no room */
    uint32_t pid;    /* of a JIT */
    char *path;
    struct cfi *cfi;
    bool cfi_tried;
};

struct mapping {
    uint64_t start, end, file_offset;
    struct code_file *file;
};

struct proc {
    uint32_t pid, threads;
    char name[PROC_NAME];
    struct mapping *maps; /* by start, none overlapping */
    size_t map_count, map_cap;
    struct code_file *jit; /* of code in no mapping; NULL: not needed yet */
    unsigned asked;        /* as of procs.asked: what is known is as new as that */
    /* Places of generated code that /proc had no file for, by 64 KiB: another sample from
     * there is no reason to ask again. */
    uint64_t generated[PROC_GENERATED];
    unsigned generated_count;
    unsigned missed; /* as of procs.asked: the last time a sample came from nowhere */
};

struct thread_name {
    uint32_t tid, pid;
    char name[PROC_NAME];
    uint32_t task; /* number + 1 in the file of tables; 0: not asked yet */
    unsigned asked;
};

struct procs {
    struct stacktab *tab; /* borrowed */
    struct proc **list;
    size_t count, cap;
    struct thread_name *threads; /* open addressing by tid; tid 0: free */
    size_t thread_count, thread_mask;
    struct strmap files; /* struct code_file by identity */
    unsigned asked;      /* how often procs_ask_anew() was called */
    unsigned all_anew;   /* the last of those that was about everything */
};

int procs_init(struct procs *ret_procs, struct stacktab *tab);
void procs_release(struct procs *procs);

/* The process, made when it is new; NULL: no room. */
struct proc *procs_get(struct procs *procs, uint32_t pid);
/* The same for one that a sample comes from, with what procs_ask_anew() is about. `ip`: where
 * in its code; 0 in the kernel. */
struct proc *procs_sampled(struct procs *procs, uint32_t pid, uint64_t ip);

void procs_on_fork(struct procs *procs, uint32_t pid, uint32_t parent, uint32_t tid,
                   uint32_t parent_tid);
void procs_on_exit(struct procs *procs, uint32_t pid, uint32_t tid);
/* exec: the mappings are gone. */
void procs_on_name(struct procs *procs, uint32_t pid, uint32_t tid, const char *name,
                   bool exec);
struct mapped_file {
    uint64_t start, len, file_offset, inode;
    const char *path;
    const uint8_t *build_id;
    size_t build_id_len;
};
void procs_on_map(struct procs *procs, uint32_t pid, const struct mapped_file *file);
/* Nobody has told of what happened since: /proc is asked for each process and thread that
 * a sample comes from, and those that are gone are forgotten. What a known process has
 * mapped takes a millisecond to ask and seldom changes: that is asked when a sample comes
 * from where nothing is known to be, and every eighth time. */
void procs_ask_anew(struct procs *procs);
/* What /proc says is mapped: for a process that ran before we looked. */
void procs_read_maps(struct procs *procs, uint32_t pid);
/* The same from text, which is changed. */
void procs_take_maps(struct procs *procs, uint32_t pid, char *text);

/* NULL: nothing is known of the address. */
const struct mapping *proc_find(const struct proc *proc, uint64_t address);
/* The file that stands for generated code of a process; NULL without memory. */
struct code_file *procs_jit(struct procs *procs, struct proc *proc);
/* One of "[kernel]" and the like. */
struct code_file *procs_special(struct procs *procs, const char *name);
/* The number of the thread's task. */
uint32_t procs_task(struct procs *procs, struct proc *proc, uint32_t tid);
/* Its unwinding rules; NULL without. */
const struct cfi *code_file_cfi(struct code_file *file);

#endif
