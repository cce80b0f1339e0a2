/* io_rows.h: what one process did to files and sockets: rows of "io-….tables".
 *
 * Written by libsonde-preload.so (src/capture/interpose/io*.c), read by
 * src/analyse/io.c. Times are ticks of the run's clock. Rows are counters: each field is
 * right by itself at every instant, a sum over several may be one call apart.
 *
 *     table      rows
 *     files      one per path and owner: the thread that created the row counts in it
 *                without lock prefix, everybody else in a second row of the same path.
 *                Readers add rows with equal path and class. Row 0 holds what came after
 *                the table was full.
 *     zones      the same per zone of the process's trace, without paths
 *     process    one row
 *     events     every call, only with --trace=io
 */
#ifndef SONDE_TRACE_IO_ROWS_H
#define SONDE_TRACE_IO_ROWS_H

#include <stdint.h>

#define IO_KIND          "io"
#define IO_TABLE_FILES   "files"
#define IO_TABLE_ZONES   "zones"
#define IO_TABLE_PROCESS "process"
#define IO_TABLE_EVENTS  "events"

enum {
    IO_MAX_FILES = 2048, /* rows; paths beyond are one row together */
    IO_MAX_ZONES = 1024,
    IO_MAX_EVENTS = 349000, /* per process, the first; more are counted, not kept */
    IO_SIZES = 8,
    IO_BUCKETS = 304,
    IO_SERIES_OLD = 32,
    IO_SERIES = 128,
};

enum io_direction { IO_READ, IO_WRITE };

enum io_class {
    IO_CLASS_UNKNOWN,
    IO_CLASS_FILE,
    IO_CLASS_PIPE,
    IO_CLASS_SOCKET,
    IO_CLASS_TTY,
    IO_CLASS_PROC, /* /proc and /sys: no bytes of any disk */
    IO_CLASS_DEVICE,
    IO_CLASS_OTHER, /* eventfd, epoll, memfd …, and the row of other files */
    IO_CLASS_COUNT
};

/* How a file was used: bits of io_file_row.ways, and the op of an event. */
enum io_way {
    IO_WAY_READ,     /* read, write, readv, writev */
    IO_WAY_PREAD,    /* with an offset */
    IO_WAY_STDIO,    /* fread, fprintf …: calls are refills and flushes, found out */
    IO_WAY_MESSAGE,  /* send and recv families: not in rchar and wchar */
    IO_WAY_SENDFILE, /* sendfile, copy_file_range */
    IO_WAY_SPLICE,   /* not in rchar and wchar either */
    IO_WAY_MAP,      /* mmap */
    IO_WAY_SYNC,     /* fsync, fdatasync, msync, sync_file_range */
    IO_WAY_OPEN,
    IO_WAY_CLOSE,
    IO_WAY_SEEK,
    IO_WAY_CONNECT, /* connect, accept */
    IO_WAY_COUNT
};

/* One direction of one file. */
struct io_side {
    uint64_t bytes;
    uint64_t ticks;      /* inside the calls of `latency` */
    uint64_t sequential; /* calls that moved bytes from where the one before ended */
    uint64_t errors;     /* calls that failed, EAGAIN and EINTR apart */
    uint64_t again;      /* EAGAIN, EINTR: nothing there yet */
    uint64_t uncounted;  /* of bytes: by send, recv, splice, which the kernel's rchar
                             * and wchar leave out */
    uint64_t
        sizes[IO_SIZES]; /* calls by bytes moved; their sum is the number of calls */
    uint32_t latency[IO_BUCKETS]; /* calls whose time is known */
};

struct io_file_row {
    uint64_t key;             /* hash of the path; last */
    uint32_t path;            /* text; 0 in row 0 */
    uint8_t io_class, shared; /* shared: the row of those who are not its owner */
    uint16_t owner;
    uint64_t ways; /* 1 << enum io_way */
    uint64_t opens, closes;
    uint64_t syncs, sync_ticks;
    uint64_t file_bytes;              /* size when first opened or read */
    uint64_t cache_pages, cache_warm; /* looked at before the first read; of them in
                                        * the page cache. 0 pages: not looked at */
    uint64_t mapped_bytes, mapped;    /* mmap calls and their lengths */
    uint64_t touched_bytes;           /* modelled: see io_map.c */
    uint64_t connect_ticks, connects; /* connect and accept */
    struct io_side side[2];
};

struct io_zone_row {
    uint64_t key; /* 1 + number of the site, | 1 << 32 for those not its owner */
    uint64_t calls[2], bytes[2], ticks[2];
    uint64_t opens, open_ticks; /* of files, to read; since there is io_by_hand */
    uint64_t looks, look_ticks; /* stat, access, going through a folder */
};

