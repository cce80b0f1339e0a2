/* tables.h: a file of tables, mapped by the one process that writes it.
 *
 * Events are not all there is to keep: monitors, allocations, files read, stacks. Each
 * capture keeps what it knows in a file of its own in the run directory,
 * <kind>-<start>-<pid>-<rand>.tables, as rows of fixed size in a few named tables. Like
 * the trace it is valid at every instant and nobody has to close it: what is in a row
 * when its writer is killed is what the report will say.
 *
 *     block 0    struct tables_head
 *     block 1    uint32_t owner[]: which chunk of which table each block is
 *     block 2 …  chunks: rows one after the other, as many as fit, none across blocks
 *
 * Rules for writers
 *  (1) A row is zeroed when you get it. Its first 8 bytes are its key: stored last, with
 *      release, and non-zero; rows without a key do not exist for readers.
 *  (2) After that, change fields only by aligned stores of at most 8 bytes. What belongs
 *      together but is wider needs an order of stores that is right at every instant.
 *  (3) New fields are added at the end of a row: readers take the shorter of the two.
 *  (4) The mapping is shared: the child of a fork must not touch it. Make the pointer
 *      to your struct tables live in memory marked MADV_WIPEONFORK, or compare pids.
 *
 * Appending takes a spin lock for one instant in a few hundred rows; block signals
 * around it when handlers append too. No allocation, no libc locks.
 */
#ifndef SONDE_TRACE_TABLES_H
#define SONDE_TRACE_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/control.h"
#include "trace/ownfile.h"

#define TABLES_MAGIC 0x316c626174646e73ULL /* "sndtabl1" */

enum {
    TABLES_MAJOR = 1,
    TABLES_MINOR = 0,
    TABLES_BLOCK = 16384,
    TABLES_BLOCKS = TABLES_BLOCK / 4, /* as many as block 1 has room for: 64 MiB */
    TABLES_MAX = 12,                  /* tables in a file, table 0 is the text */
    TABLES_CHUNKS = 1024,             /* blocks of one table */
    TABLES_TEXT = 0,
    TABLES_TEXT_LONGEST = 4096, /* one text, cut beyond */
};

struct tables_entry {
    char name[24];
    uint32_t row_size; /* a multiple of 8; 1 for the text */
    uint32_t max_rows;
    uint64_t count;   /* rows taken; of the text, bytes */
    uint64_t refused; /* rows there was no room for */
};

struct tables_head {
    uint64_t magic; /* last: before, it is no file of tables */
    uint16_t major, minor;
    uint32_t block_size;
    char kind[16];
    uint32_t pid, ppid;
    uint64_t proc_start;
    uint8_t boot_id[16];
    struct clock_reading start;
    uint32_t block_count; /* blocks taken, atomic */
    uint32_t table_count;
    uint32_t lost_reason; /* bits of enum lost_reason: why rows were refused */
    uint32_t pad;
    char exe[128];
    uint64_t reserved[32];
    struct tables_entry table[TABLES_MAX];
};
_Static_assert(sizeof(struct tables_head) <= TABLES_BLOCK, "one block");

/* owner[block]: 0 nobody's, else this. */
static inline uint32_t tables_owner(uint32_t table, uint32_t chunk)
{
    return (table + 1) | chunk << 8;
}

struct tables_spec {
    const char *name;
    uint32_t row_size;
    uint32_t max_rows;
};

struct tables {
    uint8_t *base; /* NULL: no file */
    uint32_t cap_blocks;
    int fd;
    struct ownfile_id id;
    struct control *control; /* may be NULL: no budget */
    uint32_t lock;
    uint32_t table_count;
    uint32_t rows_per_chunk[TABLES_MAX];
    uint32_t row_size[TABLES_MAX];
    uint16_t block_of[TABLES_MAX][TABLES_CHUNKS]; /* 0: not there yet; atomic */
    char path[1024];
};

/* Creates DIR/<kind>-….tables. specs[0] becomes table 1, and so on: table 0 is the
 * text. −EDQUOT: the run's budget is used up; −ENOSPC, −EFBIG, −EACCES …: as they say.
 * On failure nothing is left behind and ret_tables->base is NULL. */
int tables_create(const char *dir, const char *kind, struct control *control,
                  const struct tables_spec *specs, unsigned count,
                  struct tables *ret_tables);
/* Unmaps. The file stays. */
void tables_close(struct tables *tables);

/* A fresh zeroed row, or NULL when there is no room (counted). Any thread. */
void *tables_append(struct tables *tables, unsigned table, uint32_t *ret_index);
/* All rows of a fresh block at once, for a writer that fills them by itself; a table
 * that is written like this is written only like this. */
void *tables_append_block(struct tables *tables, unsigned table, uint32_t *ret_index,
                          uint32_t *ret_rows);
/* A row that was appended; NULL for others. */
void *tables_row(const struct tables *tables, unsigned table, uint32_t index);
/* Keeps a text, cut to TABLES_TEXT_LONGEST bytes; its place, 0 when there is no room or
 * it is empty. Does not look for equal ones. */
uint32_t tables_text(struct tables *tables, const char *text, size_t len);
/* The text at a place tables_text() gave. */
const char *tables_text_at(const struct tables *tables, uint32_t place);

static inline struct tables_head *tables_head(const struct tables *t)
{
    return (struct tables_head *)t->base;
}

/* Calls `edit` for every text of a file that nobody writes any more (tableredact.c),
 * which changes it in place, shorter with zeros behind, and says whether it did. How many
 * were changed, or −errno. */
typedef bool text_edit_fn(void *arg, char *text, size_t len);
int tables_edit_texts(const char *path, text_edit_fn *edit, void *arg);
/* Takes secrets out of them. */
int tables_redact(const char *path);
/* An edit: secrets of one text. */
text_edit_fn text_redact;

/* ---- Reading (tablereader.c) ------------------------------------------------------
 *
 * Hostile input: whatever is in the file, these stay inside it. The file is read once
 * into memory; a live one gives the state of that moment, row by row. */
struct tablefile;

int tablefile_open(const char *path, struct tablefile **ret_file);
/* The same from memory, which is copied. */
int tablefile_parse(const void *bytes, size_t len, struct tablefile **ret_file);
void tablefile_free(struct tablefile *file);
const struct tables_head *tablefile_head(const struct tablefile *file);
/* The number of a table, −1 when the file has none of that name. */
int tablefile_find(const struct tablefile *file, const char *name);
/* Rows, with or without a key. */
uint32_t tablefile_count(const struct tablefile *file, int table);
/* Copies a row, cut or filled with zeros to `size`; false for rows that do not exist. */
bool tablefile_get(const struct tablefile *file, int table, uint32_t index,
                   void *ret_row, size_t size);
/* Never NULL; "" for a place that is none. Borrowed from the file. */
const char *tablefile_text(const struct tablefile *file, uint32_t place);
/* Whether `name` is that of a file of tables of this kind (NULL: of any). */
bool tablefile_is_name(const char *name, const char *kind);

#endif
