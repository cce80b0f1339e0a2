/* io.h: files and sockets of a run, all processes together.
 *
 * Read from the files "io-….tables" that libsonde-preload.so leaves (trace/io_rows.h).
 * Paths are redacted here: nothing behind this shows them as they were.
 */
#ifndef SONDE_ANALYSE_IO_H
#define SONDE_ANALYSE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/io_rows.h"

struct report;

struct io_sum {
    uint64_t calls, timed; /* timed: of calls, those with a latency */
    uint64_t bytes;
    double ns;
    uint64_t sequential; /* of the calls that moved bytes */
    uint64_t errors, again;
    uint64_t sizes[IO_SIZES];
    double p50_ns, p95_ns, p99_ns; /* within 6.3 %; NaN without any */
    uint64_t *latency;             /* IO_BUCKETS, in ticks */
};

struct io_path {
    const char *path; /* redacted; never "" */
    enum io_class io_class;
    struct io_sum side[2];
    uint64_t ways; /* bits of enum io_way */
    uint64_t opens, closes, open_at_end;
    uint64_t syncs, connects;
    double sync_ns, connect_ns;
    uint64_t file_bytes, mapped_bytes, touched_bytes;
    uint64_t cache_pages, cache_warm; /* 0 pages: nobody looked */
    uint64_t processes;
};

struct io_by_zone {
    const char *zone;
    int phase; /* of the site; SONDE_NO_PHASE none or unknown */
    uint64_t calls[2], bytes[2];
    double ns[2];
    uint64_t opens, looks; /* files opened to read; stat and its kin */
    double open_ns, look_ns;
};

/* What the main thread did by hand, in whole steps and outside of all zones. */
struct io_hand {
    bool known;
    uint64_t steps; /* with opens, looks or reads */
    uint64_t opens, looks, reads, small_reads, read_bytes;
    double open_ns, look_ns, read_ns;
    bool writes_known;    /* older runs do not count them: */
    uint64_t write_steps; /* with any */
    uint64_t writes, write_bytes;
    double write_ns;
};

struct io_report {
    bool captured;         /* any process left a table */
    struct io_path *paths; /* most time first */
    size_t path_count;
    struct io_by_zone *zones; /* most time first */
    size_t zone_count;
    struct io_sum total[2];
    uint64_t processes;       /* that left tables */
    double coverage;          /* seen / kernel; NaN: not known */
    const char *coverage_why; /* "" while it is at least 95 % */
    uint64_t seen[2], kernel[2];
    uint64_t opens, closes, open_errors, open_at_end, open_most;
    double open_ns;
    bool open_grows;      /* the number of open descriptors rose throughout */
    uint64_t small_reads; /* of regular files, below 4 KiB, … */
    uint64_t file_reads;  /* … of so many that moved bytes */
    uint64_t events, events_dropped, files_refused;
    struct io_hand
        hand; /* of the process with most steps; known: zones know opens too */
};

int io_read(struct report *report);

/* "file", "pipe", … */
const char *io_class_name(enum io_class io_class);
/* Share of calls that moved bytes from where the one before had ended; NaN without. */
double io_sequential_share(const struct io_sum *sum);
/* Share of pages of the file that were cached before its first read; NaN unknown. */
double io_warm_share(const struct io_path *path);

#endif
