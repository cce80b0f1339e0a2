/* book.h: what this process writes down about data loaders (trace/loader_rows.h).
 *
 * One file of tables per process and session, made when the first loader is iterated.
 * Objects that hold rows remember the life they were made in: a forked child, and a new
 * session, has another, and leaves rows of the old one alone.
 */
#ifndef SONDE_PYTHON_BOOK_H
#define SONDE_PYTHON_BOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <sonde/tables.h>

#include "trace/loader_rows.h"

/* In memory that a forked child finds zeroed. */
struct book {
    uint64_t life; /* 0: nothing to write into */
    struct sonde_tables *tables;
    uint64_t tried; /* ticks of the last attempt that failed */
    uint32_t loaders, epochs, workers, sums;
    uint64_t batches, made, samples; /* ever taken of the rings */
    struct loader_slow_row *slow[LOADER_SLOWEST_KEPT];
    unsigned slow_count;
    uint64_t slow_least; /* ticks: a sample must take longer to be kept */
    char directory[900];
};

/* Makes the file unless it is there. 0 when there is none to be had, else its life. */
uint64_t book_open(void);
struct book *book(void); /* never NULL */

/* Of the run's clock; 0 as long as it is not known (the first millisecond). */
double book_ticks_per_ns(void);

/* The row of a sum, made when it is first asked for; NULL when there is no room. */
struct loader_sum_row *book_sum(uint32_t loader, enum loader_sum what, const char *name,
                                uint32_t place);
struct loader_row *book_loader(uint32_t *ret_number);
struct loader_epoch_row *book_epoch(void);
struct loader_worker_row *book_worker(void);
struct loader_self_row *book_self(void);
uint32_t book_text(const char *text);
/* The next row of a ring, taken back; *ret_key is to be stored last. */
struct loader_batch_row *book_batch(uint64_t *ret_key);
struct loader_made_row *book_made(uint64_t *ret_key);
struct loader_sample_row *book_sample(uint64_t *ret_key);
/* A row for a sample that took so long, taken back; NULL: others took longer. */
struct loader_slow_row *book_slow(uint64_t ticks);
/* After the key of such a row was stored. */
void book_slow_done(void);

static inline void publish(uint64_t *key, uint64_t value)
{
    __atomic_store_n(key, value, __ATOMIC_RELEASE);
}

/* One writer at a time: the GIL is held. Others only read. */
static inline void put64(uint64_t *field, uint64_t value)
{
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static inline void sum_add(struct loader_sum_row *row, uint64_t value)
{
    if (!row)
        return;
    if (!row->count || value < row->min)
        put64(&row->min, value);
    if (value > row->max)
        put64(&row->max, value);
    const unsigned bucket = loader_bucket(value);
    __atomic_store_n(&row->bucket[bucket], row->bucket[bucket] + 1, __ATOMIC_RELAXED);
    row->sum += (double)value;
    row->squares += (double)value * (double)value;
    put64(&row->count, row->count + 1);
}

static inline uint64_t thread_cpu_ns(void)
{
    struct timespec t = { 0, 0 };
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
