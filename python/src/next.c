/* next.c: one fetch of a batch by the program, and what it took. See fetches.h. */
#include "fetches.h"
#include "maker.h"
#include "torch.h"

enum { IS_READY = 1, IS_EARLY = 2 };

__thread struct fetches *fetches_current __attribute__((tls_model("initial-exec")));

/* Who gave the last batch, and to which thread; borrowed. */
static struct {
    struct fetches *fetches;
    unsigned long thread;
} consumed;

/* Batches that are made and not fetched: some may still be on their way. */
static uint64_t queue_length(const struct fetches *f)
{
    long n = 0;
    if (f->depth && f->depth_base >= 0) {
        PyObject *free_places = PyObject_CallObject(f->depth, NULL);
        n = free_places ? f->depth_base - PyLong_AsLong(free_places) : 0;
        Py_XDECREF(free_places);
    } else if (f->depth) {
        n = (long)PyObject_Size(f->depth);
    }
    PyErr_Clear();
    return (n > 0 ? (uint64_t)n : 0) + f->early_stored;
}

/* What was moved since the last batch is of that batch. */
static void count_moved(struct fetches *f)
{
    if (f->moved)
        fetches_add(f, LOADER_TRANSFER, f->moved);
    f->moved = 0;
}

static bool next_before(struct hook *h, struct hook_call *call)
{
    (void)h;
    PyObject *iterator = call->count > 0 ? call->args[0] : NULL;
    struct fetches *f = iterator ? fetches_of(iterator) : NULL;
    if (!f || !fetches_live(f) || f->fetching)
        return false;
    call->owner = new_ref((PyObject *)f);
    highs_end();
    f->site_now = steps_fetch_begins(f) ? f->site_evaluating : f->site;
    f->fetching = true;
    f->blocked = false;
    f->wait = f->receive = 0;
    count_moved(f);
    f->outer = fetches_current;
    fetches_current = f;
    if (f->multi) {
        call->number[0] = (uint64_t)fetches_number(iterator, fetches_names.outstanding);
        call->number[1] = queue_length(f);
    }
    sonde_begin_on_(f->site_now);
    call->start = sonde_ticks();
    return true;
}

/* Walking a batch takes microseconds: a loop of microseconds is walked now and then. One
 * of milliseconds every time: what a step takes goes with what is in its batch. */
static uint64_t bytes_in(struct fetches *f, PyObject *batch,
                         const struct hook_call *call, uint64_t now)
{
    const bool quick = now - call->start < 1 << 20 && f->given &&
                       now - f->given < 1 << 22;
    if (f->row->batches >= 8 && quick && f->row->batches % 32 != 0)
        return f->last_bytes;
    const int64_t bytes = batch_bytes(batch);
    if (bytes < 0)
        return 0;
    f->last_bytes = (uint64_t)bytes;
    fetches_add(f, LOADER_BATCH_BYTES, (uint64_t)bytes);
    return (uint64_t)bytes;
}

/* NULL: there is no room. */
static struct loader_batch_row *keep_batch(struct fetches *f,
                                           const struct hook_call *call, uint64_t now,
                                           uint64_t bytes, int64_t number)
{
    uint64_t key;
    const struct travel *t = f->travels ? travel_of(f, number) : NULL;
    struct loader_batch_row *row = book_batch(&key);
    if (!row)
        return NULL;
    row->loader = f->loader;
    row->epoch = f->epoch_number;
    row->number = (uint32_t)number;
    row->worker = t ? t->worker : -1;
    row->step = sonde_steps();
    row->asked = call->start;
    row->given = now;
    row->sent_index = t ? t->sent_index : 0;
    row->arrived = t ? t->arrived : 0;
    row->bytes = bytes;
    row->samples = t ? t->samples : f->last_samples;
    row->in_flight = (uint32_t)call->number[0];
    row->queued = (uint32_t)call->number[1];
    row->flags = (f->multi && !f->blocked ? IS_READY : 0) |
                 (t && t->early ? IS_EARLY : 0);
    row->high = row->card_high = row->card_reserved = 0;
    publish(&row->key, key);
    return row;
}

static void count_first(struct fetches *f, uint64_t now, uint64_t took)
{
    fetches_add(f, LOADER_FIRST_FETCH, took);
    if (f->epoch)
        put64(&f->epoch->first_batch, now);
}

static void count_later(struct fetches *f, const struct hook_call *call, uint64_t took)
{
    fetches_add(f, LOADER_FETCH, took);
    put64(&f->row->fetches, f->row->fetches + 1);
    if (!f->multi)
        return;
    if (!f->blocked)
        put64(&f->row->ready, f->row->ready + 1);
    fetches_add(f, LOADER_WAIT, f->wait);
    fetches_add(f, LOADER_RECEIVE, f->receive);
    fetches_add(f, LOADER_IN_FLIGHT, call->number[0]);
    fetches_add(f, LOADER_QUEUED, call->number[1]);
}

