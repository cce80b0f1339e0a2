/* fetches.h: a data loader seen by who iterates it.
 *
 * A Fetches belongs to one iterator of a loader (persistent workers keep theirs over
 * epochs) and sits in its attribute `_sonde`; it goes when the iterator goes. Hooks on the
 * iterator's methods tell it what happens; all of it on the thread that fetches, with the
 * GIL held:
 *
 *     next       __next__: one fetch, and with the one before it one step (next.c)
 *     sampling   _next_index: the sampler decides what is in a batch (travels.c)
 *     sending    _try_put_index: its indices go to a worker
 *     taking     _try_get_data: a batch comes from a worker, perhaps not the one wanted
 *     polling    the queue's _poll: of taking, the part in which there was nothing
 *     pinning    pin_memory(): here or on the thread for it (pinning.c)
 *
 * What goes to a device after a batch was given (tensors.c) is counted for that batch.
 */
#ifndef SONDE_PYTHON_FETCHES_H
#define SONDE_PYTHON_FETCHES_H

#include "book.h"
#include "hook.h"

/* What is known of a batch on its way; found by its number. */
struct travel {
    uint64_t number; /* 1 + number in the epoch; 0 none */
    uint64_t sent_index, arrived;
    uint32_t samples;
    int32_t worker;
    bool early;
};

struct fetches {
    PyObject_HEAD
    uint64_t life;
    uint32_t loader;
    struct loader_row *row;
    struct loader_epoch_row *epoch;
    uint32_t epoch_number;
    struct loader_sum_row *sums[LOADER_SUM_END];
    struct sonde_site *site, *site_evaluating, *site_now;
    struct travel *travels;
    uint32_t travel_mask;
    bool multi, ordered, in_epoch;
    bool by_dimension; /* batches were as long as the loader says, in their first one */
    int fd;            /* of the pipe batches come through; −1 none */
    PyObject *depth,
        *stop_type; /* who knows the length of the queue; end of iterables */
    long depth_base;
    /* The fetch going on, and the end of the last. */
    bool fetching, blocked;
    uint64_t wait, receive, given, epoch_batches;
    uint32_t early_stored, last_samples;
    struct fetches *outer; /* whose fetch this one is part of: nested loaders */
    uint64_t last_bytes;
    uint64_t moved; /* from host to device since the last batch */
    /* What steps.c remembers of its last fetch. */
    struct {
        bool fetched, evaluating, other;
        uint64_t work, evaluations, steps; /* counts at that moment */
        uint64_t trained, asked;
        uint64_t other_work, other_ours; /* while another iterator's steps go on */
        uint64_t samples;                /* of its last batch */
        double began;                    /* its epoch, while it was a candidate */
    } seen;
};

/* Names of attributes of torch's iterators. */
struct fetches_names {
    PyObject *sonde, *rcvd, *send, *outstanding, *task_info;
};
extern struct fetches_names fetches_names;

/* Whose fetch this thread is in: pinning without workers happens there. */
extern __thread struct fetches *fetches_current
    __attribute__((tls_model("initial-exec")));

/* The iterator's Fetches, borrowed from the iterator; NULL when it has none. */
struct fetches *fetches_of(PyObject *iterator);
/* An attribute of an iterator that is a whole number; −1: it is not. */
int64_t fetches_number(PyObject *iterator, PyObject *name);
void fetches_add(struct fetches *f, enum loader_sum what, uint64_t value);
/* Its epoch is over: the loader was at its end, or nobody goes on with it. */
void fetches_end_epoch(struct fetches *f, uint64_t now, bool exhausted);

static inline bool fetches_live(const struct fetches *f)
{
    return sonde_on_() && f->life && f->life == book()->life;
}

static inline struct travel *travel_of(const struct fetches *f, int64_t number)
{
    struct travel *t = &f->travels[(uint64_t)number & f->travel_mask];
    return number >= 0 && t->number == (uint64_t)number + 1 ? t : NULL;
}

/* next.c */
void next_forget(const struct fetches *f);
/* pinning.c */
int pinning_thread(struct fetches *f, PyObject *thread);
void pinning_forget(const struct fetches *f);

/* batch.c: samples in a batch (0: unknown), bytes of what is in it (−1: unknown). */
uint64_t batch_samples(PyObject *batch);
int64_t batch_bytes(PyObject *batch);
int batch_init(void);
/* loader_tensor(type): torch.Tensor */
PyObject *py_loader_tensor(PyObject *module, PyObject *type);

/* highs.c: a batch was handed over; the next fetch begins. */
void highs_begin(struct loader_batch_row *row, uint64_t key);
void highs_end(void);
void highs_init(void);
PyObject *py_watch_card(PyObject *module, PyObject *function);

/* steps.c. Whether the fetch that begins is one of an evaluation. */
bool steps_fetch_begins(struct fetches *f);
void steps_fetch_ends(struct fetches *f, uint64_t samples);
void steps_exhausted(struct fetches *f);
void steps_gone(struct fetches *f);

#endif
