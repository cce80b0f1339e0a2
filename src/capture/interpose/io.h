/* io.h: what the files io*.c share; private to them.
 *
 *     io.c         the state of this process, its file of tables, readings, the end
 *     io_rows.c    paths and zones get rows
 *     io_vfork.c   whether a thread is in a child of vfork
 *     io_fds.c     open, close, dup, pipe …: what a descriptor is
 *     io_calls.c   read and write families
 *     io_copy.c    sendfile, copy_file_range, splice, fsync
 *     io_net.c     send, recv, connect, accept
 *     io_looks.c   stat, access, opendir, readdir: what is there
 *     io_steps.c   which of it the main thread does in steps, by hand
 *     io_map.c     mmap of files
 *     io_stdio.c   what happened between a FILE and its descriptor
 *     io_fread.c   … in calls that read      io_fwrite.c   … in calls that write
 *     io_fopen.c   … in calls that open, close and position
 *
 * The way of a call, in all of them:
 *
 *     struct io_call c;
 *     if (!io_begin(&c, fd))                  // Sonde's own, early, switched off
 *         return REAL(read)(fd, buf, n);
 *     ssize_t got = REAL(read)(fd, buf, n);   // nothing is held: it may be cancelled
 *     io_end(&c, IO_READ, IO_WAY_READ, got, IO_HERE);
 *     return got;
 *
 * What it adds is two readings of the clock and five additions without lock prefix,
 * because a row belongs to one thread (io_rows.h); other threads share a second row
 * with locked additions. Single instructions, so that handlers lose nothing.
 *
 * Everything lives in memory that the kernel wipes in the child of a fork: a child
 * starts with no file, no rows and no known descriptors, and finds out anew. A child of
 * vfork shares this memory with its parent and changes nothing in it (io_vfork.c).
 */
#ifndef SONDE_CAPTURE_INTERPOSE_IO_H
#define SONDE_CAPTURE_INTERPOSE_IO_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <sonde/sonde.h>

#include "capture/interpose/inside.h"
#include "trace/io_rows.h"
#include "trace/tables.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)

/* A pointer to the real function of this name. All are looked up by our constructor:
 * later it might be in a signal handler or in the child of a process with threads, where
 * the loader's lock must not be waited for. Before, they are looked up when used. */
struct io_real_entry {
    const char *name;
    void **pointer;
};
#define REAL_OF(name_)                                                                 \
    static __typeof__(name_) *real_##name_;                                            \
    __attribute__((section("io_reals"),                                                \
                   used)) static const struct io_real_entry entry_##name_ = {          \
        #name_, (void **)&real_##name_                                                 \
    }
