/* maker.c: counting samples and batches where they are made. See maker.h.
 *
 * Looking at a sample costs a quarter of a microsecond, at its CPU time half a one more
 * (a system call). Samples that take less than QUICK_NS are looked at in one batch of
 * LOOK_EVERY; what a whole batch takes is always known.
 */
#include "maker.h"

#include "fetches.h"
#include "torch.h"

enum {
    QUICK_NS = 30000,      /* below, samples are looked at in some batches */
    QUICK_CPU_NS = 200000, /* below, so is their CPU time */
    QUICK_BATCH_NS = 300000,
    QUICK_WEIGHT_NS = 200000, /* below, one in WEIGH_EVERY is weighed */
    LOOK_EVERY = 32,
    WEIGH_EVERY = 16,
    LOOK_FIRST = 64, /* samples, before anything is decided */
};

PyTypeObject *maker_type;
uint32_t maker_last_samples;

static double ticks_in(double ns)
{
    return ns * book_ticks_per_ns();
}

/* ---- One sample -------------------------------------------------------------------------- */

bool maker_sample_begins(struct maker *m, uint64_t *ret_start)
{
    if (m->in_sample)
        return false;
    m->in_sample = true;
    m->worst = NULL;
    m->worst_ticks = 0;
    sonde_begin_on_(m->site_sample);
    *ret_start = sonde_ticks();
    return true;
}

void maker_step(struct maker *m, struct loader_sum_row *row, uint64_t ticks)
{
    sum_add(row, ticks);
    if (ticks > m->worst_ticks) {
        m->worst = row;
        m->worst_ticks = ticks;
    }
}

static int64_t number_from(PyObject *index)
{
    if (index == Py_None)
        return -1;
    PyObject *number = PyNumber_Index(index); /* numpy and torch integers too */
    const long long n = number ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    PyErr_Clear();
    return n;
}

/* Asks Python where the sample comes from; `ret_path` may be NULL. */
static void name_sample(const struct maker *m, PyObject *dataset, PyObject *index,
                        int64_t *ret_index, uint32_t *ret_path)
{
    if (!m->describe)
        return;
    PyObject *answer = PyObject_CallFunctionObjArgs(m->describe, dataset, index, NULL);
    PyObject *path = NULL;
    if (answer && PyTuple_Check(answer) && PyTuple_Size(answer) == 2) {
        const long long n = PyLong_AsLongLong(PyTuple_GetItem(answer, 0));
        if (!PyErr_Occurred())
            *ret_index = n;
        path = PyTuple_GetItem(answer, 1);
    }
    swallow("naming a sample");
    const char *text = ret_path && path && PyUnicode_Check(path)
                           ? PyUnicode_AsUTF8AndSize(path, NULL)
                           : NULL;
    PyErr_Clear();
    if (text && *text)
        *ret_path = book_text(text);
    Py_XDECREF(answer);
}

/* A Subset, or something like one. Its fields are looked at, no code of its class runs. */
static bool is_nested(PyObject *dataset)
{
    PyObject *fields = PyObject_GenericGetDict(dataset, NULL);
    const bool nested = fields && PyDict_GetItemString(fields, "indices") &&
                        PyDict_GetItemString(fields, "dataset");
    Py_XDECREF(fields);
    PyErr_Clear();
    return nested;
}

/* The slowest sample of the batch, in the data set under any Subset. */
static int64_t slowest_under(struct maker *m)
{
    PyObject *index = m->slowest_of && m->slowest_index >= 0 && m->describe &&
                              is_nested(m->slowest_of)
                          ? PyLong_FromLongLong(m->slowest_index)
                          : NULL;
    int64_t found = m->slowest_index;
    if (index)
        name_sample(m, m->slowest_of, index, &found, NULL);
    Py_XDECREF(index);
    Py_CLEAR(m->slowest_of);
    return found;
}

