/* tables.c: writing a file of tables.
 *
 * The file is as long as what is in it: blocks are taken one by one, each with its disk
 * space reserved before anybody touches it. A block belongs to a table from the moment
 * its word in block 1 says so; a writer killed before that leaks a block.
 *
 * Captures may use half of what the run may use, so that events are never refused
 * because of them. The budget counts in blocks of the trace, four of ours each.
 */
#include "trace/tables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/clock.h"
#include "trace/file.h"
#include "trace/space.h"

enum { FIRST_CHUNK = 2, PER_BUDGET = BLOCK_SIZE / TABLES_BLOCK };

static void take_lock(struct tables *t)
{
    while (__atomic_exchange_n(&t->lock, 1, __ATOMIC_ACQUIRE))
        ;
}

static void give_lock(struct tables *t)
{
    __atomic_store_n(&t->lock, 0, __ATOMIC_RELEASE);
}

/* ---- Blocks ------------------------------------------------------------------------ */

static uint32_t *owners(const struct tables *t)
{
    return (uint32_t *)(t->base + TABLES_BLOCK);
}

static bool budget_take(struct control *c)
{
    if (!c)
        return true;
    if (__atomic_load_n(&c->used_blocks, __ATOMIC_RELAXED) >= c->max_blocks / 2)
        return false;
    return control_take(c, 1);
}

/* The next block of the file, with space behind it. The lock is held. */
static int take_block(struct tables *t, uint32_t *ret_block)
{
    struct tables_head *h = tables_head(t);
    const uint32_t block = h->block_count;
    if (block >= t->cap_blocks)
        return -EFBIG;
    if (block % PER_BUDGET == 0 && !budget_take(t->control))
        return -EDQUOT;
    int rc = ownfile_check(&t->fd, &t->id, t->path);
    if (rc == 0) {
        rc = space_reserve(t->fd, (uint64_t)block * TABLES_BLOCK, TABLES_BLOCK);
        ownfile_park(&t->fd); /* only one that is ours: it was just checked */
    }
    if (rc < 0) {
        if (block % PER_BUDGET == 0 && t->control)
            control_give(t->control, 1);
        return rc;
    }
    __atomic_store_n(&h->block_count, block + 1, __ATOMIC_RELEASE);
    *ret_block = block;
    return 0;
}

static uint32_t chunk_block(const struct tables *t, unsigned table, uint32_t chunk)
{
    return chunk < TABLES_CHUNKS
               ? __atomic_load_n(&t->block_of[table][chunk], __ATOMIC_ACQUIRE)
               : 0;
}

/* Makes the chunk exist. The lock is held. */
static int need_chunk(struct tables *t, unsigned table, uint32_t chunk)
{
    if (chunk >= TABLES_CHUNKS)
        return -EFBIG;
    if (chunk_block(t, table, chunk))
        return 0;
    uint32_t block;
    int rc = take_block(t, &block);
    if (rc < 0)
        return rc;
    __atomic_store_n(&owners(t)[block], tables_owner(table, chunk), __ATOMIC_RELEASE);
    __atomic_store_n(&t->block_of[table][chunk], (uint16_t)block, __ATOMIC_RELEASE);
    return 0;
}

/* ---- Rows -------------------------------------------------------------------------- */

static void refuse(struct tables *t, unsigned table, int rc)
{
    struct tables_head *h = tables_head(t);
    unsigned reason = rc == -ENOSPC   ? LOST_DISK_FULL
                      : rc == -EFBIG  ? LOST_FILE_LIMIT
                      : rc == -EDQUOT ? LOST_BUDGET
                                      : LOST_STALLED;
    __atomic_fetch_add(&h->table[table].refused, 1, __ATOMIC_RELAXED);
    __atomic_fetch_or(&h->lost_reason, reason, __ATOMIC_RELAXED);
}

void *tables_row(const struct tables *t, unsigned table, uint32_t index)
{
    if (!t->base || table >= t->table_count)
        return NULL;
    const uint32_t per = t->rows_per_chunk[table];
    const uint32_t block = chunk_block(t, table, index / per);
    return block ? t->base + (size_t)block * TABLES_BLOCK +
                       (size_t)(index % per) * t->row_size[table]
                 : NULL;
}

static void *append(struct tables *t, unsigned table, uint32_t rows,
                    uint32_t *ret_index)
{
    if (!t->base || table == TABLES_TEXT || table >= t->table_count)
        return NULL;
    struct tables_entry *e = &tables_head(t)->table[table];
    take_lock(t);
    const uint64_t index = e->count;
    int rc = index + rows <= e->max_rows
                 ? need_chunk(t, table, (uint32_t)index / t->rows_per_chunk[table])
                 : -EFBIG;
    if (rc == 0)
        __atomic_store_n(&e->count, index + rows, __ATOMIC_RELEASE);
    else
        refuse(t, table, rc);
    give_lock(t);
    if (rc < 0)
        return NULL;
    *ret_index = (uint32_t)index;
    return tables_row(t, table, (uint32_t)index);
}

void *tables_append(struct tables *t, unsigned table, uint32_t *ret_index)
{
    return append(t, table, 1, ret_index);
}

