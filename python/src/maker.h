/* maker.h: where samples are made: a worker, or the main process without any.
 *
 * A fetcher of torch makes batches out of a data set. Its attribute `_sonde` is a Making:
 * it knows the stand-ins (proxies.c) for data set and transforms and puts them in place
 * while a batch is made, so that nobody else meets them. They report to the Maker, which
 * counts and owns nobody: no cycles keep a program's data alive.
 */
#ifndef SONDE_PYTHON_MAKER_H
#define SONDE_PYTHON_MAKER_H

#include "book.h"
#include "looks.h"
#include "module.h"

enum { MAKER_ROWS = 64 };

struct maker {
    PyObject_HEAD
    uint64_t life;
    uint32_t loader;              /* number, or LOADER_OF_WORKER */
    struct loader_row *row;       /* of the loader made here … */
    struct loader_self_row *self; /* … or the worker this process is; one is NULL */
    struct looks looks;           /* of a worker */
    struct loader_sum_row *sample, *sample_cpu, *collate, *make, *make_cpu, *idle,
        *pickle, *send, *sample_bytes;
    struct sonde_site *site_make, *site_sample, *site_collate, *site_idle;
    PyObject *describe; /* function(dataset, index) -> (index, path), or NULL */
    bool by_batch; /* samples are so quick that only some batches are looked into */
    /* How closely to look: by what samples were seen to take. */
    bool look, look_cpu, look_batch_cpu;
    uint64_t looked_samples, looked_ticks, batches, batches_before;
    double make_ticks; /* of a batch, lately */
    /* The batch being made. */
    bool making;
    uint32_t epoch, number, samples, seen;
    uint64_t idle_ticks, begun, cpu_begun, collate_ticks, slowest_ticks;
    int64_t slowest_index;
    PyObject *slowest_of; /* the data set it is an index of, or NULL */
    struct {
        uint64_t number; /* 1 + number */
        struct loader_made_row *row;
    } rows[MAKER_ROWS];
    /* The sample being made. */
    bool in_sample; /* data sets wrap data sets: the outermost counts */
    uint64_t cpu_mark;
    struct loader_sum_row *worst;
    uint64_t worst_ticks;
    uint64_t made_samples;
    uint64_t pickled_at;
    uint32_t pickled_number;
};
extern PyTypeObject *maker_type;
/* In the batch made last by this process. */
extern uint32_t maker_last_samples;

static inline bool maker_live(const struct maker *m)
{
    return sonde_on_() && m->life && m->life == book()->life;
}

/* A sample begins; false: it is part of one. */
bool maker_sample_begins(struct maker *m, uint64_t *ret_start);
/* … ends. index: what the data set was asked for, None of an iterable; sample NULL: it
 * failed (the exception is set, and stays). */
void maker_sample_ends(struct maker *m, uint64_t start, PyObject *dataset,
                       PyObject *index, PyObject *sample);
/* A transform took so long. */
void maker_step(struct maker *m, struct loader_sum_row *row, uint64_t ticks);

void maker_batch_begins(struct maker *m);
/* failed: by something else than the end of an iterable. */
void maker_batch_ends(struct maker *m, bool made, bool failed);

/* proxies.c */
PyObject *dataset_standin(PyObject *dataset, struct maker *maker);
PyObject *step_standin(PyObject *callable, struct maker *maker,
                       struct loader_sum_row *row, struct sonde_site *site);
/* What it stands for, borrowed; NULL: it is none. */
PyObject *standin_target(PyObject *o);
int proxies_init(PyObject *module);
int maker_init(PyObject *module);

/* making.c */
struct making;
int making_init(PyObject *module);

#endif
