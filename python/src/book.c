/* book.c: the file of tables about data loaders. See book.h. */
#include "book.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct book none; /* life 0, where memory cannot be had */
static struct book *here = &none;

static const struct sonde_table tables[] = {
    { "loaders", sizeof(struct loader_row), LOADER_MAX_LOADERS },
    { "epochs", sizeof(struct loader_epoch_row), LOADER_MAX_EPOCHS },
    { "workers", sizeof(struct loader_worker_row), LOADER_MAX_WORKERS },
    { "self", sizeof(struct loader_self_row), 1 },
    { "sums", sizeof(struct loader_sum_row), LOADER_MAX_SUMS },
    { "batches", sizeof(struct loader_batch_row), LOADER_RING_BATCHES },
    { "made", sizeof(struct loader_made_row), LOADER_RING_MADE },
    { "samples", sizeof(struct loader_sample_row), LOADER_RING_SAMPLES },
    { "slowest", sizeof(struct loader_slow_row), LOADER_SLOWEST_KEPT },
};
_Static_assert(sizeof tables / sizeof tables[0] == LOADER_TABLE_END - 1, "all tables");

struct book *book(void)
{
    return here;
}

static bool map_book(void)
{
    void *p = mmap(NULL, sizeof(struct book), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    if (madvise(p, sizeof(struct book), MADV_WIPEONFORK) != 0) {
        (void)munmap(p, sizeof(struct book));
        return false; /* a child could not be told from its parent */
    }
    here = p;
    return true;
}

static bool is_current(const struct book *b, const char *directory)
{
    return b->life && strncmp(b->directory, directory, sizeof b->directory - 1) == 0;
}

uint64_t book_open(void)
{
    const char *directory = sonde_session_active() ? sonde_session_directory() : "";
    if (is_current(here, directory))
        return here->life;
    if (!*directory || (here == &none && !map_book()))
        return 0;
    struct book *b = here;
    /* A full disk is asked again, but not at every batch. */
    const uint64_t now = sonde_ticks();
    if (b->tried && now - b->tried < (uint64_t)1 << 33)
        return 0;
    memset(b, 0, sizeof *b);
    b->tables = sonde_tables_open(LOADER_KIND, tables, LOADER_TABLE_END - 1);
    b->tried = now;
    if (b->tables) {
        strncpy(b->directory, directory, sizeof b->directory - 1);
        b->tried = 0;
        b->life = now ^ (uint64_t)getpid() << 40;
    }
    return b->life;
}

/* Against the system's clock, from the first call on. */
double book_ticks_per_ns(void)
{
    static uint64_t first_ticks, first_ns;
    static double rate;
    if (rate > 0)
        return rate;
    struct timespec t = { 0, 0 };
    (void)clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    const uint64_t ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    const uint64_t ticks = sonde_ticks();
    if (!first_ns) {
        first_ns = ns;
        first_ticks = ticks;
    }
    const double passed = (double)(ns - first_ns);
    const double now = passed > 0 ? (double)(ticks - first_ticks) / passed : 0;
    if (passed > 50e6)
        rate = now;
    return passed > 1e6 ? now : 0;
}

uint32_t book_text(const char *text)
{
    return sonde_tables_text(here->tables, text);
}

/* ---- Rows --------------------------------------------------------------------------- */

static enum loader_unit unit_of(enum loader_sum what)
{
    switch (what) {
    case LOADER_QUEUED:
    case LOADER_IN_FLIGHT:
    case LOADER_BATCH_BYTES:
    case LOADER_BATCH_SAMPLES:
    case LOADER_ROWS:
    case LOADER_CELLS:
    case LOADER_FILLED:
    case LOADER_SAMPLE_BYTES:
        return LOADER_NUMBER;
    case LOADER_SAMPLE_CPU:
    case LOADER_MAKE_CPU:
        return LOADER_NS;
    default:
        return LOADER_TICKS;
    }
}

/* Equal names get equal texts only by chance: they are compared as such. */
static struct loader_sum_row *find_sum(uint32_t loader, enum loader_sum what,
                                       uint32_t place)
{
    for (uint32_t i = 0; i < here->sums; i++) {
        struct loader_sum_row *row = sonde_tables_row(here->tables, LOADER_SUMS, i);
        if (row && row->key == what && row->loader == loader && row->place == place)
            return row;
    }
    return NULL;
}

struct loader_sum_row *book_sum(uint32_t loader, enum loader_sum what, const char *name,
                                uint32_t place)
{
    struct loader_sum_row *row = find_sum(loader, what, place);
    if (row || !(row = sonde_tables_append(here->tables, LOADER_SUMS)))
        return row;
    here->sums++;
    row->loader = loader;
    row->unit = unit_of(what);
    row->name = name ? book_text(name) : 0;
    row->place = place;
    row->every = 1;
    publish(&row->key, what);
    return row;
}

struct loader_row *book_loader(uint32_t *ret_number)
{
    struct loader_row *row = sonde_tables_append(here->tables, LOADER_LOADERS);
    if (row)
        *ret_number = here->loaders++;
    return row;
}

struct loader_epoch_row *book_epoch(void)
{
    return sonde_tables_append(here->tables, LOADER_EPOCHS);
}

struct loader_worker_row *book_worker(void)
{
    return sonde_tables_append(here->tables, LOADER_WORKERS);
}

struct loader_self_row *book_self(void)
{
    return sonde_tables_append(here->tables, LOADER_SELF);
}

/* ---- Rings -------------------------------------------------------------------------- */

/* Every row begins with its key. A ring that could not grow turns in what it has. */
static void *ring_row(enum loader_table table, uint64_t *taken, uint32_t size,
                      uint64_t *ret_key)
{
    const uint64_t number = *taken;
    uint64_t *row = number < size ? sonde_tables_append(here->tables, table)
                                  : sonde_tables_row(here->tables, table,
                                                     (uint32_t)(number % size));
    if (!row)
        return NULL;
    publish(row, 0);
    *taken = number + 1;
    *ret_key = number + 1;
    return row;
}

struct loader_batch_row *book_batch(uint64_t *ret_key)
{
    return ring_row(LOADER_BATCHES, &here->batches, LOADER_RING_BATCHES, ret_key);
}

struct loader_made_row *book_made(uint64_t *ret_key)
{
    return ring_row(LOADER_MADE, &here->made, LOADER_RING_MADE, ret_key);
}

struct loader_sample_row *book_sample(uint64_t *ret_key)
{
    return ring_row(LOADER_SAMPLES, &here->samples, LOADER_RING_SAMPLES, ret_key);
}

/* ---- The slowest -------------------------------------------------------------------- */

static unsigned least_slow(const struct book *b)
{
    unsigned least = 0;
    for (unsigned i = 1; i < b->slow_count; i++)
        if (b->slow[i]->key < b->slow[least]->key)
            least = i;
    return least;
}

struct loader_slow_row *book_slow(uint64_t ticks)
{
    struct book *b = here;
    if (b->slow_count < LOADER_SLOWEST_KEPT) {
        struct loader_slow_row *row = sonde_tables_append(b->tables, LOADER_SLOWEST);
        if (row)
            b->slow[b->slow_count++] = row;
        return row;
    }
    if (ticks <= b->slow_least)
        return NULL;
    struct loader_slow_row *row = b->slow[least_slow(b)];
    publish(&row->key, 0);
    return row;
}

void book_slow_done(void)
{
    if (here->slow_count == LOADER_SLOWEST_KEPT)
        here->slow_least = here->slow[least_slow(here)]->key;
}
