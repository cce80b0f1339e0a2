/* jsonloaders.c: data loaders in report.json. */
#include <math.h>

#include "present/report/jsonparts.h"

/* The timeline of the newest batches is for pictures: as many as a screen has columns. */
enum { MAX_RECENT = 256 };

static void field_bool(struct json_writer *w, const char *key, bool value)
{
    json_key(w, key);
    json_put_bool(w, value);
}

static void put_distribution(struct json_writer *w, const char *key,
                             const struct distribution *d, double unit, int decimals)
{
    json_key(w, key);
    if (!d->count) {
        json_put_null(w);
        return;
    }
    json_object_begin(w);
    field_uint(w, "count", d->count);
    field_number(w, "mean", d->mean / unit, decimals);
    field_number(w, "std", distribution_std(d) / unit, decimals);
    field_number(w, "min", d->min / unit, decimals);
    field_number(w, "max", d->max / unit, decimals);
    field_number(w, "p50", distribution_quantile(d, 0.50) / unit, decimals);
    field_number(w, "p95", distribution_quantile(d, 0.95) / unit, decimals);
    field_number(w, "p99", distribution_quantile(d, 0.99) / unit, decimals);
    json_object_end(w);
}

static void put_times(struct json_writer *w, const char *key,
                      const struct loader_times *t)
{
    put_distribution(w, key, &t->d, 1e6, 6);
}

static double total_or_nan(const struct loader_times *t)
{
    return t->d.count ? t->d.mean * (double)t->d.count : NAN;
}

static void put_settings(struct json_writer *w, const struct loader *l)
{
    field_uint(w, "id", l->id);
    field_uint(w, "pid", l->pid);
    field_text(w, "file", l->file);
    field_int(w, "line", l->line > 0 ? l->line : -1);
    field_text(w, "class", l->kind);
    field_text(w, "dataset", l->dataset);
    field_number(w, "dataset_length",
                 l->dataset_length >= 0 ? (double)l->dataset_length : NAN, 0);
    field_text(w, "sampler", l->sampler);
    field_text(w, "collate_fn", l->collate_fn);
    field_int(w, "num_workers", l->num_workers);
    field_int(w, "prefetch_factor", l->num_workers ? l->prefetch_factor : -1);
    field_int(w, "batch_size", l->batch_size);
    field_bool(w, "pin_memory", l->pin_memory);
    field_bool(w, "persistent_workers", l->persistent_workers);
    field_bool(w, "shuffle", l->shuffle);
    field_bool(w, "iterable", l->iterable);
    field_bool(w, "in_order", l->in_order);
    field_text(w, "start_method", l->start_method);
    field_text(w, "objects", l->objects);
    field_number(w, "timeout_s", l->timeout_s, 3);
    field_bool(w, "training", l->training);
}

static void put_consumer(struct json_writer *w, const struct loader *l)
{
    field_uint(w, "epochs", l->epochs);
    field_uint(w, "batches", l->batches);
    field_uint(w, "samples", l->samples);
    field_number(w, "bytes", l->batch_bytes.count ? (double)l->bytes : NAN, 0);
    put_distribution(w, "batch_bytes", &l->batch_bytes, 1, 0);
    put_distribution(w, "batch_samples", &l->batch_samples, 1, 3);
    put_distribution(w, "sample_bytes", &l->sample_bytes, 1, 0);
    field_number(w, "wait_s", l->wait_s, 6);
    field_number(w, "wait_share", l->wait_share, 6);
    field_number(w, "step_share", l->step_share, 6);
    field_number(w, "ready_share", l->ready_share, 6);
    put_times(w, "fetch_ms", &l->fetch);
    put_times(w, "first_fetch_ms", &l->first_fetch);
    put_times(w, "queue_wait_ms", &l->wait);
    put_times(w, "receive_ms", &l->receive);
    put_times(w, "sampler_ms", &l->sampling);
    put_times(w, "pin_ms", &l->pin);
    put_times(w, "transfer_ms", &l->transfer);
    put_times(w, "consume_ms", &l->consume);
    put_distribution(w, "queued", &l->queued, 1, 3);
    put_distribution(w, "in_flight", &l->in_flight, 1, 3);
    json_key(w, "out_of_order");
    json_object_begin(w);
    field_uint(w, "count", l->out_of_order.count);
    field_number(w, "wait_s", l->out_of_order.wait_s, 6);
    json_object_end(w);
    field_uint(w, "failed", l->failed);
}