#define REAL(name)                                                                     \
    (__extension__({                                                                   \
        if (UNLIKELY(!real_##name))                                                    \
            real_##name = (__typeof__(real_##name))io_real(#name);                     \
        real_##name;                                                                   \
    }))
void *io_real(const char *name);

enum {
    IO_FDS = 65536, /* descriptors beyond count as other files */
    IO_SLOTS = 4096,
    IO_RECENT = 8,
    IO_MAPS = 256,
    IO_TABLES_FILES = 1,
    IO_TABLES_ZONES,
    IO_TABLES_PROCESS,
    IO_TABLES_EVENTS,
};

/* io_end(): the file's position, which the call moved / not of a file or not known. */
#define IO_HERE     UINT64_MAX
#define IO_NO_PLACE (UINT64_MAX - 1)

enum io_fd_flag {
    IO_FD_OPENED = 1, /* by this process, and seen: its close counts */
    IO_FD_ASIDE = 2,  /* Sonde's own: not counted */
    IO_FD_LOOKED = 4, /* the page cache was looked at, or need not be */
};

/* What is known about a descriptor. All zero: nothing yet. */
struct io_fd {
    struct io_file_row *row;    /* counts of thread `owner` */
    struct io_file_row *shared; /* counts of all others; NULL until there are any */
    FILE *stream;               /* known to be open on it */
    uint64_t pending;           /* bytes that FILE held when we last looked */
    uint64_t pos;               /* the file's position, as far as calls tell */
    uint64_t expect[2];         /* where the last read and the last write ended */
    uint32_t index, shared_index;
    uint16_t owner;
    uint8_t flags, io_class;
};

struct io_zone {
    struct io_zone_row *row, *shared;
    uint32_t owner;
};

struct io_map {
    uintptr_t start; /* 0: free; atomic */
    size_t len;
    uint64_t offset;
    struct io_file_row *row;
};

struct io_state {
    uint32_t on;   /* 0: not set up (or wiped by a fork) */
    uint32_t lock; /* over rows, zones, maps; held for an instant, never over calls */
    int32_t pid;
    uint32_t broken;  /* no file could be made: pass everything through */
    uint32_t trace;   /* every event */
    uint32_t full;    /* no more rows for paths: those without are other files */
    uint32_t cwd_len; /* 0: not known */
    char cwd[512];
    uint64_t memory_device; /* of /dev/shm; 0: there is none */
    uint32_t fd_top;        /* no descriptor was opened beyond this one */
    uint32_t stream_top;    /* no FILE is known beyond this descriptor */
    uint64_t next_reading;  /* ticks */
    uint64_t second;        /* in ticks */
    uint64_t base[2];       /* rchar, wchar at the start */
    uint64_t own[2];        /* bytes Sonde itself moved since; not the program's */
    struct io_process_row *process;
    struct io_by_hand step;    /* of the step that is going on, … */
    uint64_t step_number;      /* … this one */
    struct io_file_row *other; /* row 0 */
    struct tables tables;
    uint32_t slot[IO_SLOTS]; /* hash table of rows: index + 1 */
    /* Found lately: sockets and shared memory come and go with every batch. */
    struct {
        uint64_t key;
        struct io_file_row *row;
        uint32_t index;
    } recent[IO_RECENT];
    uint32_t map_top; /* no file is mapped in or beyond this place of `map`; atomic */
    struct io_map map[IO_MAPS];
    struct io_zone zone[MAX_SITES];
    struct io_fd fd[IO_FDS];
};
extern struct io_state *io;

struct io_call {
    struct io_fd *fd;
    struct io_file_row *row;
    uint64_t start;
    bool alone; /* the row is this thread's */
};

/* ---- Counting ----------------------------------------------------------------------- */

static inline void io_add(uint64_t *counter, uint64_t n, bool alone)
{
#if defined(__x86_64__)
    if (LIKELY(alone)) {
        __asm__ volatile("addq %1, %0" : "+m"(*counter) : "er"(n) : "cc");
        return;
    }
#endif
    (void)alone;
    (void)__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static inline void io_add32(uint32_t *counter, bool alone)
{
#if defined(__x86_64__)
    if (LIKELY(alone)) {
        __asm__ volatile("addl $1, %0" : "+m"(*counter) : : "cc");
        return;
    }
#endif
    (void)alone;
    (void)__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

extern bool io_has_counter; /* the tick counter of this machine is fit for use */
static inline uint64_t io_ticks(void)
{
    return LIKELY(io_has_counter) ? sonde_ticks_() : ticks_now();
}

/* ---- A call (io.c, io_rows.c) ---------------------------------------------------------- */

/* The cold half of io_begin(): sets up, finds out what the descriptor is, gives it a
 * row. Leaves errno alone. False: do not count. */
bool io_begin_slow(struct io_call *call, int fd);
/* After a call that was passed through: Sonde's own bytes are told apart, because the
 * kernel counts them too. */
void io_passed(int fd, enum io_direction direction, int64_t moved);
/* The cold halves of io_end(). */
void io_failed(struct io_call *call, enum io_direction direction, int error);
void io_count_zone(uint32_t zone, enum io_direction direction, uint64_t bytes,
                   uint64_t ticks);
void io_count_zone_open(uint32_t zone, uint64_t ticks);
void io_count_zone_looks(uint32_t zone, uint64_t looks, uint64_t ticks);
void io_event(const struct io_call *call, enum io_direction direction, enum io_way way,
              int64_t result, uint64_t offset, uint64_t ticks);
void io_take_reading(uint64_t now);

/* ---- By hand, in steps (io_steps.c) -------------------------------------------------- */

/* Whether somebody will ask what this thread looks at: in a zone, or by hand. */
bool io_looks_count(void);
void io_looked(uint64_t looks, uint64_t ticks);
/* A file was opened as `fd`; a read (a write) outside of all zones moved bytes. */
void io_file_opened(int fd, const struct io_fd *f, uint64_t ticks);
void io_step_read(const struct io_fd *f, uint64_t bytes, uint64_t ticks);
void io_step_written(const struct io_fd *f, uint64_t bytes, uint64_t ticks);

/* Whether the bytes follow those before; remembers where they end. */
static inline bool io_follows(struct io_fd *f, enum io_direction d, uint64_t offset,
                              uint64_t bytes)
{
    if (offset == IO_NO_PLACE)
        return true;
    uint64_t at = offset;
    if (offset == IO_HERE) {
        at = f->pos;
        f->pos = at + bytes;
    }
    const bool follows = at == f->expect[d];
    f->expect[d] = at + bytes;
    return follows;
}

/* One copy for all callers: a training step leaves none of this in the caches, and what
 * a call costs there is the lines of code it has to fetch. */
bool io_begin(struct io_call *c, int fd);
void io_end(struct io_call *c, enum io_direction d, enum io_way way, int64_t result,
            uint64_t offset);

/* ---- Descriptors (io_fds.c, io_rows.c) --------------------------------------------------- */

/* After inside_ready() said yes; inside_busy is set. */
bool io_set_up(void);
/* An open that began at `start` gave `fd`; path NULL: ask. Sets
 * things up, unless in a child of fork, which may be about to become something else.
 * `caller`: a return address; what the recorder in this library opens is put aside. */
#define IO_CALLER __builtin_return_address(0)
void io_opened(int fd, const char *path, uint64_t start, const void *caller);
/* Instead of a path: one of those. */
extern const char io_pipe[], io_socket[];
#define IO_SHARED_MEMORY "(shared memory)"
/* `fd` is about to be closed: forget it. */
void io_closing(int fd);
/* The same descriptor by another number. */
void io_doubled(int from, int to);
/* It now goes by this name. */
void io_renamed(int fd, const char *name);
/* The row for what `fd` is; path NULL: ask. inside_busy is set. */
void io_resolve(struct io_fd *f, int fd, const char *path);
/* The same for a path as it was given to open(), absolute or relative to the working
 * directory. */
void io_resolve_given(struct io_fd *f, int fd, const char *path);
/* The working directory is another now. */
void io_moved(void);
void io_resolve_shared(struct io_fd *f);
/* Looks at the page cache, once per row. */
void io_look(struct io_fd *f, int fd);
struct io_zone *io_zone_resolve(uint32_t zone);

/* Whether this thread runs in a child of vfork (io_vfork.c). */
extern THREAD_LOCAL uint32_t io_vforked;
bool io_in_vfork_slow(void);
static inline bool io_in_vfork(void)
{
    return UNLIKELY(io_vforked) && io_in_vfork_slow();
}

static inline void io_lock(struct io_state *s)
{
    while (__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE))
        ;
}
static inline void io_unlock(struct io_state *s)
{
    __atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

/* ---- The end ------------------------------------------------------------------------------ */

/* What is open and what is not (io_fds.c). */
void io_fds_finish(void);
/* Modelled reads of what is still mapped (io_map.c). */
void io_maps_finish(void);
/* What FILEs still hold will be written by exit() (io_stdio.c). */
void io_streams_finish(void);

#endif