static void count_fetch(struct fetches *f, const struct hook_call *call, uint64_t now)
{
    const uint64_t took = now - call->start;
    if (f->epoch_batches++ == 0)
        count_first(f, now, took);
    else
        count_later(f, call, took);
    put64(&f->row->batches, f->row->batches + 1);
    if (f->epoch)
        put64(&f->epoch->batches, f->epoch_batches);
}

/* Samples of a batch: the indices it was made of. An iterable's may end earlier than it was
 * asked to, which the first dimension shows if that is one of samples; one without a batch
 * size gives samples or batches, and only their shape can tell. 0: unknown. */
static uint64_t samples_given(struct fetches *f, PyObject *batch, uint64_t counted)
{
    const bool iterable = f->row->flags & LOADER_ITERABLE;
    if (counted && !iterable)
        return counted;
    const uint64_t seen = batch_samples(batch);
    if (!counted || f->row->batch_size < 0)
        return seen;
    f->by_dimension |= seen == counted;
    return f->by_dimension && seen && seen < counted ? seen : counted;
}

static void got_batch(struct fetches *f, const struct hook_call *call, PyObject *batch,
                      uint64_t now)
{
    const int64_t number = f->multi
                               ? fetches_number(call->args[0], fetches_names.rcvd) - 1
                               : (int64_t)f->epoch_batches;
    if (f->given && f->given <= call->start)
        fetches_add(f, LOADER_CONSUME, call->start - f->given);
    count_fetch(f, call, now);
    struct travel *t = f->travels ? travel_of(f, number) : NULL;
    if (!f->multi) /* the batch was made here, and counted */
        f->last_samples = maker_last_samples;
    const uint32_t samples = t ? t->samples : f->last_samples;
    if (f->multi)
        put64(&f->row->samples, f->row->samples + samples);
    fetches_add(f, LOADER_BATCH_SAMPLES, samples);
    if (t && t->early && f->early_stored)
        f->early_stored--;
    const uint64_t bytes = bytes_in(f, batch, call, now);
    steps_fetch_ends(f, samples_given(f, batch, t || !f->multi ? samples : 0));
    struct loader_batch_row *row = keep_batch(f, call, now, bytes, number);
    if (t)
        t->number = 0;
    consumed.fetches = f;
    consumed.thread = PyThread_get_thread_ident();
    if (row)
        highs_begin(row, row->key);
    f->given = sonde_ticks(); /* what we did meanwhile is not the program's */
}

static void count_waiting(struct fetches *f, uint64_t ticks)
{
    if (f->site_now == f->site_evaluating)
        put64(&f->row->evaluation_ticks, f->row->evaluation_ticks + ticks);
    put64(&f->row->fetch_ticks, f->row->fetch_ticks + ticks);
    if (f->epoch)
        put64(&f->epoch->fetch_ticks, f->epoch->fetch_ticks + ticks);
}

static void exhausted(struct fetches *f, const struct hook_call *call, uint64_t ticks)
{
    if (f->epoch && f->in_epoch)
        put64(&f->epoch->end_ticks, ticks);
    if (f->given && f->given <= call->start)
        fetches_add(f, LOADER_CONSUME, call->start - f->given);
    fetches_end_epoch(f, sonde_ticks(), true);
    steps_exhausted(f);
}

static void next_after(struct hook *h, struct hook_call *call, PyObject *result)
{
    (void)h;
    struct fetches *f = (struct fetches *)call->owner;
    const uint64_t now = sonde_ticks();
    end_zone(f->site_now);
    f->fetching = false;
    fetches_current = f->outer;
    if (!fetches_live(f)) {
        f->given = 0;
        return;
    }
    put64(&f->row->last_ticks, now);
    if (f->epoch)
        put64(&f->epoch->last, now);
    if (!result && call->raised &&
        PyErr_GivenExceptionMatches(call->raised, PyExc_StopIteration)) {
        exhausted(f, call, now - call->start);
        return;
    }
    count_waiting(f, now - call->start);
    if (result)
        got_batch(f, call, result, now);
    else
        put64(&f->row->failed, f->row->failed + 1);
}

const struct hook_kind next_kind = { "next", next_before, next_after };

/* ---- To a device ------------------------------------------------------------------------- */

void fetches_moved(uint64_t ticks)
{
    if (consumed.fetches && consumed.thread == PyThread_get_thread_ident())
        consumed.fetches->moved += ticks;
}

void next_forget(const struct fetches *f)
{
    if (fetches_current == f)
        fetches_current = NULL;
    if (consumed.fetches == f)
        consumed.fetches = NULL;
}
