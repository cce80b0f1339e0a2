/* layers.c: what <sonde/tables.h> offers to layers above the recorder.
 *
 * A struct tables lives in memory that a forked child finds zeroed, so that a child that
 * still holds the pointer gets no rows instead of its parent's.
 */
#include <sonde/tables.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "record/copies.h"
#include "trace/tables.h"

struct sonde_tables {
    struct tables tables;
};

static struct sonde_tables *new_wiped(void)
{
    void *p = mmap(NULL, sizeof(struct sonde_tables), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    /* Without it a child would write into its parent's file. */
    if (madvise(p, sizeof(struct sonde_tables), MADV_WIPEONFORK) != 0) {
        (void)munmap(p, sizeof(struct sonde_tables));
        return NULL;
    }
    return p;
}

static int create(struct sonde_tables *t, const char *kind,
                  const struct sonde_table *given, unsigned count)
{
    struct tables_spec specs[TABLES_MAX];
    if (count >= TABLES_MAX)
        return -EINVAL;
    for (unsigned i = 0; i < count; i++)
        specs[i] = (struct tables_spec){ given[i].name, given[i].row_size,
                                         given[i].max_rows };
    return tables_create(recorder.dir, kind, recorder.control, specs, count,
                         &t->tables);
}

struct sonde_tables *layer_tables_open(const char *kind,
                                       const struct sonde_table *given, unsigned count)
{
    sigset_t old;
    signals_block(&old);
    struct sonde_tables *t = recorder_ensure() ? new_wiped() : NULL;
    if (t && create(t, kind, given, count) < 0) {
        (void)munmap(t, sizeof *t);
        t = NULL;
    }
    signals_restore(&old);
    return t;
}

void *layer_tables_append(struct sonde_tables *t, unsigned table)
{
    uint32_t index;
    return t ? tables_append(&t->tables, table, &index) : NULL;
}

void *layer_tables_row(struct sonde_tables *t, unsigned table, uint32_t index)
{
    return t ? tables_row(&t->tables, table, index) : NULL;
}

uint32_t layer_tables_text(struct sonde_tables *t, const char *text)
{
    return t && text ? tables_text(&t->tables, text, strlen(text)) : 0;
}

void layer_role(const char *role)
{
    sigset_t old;
    signals_block(&old);
    if (recorder_ensure()) {
        struct trace_head *head = tracefile_head(&recorder.file);
        (void)snprintf(head->role, sizeof head->role, "%s", role);
    }
    signals_restore(&old);
}

/* ---- The public side: the recorder may live in an older copy ------------------------ */

static const struct table *newer(void)
{
    const struct table *t = copies_table();
    return t->size >= offsetof(struct table, role) + sizeof t->role ? t : NULL;
}

struct sonde_tables *sonde_tables_open(const char *kind,
                                       const struct sonde_table *given, unsigned count)
{
    const struct table *t = newer();
    return t ? t->tables_open(kind, given, count) : NULL;
}

void *sonde_tables_append(struct sonde_tables *tables, unsigned table)
{
    return tables ? copies_table()->tables_append(tables, table) : NULL;
}

void *sonde_tables_row(struct sonde_tables *tables, unsigned table, uint32_t index)
{
    return tables ? copies_table()->tables_row(tables, table, index) : NULL;
}

uint32_t sonde_tables_text(struct sonde_tables *tables, const char *text)
{
    return tables ? copies_table()->tables_text(tables, text) : 0;
}

void sonde_process_role(const char *role)
{
    const struct table *t = newer();
    if (t && role)
        t->role(role);
}

uint64_t sonde_ticks(void)
{
    return ticks_now();
}

uint64_t sonde_steps(void)
{
    return copies_table()->steps();
}
