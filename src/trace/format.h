/* format.h: the bytes of a trace. docs/trace-format.md tells the same at length.
 *
 * A run is a directory:
 *
 *     run.json               who, what, when (launcher or session; plain JSON)
 *     control.sonde          struct control + clock table; one per run, shared
 *     <start>-<pid>-<rand>.sonde   one per process: the file described here
 *
 * A process file is an array of blocks of 64 KiB. Block 0 holds the head (page 0);
 * block 1 holds the live page, which recording processes map a second time at a
 * fixed address (the gate). Every other block has a word in the block table that
 * says what it is. Blocks are taken by one atomic add on live.next_block, given
 * space by fallocate, filled, and only then entered in a directory or the table:
 * a process killed in between leaks a block, nothing else.
 *
 * All numbers are little-endian; all offsets from the start of file or block.
 *
 * Events: 8-byte words in blocks of kind EVENTS, from offset 512 to the end.
 *
 *     63                                    16 15          1   0
 *     +---------------------------------------+-------------+-----+
 *     |  low 48 bits of the tick counter      |   site id   | end |   tag >= 16
 *     +---------------------------------------+-------------+-----+
 *
 * Tags below 16 are the other kinds (enum word_tag). Zero is "nothing here": not
 * yet written, or never. A longer record is a head word followed by CONT words with
 * 48 bits of payload each; the head is stored last, so a head that can be seen has
 * its payload, and a CONT without a head is skipped. Unknown tags are skipped.
 *
 * Invariants
 *  (1) A word, once non-zero, never changes while its block keeps its sequence.
 *  (2) Within a lane, sequence numbers of event blocks count 1, 2, 3 …; words are in
 *      program order, except that a signal handler's words may stand after a word
 *      whose tick is later by the length of the interruption.
 *  (3) A name or site is in the file before a word uses its number.
 *  (4) A cell (node, chunk, lane carry, value) has two copies, each with the commit
 *      number that wrote it. The truth is the copy with the largest number that is
 *      not above live.commit. A folder writes only the other copy.
 *  (5) A block of lane L with sequence s has been counted exactly when
 *      s < carry(L).next_seq. Block states follow the carry, never lead it.
 *  (6) Only the holder of the fold lock (fcntl write lock on byte 0) writes cells,
 *      live.commit, or moves a block out of SEALED. Readers share a read lock on it.
 *      Byte 1 is locked by readers that wait, byte 2 by folders that wait for readers.
 */
#ifndef SONDE_TRACE_FORMAT_H
#define SONDE_TRACE_FORMAT_H

#include <stdint.h>

#include "num/loghist.h"

/* Readers accept any minor of their major: minors only add block kinds, word tags
 * and fields in zeroed space. Another major is refused with E_VERSION. */
#define TRACE_MAGIC   0x31656c6966646e73ULL /* "sndfile1" */
#define CONTROL_MAGIC 0x316c727463646e73ULL /* "sndctrl1" */
enum { TRACE_MAJOR = 1, TRACE_MINOR = 0 };

enum {
    BLOCK_SIZE = 65536,
    EVENTS_OFFSET = 512,                             /* first word of an event block */
    EVENTS_WORDS = (BLOCK_SIZE - EVENTS_OFFSET) / 8, /* 8,128: four quarters of 2,032 */

    MAX_LANES = 1024,
    MAX_DEPTH = 240, /* deeper zones are counted, not timed */
    MAX_SITES = 32768,
    FIRST_SITE = 16, /* 0 none; 8–15 reserved for ours, whose tags are no word_tag */
    SITE_OTHER = 9,  /* "(other names)" */
    MAX_NODES = 4096,
    BEYOND_NODES = 64, /* of these, kept for the children of NODE_OTHER */
    ROOT_NODES = 32,   /* node i < 31 is the root of lane i; 31 of all others */
    NODE_STEP = 32,    /* durations between steps */
    NODE_OTHER = 33,   /* "(other paths)": beyond MAX_NODES. A child: those of one
                       * thread and phase, its site is root << 5 | phase */
    NODE_SPANS = 34,   /* root of spans, by site */
    NODE_LOSSES = 35,  /* count: durations without a bucket; total: values dropped */
    FIRST_NODE = 40,
    MAX_CHUNKS = 16384,
    MAX_VALUES = 2048,
    MAX_NAME = 1024, /* bytes of one string, cut with an ellipsis */

    SITES_PER_BLOCK = BLOCK_SIZE / 32,
    STRING_BLOCKS = 64,
    LANES_PER_BLOCK = BLOCK_SIZE / 8192,
    NODES_PER_BLOCK = BLOCK_SIZE / 512,
    CHUNKS_PER_BLOCK = BLOCK_SIZE / 1088,
    VALUES_PER_BLOCK = BLOCK_SIZE / 128,
    TABLE_PER_BLOCK = BLOCK_SIZE / 8,