static void put_maker(struct json_writer *w, const struct loader *l)
{
    put_times(w, "sample_ms", &l->sample);
    put_times(w, "sample_cpu_ms", &l->sample_cpu);
    put_times(w, "collate_ms", &l->collate);
    put_times(w, "batch_ms", &l->make);
    put_times(w, "batch_cpu_ms", &l->make_cpu);
    put_times(w, "pickle_ms", &l->pickle);
    put_times(w, "send_ms", &l->send);
    put_times(w, "idle_ms", &l->idle);
    field_text(w, "sample_timing",
               l->untimed_samples   ? "by batch: samples cannot be told apart"
               : !l->sample.d.count ? ""
               : l->sample.every    ? "every sample"
                                    : "every sample of one batch in 32");
}

static void put_transforms(struct json_writer *w, const struct loader *l)
{
    json_key(w, "transforms");
    json_array_begin(w);
    for (size_t i = 0; i < l->transform_count; i++) {
        const struct loader_transform *t = &l->transforms[i];
        json_object_begin(w);
        field_text(w, "name", t->name);
        field_int(w, "place", t->place);
        field_bool(w, "random", t->random);
        field_uint(w, "count", t->wall.d.count);
        field_ms(w, "mean_ms", t->wall.d.count ? t->wall.d.mean : NAN);
        field_ms(w, "p95_ms", distribution_quantile(&t->wall.d, 0.95));
        field_ms(w, "max_ms", t->wall.d.count ? t->wall.d.max : NAN);
        field_number(w, "total_s", t->total_s, 6);
        field_number(w, "share", t->share, 6);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_workers(struct json_writer *w, const struct loader *l)
{
    json_key(w, "workers");
    json_array_begin(w);
    for (size_t i = 0; i < l->worker_count; i++) {
        const struct loader_worker *k = &l->workers[i];
        const bool heard = k->processes > k->unheard;
        json_object_begin(w);
        field_int(w, "worker", k->number);
        field_uint(w, "pid", k->pid);
        field_uint(w, "processes", k->processes);
        field_uint(w, "unheard", k->unheard);
        field_number(w, "batches", heard ? (double)k->batches : NAN, 0);
        field_number(w, "samples", heard ? (double)k->samples : NAN, 0);
        field_number(w, "busy_s", heard ? k->busy_s : NAN, 6);
        field_number(w, "put_s", heard ? k->put_s : NAN, 6);
        field_number(w, "idle_s", heard ? k->idle_s : NAN, 6);
        field_number(w, "alive_s", heard ? k->alive_s : NAN, 6);
        field_number(w, "cpu_s", heard && k->cpu_s > 0 ? k->cpu_s : NAN, 6);
        field_ms(w, "sample_mean_ms", k->sample.d.count ? k->sample.d.mean : NAN);
        field_ms(w, "sample_p95_ms", distribution_quantile(&k->sample.d, 0.95));
        field_number(w, "copied_mb", k->copied_mb, 3);
        field_number(w, "private_mb", k->private_mb, 3);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_epochs(struct json_writer *w, const struct loader *l)
{
    json_key(w, "epoch_list");
    json_array_begin(w);
    for (size_t i = 0; i < l->epoch_count; i++) {
        const struct loader_epoch *e = &l->epoch_list[i];
        json_object_begin(w);
        field_uint(w, "epoch", e->number);
        field_time(w, "start", e->start_ns);
        field_number(w, "iter_s", e->iter_s, 6);
        field_number(w, "first_batch_s", e->first_batch_s, 6);
        field_number(w, "wait_s", e->wait_s, 6);
        field_number(w, "end_s", e->end_s, 6);
        field_number(w, "duration_s", e->duration_s, 6);
        field_uint(w, "batches", e->batches);
        field_bool(w, "exhausted", e->exhausted);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_slowest(struct json_writer *w, const struct loader *l)
{
    json_key(w, "slowest_samples");
    json_array_begin(w);
    for (size_t i = 0; i < l->slowest_count; i++) {
        const struct loader_slow_sample *s = &l->slowest[i];
        json_object_begin(w);
        field_number(w, "index", s->index >= 0 ? (double)s->index : NAN, 0);
        field_uint(w, "number", s->number);
        field_text(w, "path", s->path);
        field_ms(w, "ms", s->wall_ns);
        field_ms(w, "cpu_ms", s->cpu_ns);
        field_number(w, "times_median", s->times_median, 3);
        field_text(w, "slowest_transform", s->slowest);
        field_ms(w, "slowest_transform_ms", s->slowest_ns);
        field_int(w, "worker", s->worker);
        field_uint(w, "epoch", s->epoch);
        field_uint(w, "batch", s->batch);
        field_time(w, "start", s->start_ns);
        json_object_end(w);
    }
    json_array_end(w);
}

/* Moments in seconds of the run. */
static void field_moment(struct json_writer *w, const char *key, const struct report *r,
                         int64_t ns)
{
    field_number(w, key, ns ? (double)(ns - r->start_ns) / 1e9 : NAN, 6);
}

static void put_batch(struct json_writer *w, const struct report *r,
                      const struct loader_batch *b)
{
    json_object_begin(w);
    field_uint(w, "epoch", b->epoch);
    field_uint(w, "batch", b->number);
    field_uint(w, "step", b->step);
    field_int(w, "worker", b->worker);
    field_uint(w, "samples", b->samples);
    field_uint(w, "bytes", b->bytes);
    field_number(w, "heap_peak_bytes", b->high ? (double)b->high : NAN, 0);
    field_number(w, "gpu_peak_bytes", b->card_high ? (double)b->card_high : NAN, 0);
    field_bool(w, "ready", b->ready);
    field_bool(w, "early", b->early);
    field_uint(w, "in_flight", b->in_flight);
    field_uint(w, "queued", b->queued);
    field_moment(w, "index_sent_s", r, b->sent_index_ns);
    field_moment(w, "begun_s", r, b->begun_ns);
    field_moment(w, "made_s", r, b->made_ns);
    field_moment(w, "put_s", r, b->put_ns);
    field_moment(w, "sent_s", r, b->sent_ns);
    field_moment(w, "arrived_s", r, b->arrived_ns);
    field_moment(w, "asked_s", r, b->asked_ns);
    field_moment(w, "given_s", r, b->given_ns);
    field_ms(w, "collate_ms", b->collate_ns);
    field_number(w, "slowest_index",
                 b->slowest_index >= 0 ? (double)b->slowest_index : NAN, 0);
    field_ms(w, "slowest_ms", b->slowest_ns);
    json_object_end(w);
}

static void put_recent(struct json_writer *w, const struct report *r,
                       const struct loader *l)
{
    const size_t from = l->recent_count > MAX_RECENT ? l->recent_count - MAX_RECENT : 0;
    json_key(w, "recent_batches");
    json_array_begin(w);
    for (size_t i = from; i < l->recent_count; i++)
        put_batch(w, r, &l->recent[i]);
    json_array_end(w);
}

static void put_loader(struct json_writer *w, const struct report *r,
                       const struct loader *l)
{
    json_object_begin(w);
    put_settings(w, l);
    put_consumer(w, l);
    put_maker(w, l);
    field_seconds(w, "collate_s", total_or_nan(&l->collate));
    put_transforms(w, l);
    put_workers(w, l);
    put_epochs(w, l);
    put_slowest(w, l);
    put_recent(w, r, l);
    json_object_end(w);
}

void fields_of_loaders(struct json_writer *w, const struct report *r)
{
    json_key(w, "loaders");
    json_array_begin(w);
    for (size_t i = 0; i < r->loaders.count; i++)
        put_loader(w, r, &r->loaders.list[i]);
    json_array_end(w);
}