void *tables_append_block(struct tables *t, unsigned table, uint32_t *ret_index,
                          uint32_t *ret_rows)
{
    *ret_rows = table < t->table_count ? t->rows_per_chunk[table] : 0;
    return append(t, table, *ret_rows, ret_index);
}

/* ---- Text -------------------------------------------------------------------------- */

uint32_t tables_text(struct tables *t, const char *text, size_t len)
{
    if (!t->base || len == 0)
        return 0;
    if (len > TABLES_TEXT_LONGEST)
        len = TABLES_TEXT_LONGEST;
    struct tables_entry *e = &tables_head(t)->table[TABLES_TEXT];
    take_lock(t);
    uint64_t at = e->count;
    if (at / TABLES_BLOCK != (at + len) / TABLES_BLOCK)
        at = (at + len) / TABLES_BLOCK * TABLES_BLOCK; /* none across blocks */
    int rc = at + len < e->max_rows
                 ? need_chunk(t, TABLES_TEXT, (uint32_t)(at / TABLES_BLOCK))
                 : -EFBIG;
    if (rc == 0) {
        memcpy(tables_row(t, TABLES_TEXT, (uint32_t)at), text, len);
        __atomic_store_n(&e->count, at + len + 1, __ATOMIC_RELEASE);
    } else {
        refuse(t, TABLES_TEXT, rc);
    }
    give_lock(t);
    return rc == 0 ? (uint32_t)at : 0;
}

const char *tables_text_at(const struct tables *t, uint32_t place)
{
    const char *p = place ? tables_row(t, TABLES_TEXT, place) : NULL;
    return p ? p : "";
}

/* ---- Create, close ----------------------------------------------------------------- */

static int map_file(struct tables *t)
{
    int rc = space_reserve(t->fd, 0, (uint64_t)FIRST_CHUNK * TABLES_BLOCK);
    if (rc < 0)
        return rc;
    for (uint32_t blocks = TABLES_BLOCKS; blocks >= 16; blocks /= 2) {
        void *p = mmap(NULL, (size_t)blocks * TABLES_BLOCK, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE, t->fd, 0);
        if (p == MAP_FAILED)
            continue; /* an address-space limit: be content with less */
        t->base = p;
        t->cap_blocks = blocks;
        return 0;
    }
    return -ENOMEM;
}

static void fill_table(struct tables *t, const struct tables_spec *spec)
{
    const unsigned i = t->table_count++;
    struct tables_entry *e = &tables_head(t)->table[i];
    snprintf(e->name, sizeof e->name, "%s", spec->name);
    e->row_size = t->row_size[i] = spec->row_size;
    e->max_rows = spec->max_rows;
    t->rows_per_chunk[i] = TABLES_BLOCK / spec->row_size;
}

static void fill_head(struct tables *t, const char *kind,
                      const struct tables_spec *specs, unsigned count,
                      const struct clock_reading *now)
{
    static const struct tables_spec text = { "text", 1, TABLES_CHUNKS * TABLES_BLOCK };
    struct tables_head *h = tables_head(t);
    h->major = TABLES_MAJOR;
    h->minor = TABLES_MINOR;
    h->block_size = TABLES_BLOCK;
    snprintf(h->kind, sizeof h->kind, "%s", kind);
    h->pid = (uint32_t)getpid();
    h->ppid = (uint32_t)getppid();
    h->proc_start = process_start_ticks(h->pid);
    (void)boot_id_read(h->boot_id);
    h->start = *now;
    h->block_count = FIRST_CHUNK;
    ownfile_exe(h->exe, sizeof h->exe);
    fill_table(t, &text);
    h->table[TABLES_TEXT].count = 1; /* place 0 is no text */
    for (unsigned i = 0; i < count; i++)
        fill_table(t, &specs[i]);
    h->table_count = t->table_count;
    __atomic_store_n(&h->magic, TABLES_MAGIC, __ATOMIC_RELEASE);
}

int tables_create(const char *dir, const char *kind, struct control *control,
                  const struct tables_spec *specs, unsigned count, struct tables *t)
{
    memset(t, 0, sizeof *t);
    t->fd = -1;
    t->control = control;
    if (count >= TABLES_MAX)
        return -EINVAL;
    if (!budget_take(control))
        return -EDQUOT;
    struct clock_reading now;
    clock_read(&now);
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%s-", kind);
    int rc = ownfile_create(dir, prefix, now.real_ns, ".tables", t->path,
                            sizeof t->path, &t->fd, &t->id);
    if (rc == 0) {
        rc = map_file(t);
        if (rc == 0) {
            fill_head(t, kind, specs, count, &now);
            ownfile_park(&t->fd);
            return 0;
        }
        (void)unlink(t->path);
    }
    tables_close(t);
    if (control)
        control_give(control, 1);
    return rc;
}

void tables_close(struct tables *t)
{
    if (t->base)
        (void)munmap(t->base, (size_t)t->cap_blocks * TABLES_BLOCK);
    t->base = NULL;
    ownfile_close(&t->fd, &t->id);
}
