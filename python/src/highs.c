/* highs.c: the most memory that was held between one batch and the next fetch.
 *
 * What a step needs goes with what is in its batch. With the bytes of the batch (batch.c)
 * it tells which batch would be one too many (src/analyse/fits.c). Two sources:
 *
 *     the heap    libsonde-preload.so keeps the highest number of live bytes since it was
 *                 last asked; nothing is known without it
 *     the card    torch's allocator keeps its peak. Setting that back would change what the
 *                 program sees, so it is only looked at: a batch that raised it has its
 *                 own peak, of one that did not nothing is known
 *
 * One batch at a time is under way: the next fetch of any loader ends it. With the GIL.
 */
#include <dlfcn.h>

#include "fetches.h"

enum {
    CARD_PAUSE = 300, /* looks at the card take at most one part in so many */
};

static uint64_t (*heap_high)(void); /* NULL: nobody counts */
static PyObject *card_stats;        /* function() -> (peak, reserved), or NULL */

static struct {
    struct loader_batch_row *row; /* NULL: none */
    uint64_t key, life;
    bool card; /* the card's peak is known as it was when it began */
} under_way;

/* The look at the card that ends a batch begins the next, while steps are long enough for
 * one each; short ones get two now and then. */
static struct {
    uint64_t at, cost, due; /* ticks; not looked at before `due`, but to end a batch */
    uint64_t peak;
    bool goes_on;
} card;

/* ---- The card ---------------------------------------------------------------------- */

static bool look_at_card(uint64_t *ret_reserved)
{
    const uint64_t began = sonde_ticks();
    PyObject *pair = PyObject_CallObject(card_stats, NULL);
    bool known = pair && PyTuple_Check(pair) && PyTuple_Size(pair) == 2;
    if (known) {
        const uint64_t peak = PyLong_AsUnsignedLongLong(PyTuple_GetItem(pair, 0));
        const uint64_t reserved = PyLong_AsUnsignedLongLong(PyTuple_GetItem(pair, 1));
        known = !PyErr_Occurred();
        if (known)
            card.peak = peak, *ret_reserved = reserved;
    }
    Py_XDECREF(pair);
    PyErr_Clear();
    card.at = sonde_ticks();
    card.cost = card.at - began;
    card.due = card.at + 2 * CARD_PAUSE * card.cost;
    return known;
}

static bool begin_on_card(void)
{
    uint64_t reserved;
    const bool goes_on = card.goes_on;
    card.goes_on = false;
    if (!card_stats)
        return false;
    return goes_on || (sonde_ticks() >= card.due && look_at_card(&reserved));
}

static void end_on_card(struct loader_batch_row *row)
{
    const uint64_t peak = card.peak, since = card.at;
    uint64_t reserved;
    if (!under_way.card || !card_stats || !look_at_card(&reserved))
        return;
    card.goes_on = card.at - since >= CARD_PAUSE * card.cost;
    if (card.peak <= peak)
        return; /* an earlier batch was higher */
    put64(&row->card_reserved, reserved);
    put64(&row->card_high, card.peak);
}

/* ---- One batch --------------------------------------------------------------------- */

void highs_end(void)
{
    struct loader_batch_row *row = under_way.row;
    under_way.row = NULL;
    card.goes_on = false;
    if (!row || under_way.life != book()->life || row->key != under_way.key)
        return;
    if (heap_high)
        put64(&row->high, heap_high());
    end_on_card(row);
}

void highs_begin(struct loader_batch_row *row, uint64_t key)
{
    if (!heap_high && !card_stats)
        return;
    under_way.row = row;
    under_way.key = key;
    under_way.life = book()->life;
    under_way.card = begin_on_card();
    if (heap_high)
        (void)heap_high(); /* from here on */
}

/* ---- From Python ------------------------------------------------------------------- */

/* watch_card(function or None): torch has initialised CUDA; or a forked child, where it
 * cannot be used. */
PyObject *py_watch_card(PyObject *module, PyObject *function)
{
    (void)module;
    PyObject *old = card_stats;
    card_stats = function == Py_None ? NULL : new_ref(function);
    Py_XDECREF(old);
    return new_none();
}

void highs_init(void)
{
    *(void **)&heap_high = dlsym(RTLD_DEFAULT, "sonde_heap_high_");
}