static void keep_slow(struct maker *m, uint64_t start, uint64_t ticks, uint64_t cpu_ns,
                      PyObject *dataset, PyObject *index, int64_t number)
{
    struct loader_slow_row *row = book_slow(ticks);
    if (!row)
        return;
    row->loader = m->loader;
    row->epoch = m->epoch;
    row->batch = m->number;
    row->path = 0;
    row->index = number;
    row->number = m->made_samples;
    row->begun = start;
    row->cpu_ns = cpu_ns;
    row->slowest = m->worst ? m->worst->name : 0;
    row->slowest_ticks = m->worst_ticks;
    name_sample(m, dataset, index, &row->index, &row->path);
    publish(&row->key, ticks ? ticks : 1);
    book_slow_done();
}

static void keep_sample(const struct maker *m, uint64_t start, uint64_t ticks,
                        uint64_t cpu_ns, int64_t number)
{
    uint64_t key;
    struct loader_sample_row *row = book_sample(&key);
    if (!row)
        return;
    row->loader = m->loader;
    row->epoch = m->epoch;
    row->batch = m->number;
    row->cpu_us = cpu_ns == UINT64_MAX ? UINT32_MAX : (uint32_t)(cpu_ns / 1000);
    row->index = number;
    row->begun = start;
    row->ticks = ticks;
    publish(&row->key, key);
}

static uint64_t cpu_of_sample(struct maker *m)
{
    if (!m->look_cpu)
        return UINT64_MAX;
    const uint64_t now = thread_cpu_ns();
    const uint64_t took = now - m->cpu_mark;
    m->cpu_mark = now; /* the next begins here: between them is a loop of Python */
    sum_add(m->sample_cpu, took);
    return took;
}

/* Which batches the data set could still hold (src/analyse/fits.c). */
static void weigh_sample(struct maker *m, PyObject *sample, uint64_t ticks)
{
    /* Not by turns: the first of each batch need not be like the others. */
    const uint32_t lot = (uint32_t)m->made_samples * 0x9E3779B9u >> 16;
    if ((double)ticks < ticks_in(QUICK_WEIGHT_NS) && lot % WEIGH_EVERY != 0)
        return;
    const int64_t bytes = batch_bytes(sample);
    if (bytes > 0 && !m->sample_bytes)
        m->sample_bytes = book_sum(m->loader, LOADER_SAMPLE_BYTES, NULL, 0);
    if (bytes > 0)
        sum_add(m->sample_bytes, (uint64_t)bytes);
}

void maker_sample_ends(struct maker *m, uint64_t start, PyObject *dataset,
                       PyObject *index, PyObject *sample)
{
    const uint64_t ticks = sonde_ticks() - start;
    end_zone(m->site_sample);
    m->in_sample = false;
    if (!sample)
        return;
    m->seen++;
    const uint64_t cpu_ns = cpu_of_sample(m);
    sum_add(m->sample, ticks);
    m->looked_samples++;
    m->looked_ticks += ticks;
    m->made_samples++;
    const int64_t number = number_from(index);
    if (ticks > m->slowest_ticks) {
        m->slowest_ticks = ticks;
        m->slowest_index = number;
        Py_XDECREF(m->slowest_of);
        m->slowest_of = dataset ? new_ref(dataset) : NULL;
    }
    keep_sample(m, start, ticks, cpu_ns, number);
    if (ticks > book()->slow_least)
        keep_slow(m, start, ticks, cpu_ns, dataset, index, number);
    weigh_sample(m, sample, ticks);
}

/* ---- One batch ----------------------------------------------------------------------------- */

