/* file.h: a process file, mapped for writing.
 *
 * Two kinds of user: the process that records into it (creates it, takes blocks for
 * events, sites, lanes) and folders (open it, take blocks for statistics). Both see
 * one array of blocks; a block number from the file is checked before it becomes a
 * pointer, because to a folder the file is somebody else's.
 *
 * No allocation and no locks of libc: callable from signal handlers and from the
 * child of a fork.
 */
#ifndef SONDE_TRACE_FILE_H
#define SONDE_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/control.h"
#include "trace/format.h"
#include "trace/ownfile.h"

struct tracefile {
    uint8_t *base;         /* 64 KiB aligned; NULL when not mapped */
    uint64_t cap_blocks;   /* address space behind base */
    uint64_t known_blocks; /* of them, known to exist in the file */
    int fd;
    struct ownfile_id id; /* what fd must still refer to */
    /* Ticks: since when a folder lets a waiting reader go first, since when readers
     * keep it out (0: they do not), until when it need not let them. */
    uint64_t gave_way, kept_out, turn_ends;
    struct control *control;
    char path[1024];
};

/* Creates DIR/<start>-<pid>-<rand>.sonde with head, live page, table, first site,
 * string and lane blocks. The caller fills names in; the gate starts as control's. */
int tracefile_create(const char *dir, struct control *control, uint64_t forked_from_ns,
                     struct tracefile *ret_file);
/* Opens an existing one for folding: the head is checked. */
int tracefile_open(const char *path, struct control *control,
                   struct tracefile *ret_file);
void tracefile_close(struct tracefile *file);
/* For a file that is done with while other threads may still be about to write into it:
 * its pages go back, writes fall on memory that means nothing, and a file created later
 * takes the place. Sessions would use up the address space otherwise. The caller has
 * closed fd; one thread at a time. `number` is that of the session. */
void tracefile_retire(struct tracefile *file, uint32_t number);
/* Who knows whether somebody may still write where the file of that session was: asked
 * before its place is taken. None: nobody may. */
void tracefile_ask(bool (*held)(uint32_t number));

static inline struct trace_head *tracefile_head(const struct tracefile *f)
{
    return (struct trace_head *)f->base;
}
static inline struct trace_live *tracefile_live(const struct tracefile *f)
{
    return (struct trace_live *)(f->base + BLOCK_SIZE);
}

/* The block as memory, or NULL when the number is beyond the file. */
uint8_t *tracefile_block(struct tracefile *file, uint32_t block);
/* The block's word in the table, or NULL. */
uint64_t *tracefile_entry(struct tracefile *file, uint32_t block);

/* A new zeroed block with space on disk, taken from the run's budget. It is in no
 * directory and BLOCK_NONE in the table: the caller publishes it. −EDQUOT: budget
 * used up; −ENOSPC, −EFBIG: disk, file-size limit; −ENOMEM: no address space. */
int tracefile_take_block(struct tracefile *file, uint32_t *ret_block);
/* Makes dir[index] a block of `kind` when it is not there yet. */
int tracefile_need(struct tracefile *file, uint32_t *dir, uint32_t index,
                   enum block_kind kind);

/* Pointers to fixed-size things by number; NULL when their block is not there. */
struct site_entry *tracefile_site(struct tracefile *file, uint32_t site);
struct lane_cell *tracefile_lane(struct tracefile *file, uint32_t lane);
struct node_cell *tracefile_node(struct tracefile *file, uint32_t node);
struct chunk_cell *tracefile_chunk(struct tracefile *file, uint32_t chunk);
struct value_cell *tracefile_value(struct tracefile *file, uint32_t value);

/* The fold lock: one folder at a time, given back by the kernel when it dies, and
 * not inherited by fork. −EAGAIN when somebody else has it. */
int tracefile_lock(struct tracefile *file);
void tracefile_unlock(struct tracefile *file);
/* Whether it was readers that refused the last attempt; they will be done. */
bool tracefile_kept_out(const struct tracefile *file);
/* In the child of a fork: nobody here holds the lock. */
void tracefile_forked(void);

/* For readers: no folder publishes or recycles between the two. They wait a second at
 * most; false: a folder was stopped in the middle, read on regardless. `owner` is the
 * head's pid: a reader inside that process shares its locks, which is why it must also
 * close its descriptor with the third. */
bool tracefile_read_lock(int fd, uint32_t owner);
void tracefile_read_unlock(int fd, uint32_t owner);
void tracefile_read_close(int fd, uint32_t owner);

/* True when the process that owns the file still runs. */
bool tracefile_owner_alive(const struct trace_head *head);
/* Start time of a process in clock ticks since boot (0: no such process). */
uint64_t process_start_ticks(uint32_t pid);
/* The id of this boot of the machine, into zeroed bytes; false when not to be had. */
bool boot_id_read(uint8_t ret_id[16]);
/* Whether the process may still take blocks to lengthen its timeline: its own
 * blocks must be no more than what is left for everybody else. */
bool tracefile_may_grow(const struct tracefile *file);

#endif