    TABLE_DIR = 32, /* 32 × 8,192 blocks × 64 KiB = 16 GiB */
    SITES_DIR = MAX_SITES / SITES_PER_BLOCK,
    LANES_DIR = MAX_LANES / LANES_PER_BLOCK,
    NODES_DIR = MAX_NODES / NODES_PER_BLOCK,
    CHUNKS_DIR = (MAX_CHUNKS + CHUNKS_PER_BLOCK - 1) / CHUNKS_PER_BLOCK,
    VALUES_DIR = MAX_VALUES / VALUES_PER_BLOCK,
    MAX_BLOCKS = TABLE_DIR * TABLE_PER_BLOCK,
};

enum word_tag {
    TAG_PAD = 1,    /* filler at the end of a block */
    TAG_CONT = 2,   /* 48 bits that belong to the head before */
    TAG_VALUE = 3,  /* + name id (16) · value_kind (8); double as 2 × 32 bits */
    TAG_STEP = 4,   /* + step_kind (8) · samples or ago (40) */
    TAG_THREAD = 5, /* + tid: from here on the lane belongs to this thread */
    TAG_OP = 6,     /* + cpu ns, mem before/after/peak KiB, of the open zone */
    TAG_SPAN = 7,   /* + site (16) · span_kind (8) · id; active ticks; wall ticks */
    TAG_MARK = 8,   /* + name id */
    TAG_LOST = 9,   /* + number of events dropped here */
    TAG_FILTERED = 10, /* + number of zones shorter than min_zone_ns left out */
    FIRST_SITE_TAG = FIRST_SITE << 1,
};
/* SITE_OTHER must give tags that are no word_tag. */
_Static_assert(SITE_OTHER << 1 >= 16, "site tags start above the kinds");

enum value_kind { VALUE_ZONE = 0, VALUE_COUNTER = 1, VALUE_METRIC = 2 };
/* A step begins and ends the one before; or only ends; or what began was none after all;
 * or samples of the one that goes on. An end says instead of samples how long ago it was,
 * in 2^STEP_AGO_SHIFT ticks. */
enum step_kind { STEP_NEXT = 0, STEP_END = 1, STEP_CANCEL = 2, STEP_SAMPLES = 3 };
enum { STEP_KIND_SHIFT = 40, STEP_AGO_SHIFT = 8 };
#define STEP_SAMPLES_MASK ((1ULL << STEP_KIND_SHIFT) - 1)
enum span_kind { SPAN_BEGIN = 0, SPAN_SUSPEND = 1, SPAN_RESUME = 2, SPAN_END = 3 };

/* ---- Block table: one atomic word per block --------------------------------
 * bits 0–7 kind, 8–15 state (events only), 16–31 lane, 32–63 sequence. */
enum block_kind {
    BLOCK_NONE = 0, /* never used, or leaked by a kill */
    BLOCK_HEAD,
    BLOCK_LIVE,
    BLOCK_TABLE,
    BLOCK_SITES,
    BLOCK_STRINGS,
    BLOCK_LANES,
    BLOCK_NODES,
    BLOCK_CHUNKS,
    BLOCK_VALUES,
    BLOCK_EVENTS,
};
enum block_state {
    STATE_FREE = 0, /* zeroed, anybody may take it: CAS FREE → OPEN */
    STATE_OPEN,     /* the lane's thread writes into it */
    STATE_SEALED,   /* full (or left); the folder counts it */
    STATE_FOLDED,   /* counted; kept as timeline until its space is needed */
    STATE_CLEANING, /* being zeroed; killed here, the block is garbage to clean */
};
static inline uint64_t block_word(unsigned kind, unsigned state, unsigned lane,
                                  uint32_t seq)
{
    return (uint64_t)kind | (uint64_t)state << 8 | (uint64_t)lane << 16 |
           (uint64_t)seq << 32;
}
static inline unsigned block_kind(uint64_t w)
{
    return w & 0xff;
}
static inline unsigned block_state(uint64_t w)
{
    return w >> 8 & 0xff;
}
static inline unsigned block_lane(uint64_t w)
{
    return w >> 16 & 0xffff;
}
static inline uint32_t block_seq(uint64_t w)
{
    return (uint32_t)(w >> 32);
}

/* ---- Head: block 0, constant after creation but for the directories -------- */
struct clock_reading {
    uint64_t ticks, mono_raw_ns, mono_ns, real_ns;
    uint64_t error_ticks; /* ticks between the two reads around the clocks */
};

enum tick_source { TICKS_TSC = 1, TICKS_CNTVCT = 2, TICKS_CLOCK_NS = 3 };