static void decide(struct maker *m)
{
    const bool turn = (m->batches_before + m->batches) % LOOK_EVERY == 0;
    const double mean = m->looked_samples
                            ? (double)m->looked_ticks / (double)m->looked_samples
                            : 0;
    const bool early = m->looked_samples < LOOK_FIRST;
    const bool was = m->by_batch;
    m->by_batch = !early && mean < ticks_in(QUICK_NS);
    if (m->by_batch != was && m->row)
        __atomic_fetch_or(&m->row->flags, LOADER_BY_BATCH, __ATOMIC_RELAXED);
    if (m->by_batch != was && m->self)
        __atomic_fetch_or(&m->self->flags, LOADER_BY_BATCH, __ATOMIC_RELAXED);
    m->look = early || turn || !m->by_batch;
    m->look_cpu = m->look && (early || turn || mean >= ticks_in(QUICK_CPU_NS));
    m->look_batch_cpu = m->look_cpu || m->make_ticks >= ticks_in(QUICK_BATCH_NS);
}

/* Something was left out: what is counted is a part. */
static void left_out(struct loader_sum_row *row)
{
    if (row && row->every)
        put64(&row->every, 0);
}

void maker_batch_begins(struct maker *m)
{
    decide(m);
    if (!m->look)
        left_out(m->sample);
    if (!m->look_cpu)
        left_out(m->sample_cpu);
    if (!m->look_batch_cpu)
        left_out(m->make_cpu);
    if (m->row) {
        m->epoch = (uint32_t)(m->row->epochs ? m->row->epochs - 1 : 0);
        m->number = (uint32_t)m->batches;
    }
    m->making = true;
    m->in_sample = false;
    m->samples = m->seen = 0;
    m->collate_ticks = m->slowest_ticks = 0;
    m->slowest_index = -1;
    sonde_begin_on_(m->site_make);
    m->cpu_begun = m->cpu_mark = m->look_batch_cpu ? thread_cpu_ns() : 0;
    m->begun = sonde_ticks();
}

static void keep_made(struct maker *m, uint64_t now)
{
    uint64_t key;
    struct loader_made_row *row = book_made(&key);
    if (!row)
        return;
    row->loader = m->loader;
    row->epoch = m->epoch;
    row->number = m->number;
    row->samples = m->samples;
    row->begun = m->begun;
    row->made = now;
    row->put = row->pickled = row->sent = 0;
    row->collate_ticks = m->collate_ticks;
    row->idle_ticks = m->idle_ticks;
    row->slowest_index = slowest_under(m);
    row->slowest_ticks = m->slowest_ticks;
    publish(&row->key, key);
    m->rows[m->number % MAKER_ROWS].number = (uint64_t)m->number + 1;
    m->rows[m->number % MAKER_ROWS].row = row;
}

static void count_worker(struct maker *m, uint64_t now, uint64_t cpu)
{
    struct loader_self_row *s = m->self;
    put64(&s->batches, s->batches + 1);
    put64(&s->samples, s->samples + m->samples);
    put64(&s->last, now);
    if (cpu)
        put64(&s->cpu_ns, cpu);
}

void maker_batch_ends(struct maker *m, bool made, bool failed)
{
    const uint64_t now = sonde_ticks();
    end_zone(m->site_make);
    m->making = false;
    if (!made || !maker_live(m)) {
        if (failed && m->self)
            put64(&m->self->exceptions, m->self->exceptions + 1);
        return;
    }
    if (m->seen) /* an iterable's last batch may have fewer than were asked for */
        m->samples = m->seen;
    const uint64_t took = now - m->begun;
    uint64_t cpu = 0;
    if (m->look_batch_cpu) {
        cpu = thread_cpu_ns();
        sum_add(m->make_cpu, cpu - m->cpu_begun);
    }
    sum_add(m->make, took);
    if (m->row)
        put64(&m->row->samples, m->row->samples + m->samples);
    maker_last_samples = m->samples;
    m->make_ticks = m->batches ? 0.9 * m->make_ticks + 0.1 * (double)took
                               : (double)took;
    if (m->self)
        count_worker(m, now, cpu);
    keep_made(m, now);
    m->batches++;
    m->idle_ticks = 0;
}

/* ---- The object -------------------------------------------------------------------------------- */

