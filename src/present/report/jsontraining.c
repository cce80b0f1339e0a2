/* jsontraining.c: what the Python layer told: epochs, models, versions. */
#include <math.h>

#include "present/report/jsonparts.h"

static void put_epoch(struct json_writer *w, const struct report *r,
                      const struct py_epoch *e)
{
    const double duration = e->end_s - e->start_s;
    json_object_begin(w);
    field_uint(w, "epoch", e->epoch);
    field_number(w, "start_s", e->start_s - (double)r->start_ns / 1e9, 6);
    field_number(w, "duration_s", duration, 6);
    field_uint(w, "steps", e->steps);
    field_number(w, "samples", e->samples ? (double)e->samples : NAN, 0);
    field_number(w, "samples_per_s",
                 e->samples && duration > 0 ? (double)e->samples / duration : NAN, 3);
    json_object_end(w);
}

static void put_model(struct json_writer *w, const struct py_model *m)
{
    json_object_begin(w);
    field_text(w, "name", m->name);
    field_uint(w, "parameters", m->parameters);
    field_uint(w, "trainable", m->trainable);
    field_number(w, "mb", (double)m->bytes / (1 << 20), 3);
    field_uint(w, "modules", m->modules);
    json_key(w, "layers");
    json_array_begin(w);
    for (size_t i = 0; i < m->layer_count; i++) {
        json_object_begin(w);
        field_text(w, "type", m->layers[i].type);
        field_uint(w, "count", m->layers[i].count);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

void fields_of_training(struct json_writer *w, const struct report *r)
{
    const struct py_layer *l = &r->layer;
    json_key(w, "epochs");
    json_array_begin(w);
    for (size_t i = 0; i < l->epoch_count; i++)
        put_epoch(w, r, &l->epochs[i]);
    json_array_end(w);
    if (l->model_count) {
        json_key(w, "model"); /* the largest of them */
        put_model(w, &l->models[0]);
    } else {
        field_null(w, "model");
    }
    json_key(w, "models");
    json_array_begin(w);
    for (size_t i = 0; i < l->model_count; i++)
        put_model(w, &l->models[i]);
    json_array_end(w);
}

static const char *python_version(const struct report *r)
{
    const struct py_layer *l = &r->layer;
    const uint32_t pid = r->main_process < r->process_count
                             ? r->processes[r->main_process].pid
                             : r->run->meta.pid;
    for (size_t i = 0; i < l->interpreter_count; i++)
        if (l->interpreters[i].pid == pid)
            return l->interpreters[i].version;
    return l->interpreter_count ? l->interpreters[0].version : "";
}

void fields_of_software(struct json_writer *w, const struct report *r)
{
    field_text(w, "python", python_version(r));
    field_text(w, "torch", r->layer.torch);
    field_text(w, "cuda", r->layer.cuda);
}