struct trace_head {
    uint64_t magic;
    uint16_t major, minor;
    uint32_t block_size;
    uint32_t pid, ppid;
    uint64_t proc_start; /* field 22 of /proc/PID/stat: tells reused pids apart */
    uint32_t tick_source;
    uint32_t level;             /* enum sonde_level */
    uint64_t forked_from_ns;    /* start of the parent's file, 0: not forked */
    struct clock_reading start; /* taken at creation */
    uint8_t boot_id[16];
    char exe[128];          /* last part of /proc/self/exe, cut */
    char role[32];          /* "main", "worker" …; free */
    uint64_t event_cost_ps; /* of one event, measured here at creation; 0 unknown */
    uint64_t reserved[7];
    /* Directories: block numbers, 0 = not there yet. */
    uint32_t table[TABLE_DIR];
    uint32_t sites[SITES_DIR];
    uint32_t strings[STRING_BLOCKS];
    uint32_t lanes[LANES_DIR];
    uint32_t nodes[NODES_DIR];
    uint32_t chunks[CHUNKS_DIR];
    uint32_t values[VALUES_DIR];
};
_Static_assert(sizeof(struct trace_head) <= 4096, "the head is one page");

/* ---- Live page: block 1 ----------------------------------------------------- */
enum live_flag {
    LIVE_EXITED = 1,  /* the process said goodbye (exit handlers ran) */
    LIVE_DAMAGED = 2, /* a folder met something impossible */
    LIVE_COMPACTED = 4,
};
struct trace_live {
    /* Written by the supervisor and the process; read on the hot path. */
    uint32_t gate; /* SONDE_GATE_OFF = off, else on; first word of the page */
    uint32_t flags;
    uint32_t paused; /* by the program: the window does not open the gate then */
    uint32_t pad0[13];
    /* Allocation, by anybody. */
    uint32_t next_block;
    uint32_t site_count; /* sites published: ids FIRST_SITE … */
    uint64_t string_bytes;
    uint32_t lane_count;
    int32_t free_blocks; /* a hint: exact after each pass of a folder */
    /* Counts kept by the process. */
    uint64_t lost;        /* events dropped: no space, no lane */
    uint64_t lost_reason; /* bit set of enum lost_reason */
    uint64_t filtered;    /* zones below min_zone_ns */
    uint64_t names_lost;  /* sites beyond MAX_SITES or without string space */
    uint64_t steps;       /* sonde_step() calls, recorded or not */
    uint64_t last_ticks;  /* newest tick known at a slow path: a hint */
    uint64_t self_folds;  /* blocks a recording thread had to fold itself */
    uint64_t waits;       /* times a recording thread waited for the folder */
    uint64_t wait_ns;
    /* Time in which nothing was recorded (window, pause), kept by who moves the gate. */
    uint64_t shut_ticks; /* the gate has been shut since; 0: it is open */
    uint64_t unrecorded; /* ticks, of the times it was shut and opened again */
    uint64_t pad2[6];
    /* Written by the fold-lock holder. */
    uint64_t commit;     /* last complete commit */
    uint64_t fold_token; /* who wrote cells last: lets that folder keep its cache */
    uint64_t fold_order; /* counts folded blocks; orders recycling */
    uint32_t node_count, chunk_count, value_count, pad3;
};
_Static_assert(sizeof(struct trace_live) <= 4096, "the live area is one page");
enum lost_reason {
    LOST_DISK_FULL = 1,
    LOST_FILE_LIMIT = 2,
    LOST_BUDGET = 4,
    LOST_LANES = 8,
    LOST_LOSSY = 16,
    LOST_STALLED = 32,
    LOST_HOLE = 64,
    LOST_ADDRESS_SPACE = 128,
    LOST_PERMISSION = 256,
};

/* ---- Sites and strings ------------------------------------------------------
 * Strings are NUL-terminated; offset 0 is the empty string. Published by
 * live.site_count (release) after the entry and its strings are in place. */
enum site_flag { SITE_TAG = 1, SITE_PARAM = 2 }; /* name = key, tags = value */
struct site_entry {
    uint32_t name, file, component, category, tags; /* offsets into strings */
    int32_t line;
    uint16_t phase, flags;
    uint32_t reserved;
};
_Static_assert(sizeof(struct site_entry) == 32, "on-disk layout");

/* ---- Event block header ------------------------------------------------------ */
struct events_head {
    uint64_t base_ticks; /* full counter when the block was opened */
    uint32_t lane, seq;
    uint32_t crc; /* crc32c_words(), by the folder; valid if crc_set */
    uint32_t crc_set;
    uint64_t fold_order; /* live.fold_order when folded */
    uint64_t reserved[4];
};
_Static_assert(sizeof(struct events_head) <= EVENTS_OFFSET, "on-disk layout");

/* ---- Cells -------------------------------------------------------------------
 * seq[k] is the commit that wrote copy k; 0 = never. */