/* Calls for files by the main thread in steps, in no zone: what a program does by hand
 * that nobody has a name for. Of whole steps: what follows the last one is not in it. */
struct io_by_hand {
    uint64_t counted;           /* enum io_hand_counted; 0: nothing is */
    uint64_t steps;             /* with opens, looks or reads */
    uint64_t opens, open_ticks; /* to read */
    uint64_t looks, look_ticks; /* stat, access, going through a folder */
    uint64_t reads, read_bytes, read_ticks;
    uint64_t small_reads; /* below 4 KiB */
    /* To files, terminals, devices and pipes; since IO_HAND_WRITES. */
    uint64_t write_steps; /* with any */
    uint64_t writes, write_bytes, write_ticks;
};
enum io_hand_counted { IO_HAND_READS = 1, IO_HAND_WRITES = 2 };

/* The kernel's count beside ours, at one instant. */
struct io_reading {
    uint64_t ticks;
    uint64_t kernel[2]; /* rchar, wchar since the first reading, without our own */
    uint64_t seen[2];   /* ours, without `uncounted` */
    uint64_t all[2];    /* rchar, wchar as they stand: what a parent inherits when it
                         * waits for this process */
};

struct io_process_row {
    uint64_t key;      /* 1 */
    uint64_t readings; /* taken; the last is reading[(readings - 1) % 2] */
    struct io_reading reading[2];
    uint64_t unreadable; /* errno when /proc/self/io cannot be read */
    uint64_t finished;   /* 1: exit handlers ran (readings are of the end) */
    uint64_t opens, closes, open_errors, open_ticks;
    uint64_t inherited; /* descriptors first met in use, opened by somebody else */
    uint64_t open_now, open_most;
    uint64_t series_ticks; /* between two points of the series */
    uint64_t series_count;
    uint64_t series_start;
    uint32_t series_old[IO_SERIES_OLD]; /* of files that have no series_room */
    uint64_t seeks;
    uint64_t files_refused; /* paths that found no row */
    uint64_t series_room;   /* IO_SERIES */
    /* open_now over time, at opens: so many that a loop of a second shows behind ten
     * seconds of imports */
    uint32_t series[IO_SERIES];
    struct io_by_hand by_hand;
};

struct io_event_row {
    uint64_t key;  /* start in ticks, never 0 */
    uint32_t file; /* index in files */
    uint8_t way, direction;
    uint16_t thread;
    int64_t result;  /* bytes, or -errno */
    uint64_t offset; /* of the file; all ones: none or not known */
    uint32_t ticks;  /* at most; longer ones are cut */
    uint32_t zone;   /* site, 0 none */
    uint32_t tid;    /* 0: written before there was this field */
    uint32_t pad;
};

_Static_assert(sizeof(struct io_file_row) % 8 == 0, "rows are multiples of 8");
_Static_assert(sizeof(struct io_zone_row) % 8 == 0, "rows are multiples of 8");
_Static_assert(sizeof(struct io_process_row) % 8 == 0, "rows are multiples of 8");
_Static_assert(sizeof(struct io_event_row) == 48, "rows are multiples of 8");

/* ---- Latency buckets -------------------------------------------------------------
 *
 * Below 8 one each, then 8 per octave: the middle of a bucket is within 6.3 % of any
 * value in it. The last is open: 2^39 ticks, some minutes. */
static inline unsigned io_bucket(uint64_t ticks)
{
    if (ticks < 8)
        return (unsigned)ticks;
    const unsigned top = 63u - (unsigned)__builtin_clzll(ticks);
    const unsigned bucket = (top - 2) * 8 + ((unsigned)(ticks >> (top - 3)) & 7);
    return bucket < IO_BUCKETS ? bucket : IO_BUCKETS - 1;
}

static inline double io_bucket_middle(unsigned bucket)
{
    if (bucket < 8)
        return bucket;
    const unsigned shift = bucket / 8 - 1;
    return ((double)(8 + bucket % 8) + 0.5) * (double)(1ULL << shift);
}

/* Classes of sizes: 0, below 512, 4 Ki, 16 Ki, 64 Ki, 256 Ki, 1 Mi, and above. */
static inline unsigned io_size_class(uint64_t bytes)
{
    static const uint8_t of_bits[24] = { 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2,
                                         2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7 };
    const unsigned bits = bytes ? 64u - (unsigned)__builtin_clzll(bytes) : 0;
    return bits < 24 ? of_bits[bits] : 7;
}

#endif
