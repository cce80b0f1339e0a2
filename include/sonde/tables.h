/* tables.h: for layers above the recorder that keep more than zones.
 *
 * A layer that instruments a library (the Python package does torch's data loaders)
 * knows things that are no events: settings, statistics, the slowest of many. It keeps
 * them as rows of fixed size in a file of tables of its own in the run directory,
 * mapped and valid at every instant: a row is what its fields say when the process is
 * killed. The reading side finds the file by its kind.
 *
 *     static const struct sonde_table what[] = { { "loaders", sizeof(struct row), 64 } };
 *     struct sonde_tables *t = sonde_tables_open("loader", what, 1);
 *     struct row *row = sonde_tables_append(t, 1);
 *     if (row) {
 *         row->name = sonde_tables_text(t, "train");
 *         __atomic_store_n(&row->key, 1, __ATOMIC_RELEASE);
 *     }
 *
 * Rules: a row is zeroed when you get it; its first 8 bytes are its key, stored last and
 * never 0; afterwards change fields by aligned stores of at most 8 bytes. Take a row back
 * by storing 0 into its key.
 *
 * Every function takes NULL for the tables and does nothing then. In the child of a
 * fork, tables of the parent give nothing more; rows they gave before must not be
 * touched there: they are the parent's.
 */
#ifndef SONDE_TABLES_H
#define SONDE_TABLES_H

#include <sonde/sonde.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sonde_table {
    const char *name;
    uint32_t row_size; /* a multiple of 8 */
    uint32_t max_rows; /* further rows are refused, and counted */
};
struct sonde_tables;

/* A new file of this kind in the run of this process. NULL when nothing is recorded, the
 * run's budget is used up or the file cannot be made. The first of `tables` has number
 * 1; at most 11. Nobody needs to close it; it stays for the life of the process. */
SONDE_API struct sonde_tables *sonde_tables_open(const char *kind,
                                                 const struct sonde_table *tables,
                                                 unsigned count);
/* A new row, or NULL. Any thread; not in signal handlers. */
SONDE_API void *sonde_tables_append(struct sonde_tables *tables, unsigned table);
/* A row that was appended before, counted from 0. */
SONDE_API void *sonde_tables_row(struct sonde_tables *tables, unsigned table,
                                 uint32_t index);
/* Keeps a text; its place, for a field of a row. 0: no room, or nothing to keep. Does not
 * look for equal ones. */
SONDE_API uint32_t sonde_tables_text(struct sonde_tables *tables, const char *text);

/* The clock of all traces and tables of a run: ticks. */
SONDE_API uint64_t sonde_ticks(void);
/* Steps begun in this process so far. */
SONDE_API uint64_t sonde_steps(void);
/* As sonde_step_end(), by who learns late that the step was over: it ended then. */
SONDE_API void sonde_step_ended(uint64_t ticks);
/* What this process is, in reports: "loader worker 3". At most 31 bytes are kept. */
SONDE_API void sonde_process_role(const char *role);

#ifdef __cplusplus
}
#endif

#endif