static void take_sums(struct maker *m)
{
    m->sample = book_sum(m->loader, LOADER_SAMPLE, NULL, 0);
    m->sample_cpu = book_sum(m->loader, LOADER_SAMPLE_CPU, NULL, 0);
    m->collate = book_sum(m->loader, LOADER_COLLATE, NULL, 0);
    m->make = book_sum(m->loader, LOADER_MAKE, NULL, 0);
    m->make_cpu = book_sum(m->loader, LOADER_MAKE_CPU, NULL, 0);
    if (m->sample && m->make) { /* of epochs before */
        m->looked_samples = m->sample->count;
        m->looked_ticks = (uint64_t)m->sample->sum;
        m->make_ticks = m->make->count ? m->make->sum / (double)m->make->count : 0;
        m->batches_before = m->make->count;
    }
    if (!m->self)
        return;
    m->idle = book_sum(m->loader, LOADER_IDLE, NULL, 0);
    m->pickle = book_sum(m->loader, LOADER_PICKLE, NULL, 0);
    m->send = book_sum(m->loader, LOADER_SEND, NULL, 0);
}

static void take_sites(struct maker *m, const char *sample, const char *collate)
{
    m->site_make = layer_site("DataLoader.fetch", SONDE_DATA_LOADING, "loader");
    m->site_sample = layer_site(sample, SONDE_DATA_LOADING, "loader");
    m->site_collate = layer_site(collate, SONDE_COLLATE, "loader");
    m->site_idle = layer_site("wait for an index", SONDE_OTHER, "loader");
}

/* Maker(loader, sample, collate, describe): of the loader with this number … */
/* Maker(-1, sample, collate, describe, worker, workers, looks): … or of the worker we
 * are, which may look at its memory. */
static PyObject *maker_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    const char *sample, *collate;
    PyObject *describe_fn;
    int loader, worker = -1, workers = 0, looks = 0;
    if (!PyArg_ParseTuple(args, "issO|iip:Maker", &loader, &sample, &collate,
                          &describe_fn, &worker, &workers, &looks))
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct maker *m = (struct maker *)alloc(type, 0);
    if (!m)
        return NULL;
    struct book *b = book();
    m->loader = loader < 0 ? LOADER_OF_WORKER : (uint32_t)loader;
    m->row = loader < 0 ? NULL : sonde_tables_row(b->tables, LOADER_LOADERS, m->loader);
    m->self = loader < 0 ? book_self() : NULL;
    if (m->self) {
        m->self->workers = (uint32_t)workers;
        m->looks.wanted = looks;
        publish(&m->self->key, (uint64_t)worker + 1);
    }
    m->life = m->row || m->self ? b->life : 0;
    m->describe = describe_fn == Py_None ? NULL : new_ref(describe_fn);
    if (m->life) {
        take_sums(m);
        take_sites(m, sample, collate);
    }
    return (PyObject *)m;
}

/* again(): a persistent worker begins another epoch. */
static PyObject *maker_again(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct maker *m = (struct maker *)self;
    m->epoch++;
    if (m->self && m->life == book()->life)
        put64(&m->self->epochs, m->epoch);
    return new_none();
}

static PyObject *maker_is_live(PyObject *self, void *unused)
{
    (void)unused;
    struct maker *m = (struct maker *)self;
    return PyBool_FromLong(m->life && m->life == book()->life);
}

static void maker_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((struct maker *)self)->describe);
    Py_XDECREF(((struct maker *)self)->slowest_of);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef maker_methods[] = {
    { "again", maker_again, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};
static PyGetSetDef maker_getset[] = {
    { "live", maker_is_live, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot maker_slots[] = {
    { Py_tp_new, maker_new },
    { Py_tp_dealloc, maker_dealloc },
    { Py_tp_methods, maker_methods },
    { Py_tp_getset, maker_getset },
    { 0, NULL },
};
static PyType_Spec maker_spec = {
    .name = "sonde._sonde.Maker",
    .basicsize = sizeof(struct maker),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = maker_slots,
};

int maker_init(PyObject *module)
{
    maker_type = add_type(module, &maker_spec);
    return maker_type ? 0 : -1;
}