struct node_stats {
    uint64_t count, total, min, max;  /* ticks; min valid when count > 0 */
    uint64_t square_lo, square_hi;    /* sum of squares, 128 bits: exact */
    uint64_t first_ticks, last_ticks; /* begin of the first, end of the last */
    uint64_t truncated, unbalanced;   /* of count: cut by death, closed late */
    uint64_t suspended;               /* spans: ticks not active; zones: counted for a
                                       * child of NODE_OTHER instead */
    uint64_t begun;                   /* spans begun */
    uint64_t op_count, op_cpu_ns;     /* operations */
    uint32_t mem_before_kb, mem_after_kb, mem_peak_kb, pad;
    uint16_t chunk[LOGHIST_CHUNKS + 1]; /* chunk number + 1 by octave; 0 none; last 0 */
};
struct node_cell {
    uint16_t parent, site;
    uint32_t reserved;
    uint64_t seq[2];
    struct node_stats copy[2];
};
_Static_assert(sizeof(struct node_cell) <= 512, "128 nodes per block");

struct chunk_cell {
    uint64_t seq[2];
    uint64_t owner; /* node << 8 | octave */
    uint64_t reserved;
    uint64_t copy[2][LOGHIST_SUBS];
};
_Static_assert(sizeof(struct chunk_cell) <= 1088, "60 chunks per block");

struct value_stats {
    uint64_t count;
    double sum, min, max, last;
    uint64_t last_ticks;
};
struct value_cell {
    uint16_t node, name;
    uint32_t kind;
    uint64_t seq[2];
    struct value_stats copy[2];
};
_Static_assert(sizeof(struct value_cell) <= 128, "512 values per block");

struct lane_frame {
    uint64_t begin_ticks;
    uint16_t node, site;
    uint32_t flags;
};
struct lane_carry {
    uint32_t next_seq; /* first block not yet counted */
    uint32_t depth;    /* frames kept */
    uint32_t too_deep; /* open zones beyond MAX_DEPTH */
    uint32_t tid;      /* thread at this point */
    uint64_t last_ticks;
    uint64_t events;      /* non-zero words, CONT and PAD not counted */
    uint64_t orphan_ends; /* ends without a begin */
    uint64_t unbalanced;  /* zones closed because an outer one ended */
    uint64_t deep_zones;  /* zones counted but not timed */
    uint64_t last_step;   /* ticks of the last step, 0 none */
    uint64_t steps, samples;
    uint64_t holes;     /* zero words in counted blocks */
    uint64_t left_open; /* frames that death cut: kept behind depth, for the report */
    uint64_t filtered;
};
enum lane_state { LANE_FREE = 0, LANE_OWNED = 1, LANE_PARKED = 2 };
struct lane_cell {
    /* Written by the process. */
    uint32_t tid, state;
    char name[16];
    uint64_t reserved[5];
    /* Written by the folder. */
    uint64_t seq[2];
    struct lane_carry carry[2];
    uint64_t pad[2];
    struct lane_frame frames[2][MAX_DEPTH];
};
_Static_assert(sizeof(struct lane_cell) <= 8192, "8 lanes per block");

/* ---- Control file: one per run ---------------------------------------------- */
enum {
    CONTROL_CLOCK_OFFSET = 4096,
    CONTROL_CLOCK_MAX = 8192,
    CONTROL_SIZE = CONTROL_CLOCK_OFFSET + CONTROL_CLOCK_MAX * 48,
};
enum control_flag { CONTROL_LOSSY = 1, CONTROL_SUPERVISED = 2 };
struct control {
    uint64_t magic;
    uint16_t major, minor;
    uint32_t flags;
    char run_id[32];
    uint32_t level;
    uint32_t gate; /* what new processes start with: 0 on, SONDE_GATE_OFF off */
    uint64_t min_zone_ticks;
    uint64_t first_step, last_step; /* window of steps, 0 none */
    uint64_t max_blocks;            /* budget of the run */
    uint64_t used_blocks;           /* atomic */
    uint64_t processes;             /* files created so far (atomic) */
    uint64_t refused;               /* processes that could not make a file (atomic) */
    uint64_t refused_reason;        /* enum lost_reason bits */
    uint32_t drainer_pid, pad;
    uint64_t drainer_beat;    /* ticks of the drainer's last pass */
    uint64_t clock_count;     /* readings published (release) */
    uint64_t capture_refused; /* files of tables processes could not make (atomic) */
    uint64_t clock_done;      /* 1: no event lies beyond the readings (release) */
    uint64_t reserved[14];
};
_Static_assert(sizeof(struct control) <= CONTROL_CLOCK_OFFSET, "control page");
struct clock_entry {
    struct clock_reading reading;
    uint64_t valid; /* 1 when complete: two writers may append */
};
_Static_assert(sizeof(struct clock_entry) == 48, "on-disk layout");

#endif
