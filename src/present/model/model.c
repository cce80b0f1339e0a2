/* model.c: the whole answer: head, sections, foot. */
#include "present/model/model.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "model/ref/plan.h"
#include "model/run/measure.h"
#include "present/model/parts.h"
#include "present/model/scaling.h"
#include "present/model/words.h"
#include "trace/machine.h"

/* ---- Text -------------------------------------------------------------------------- */

void sizes_text(const struct model_config *c, FILE *out)
{
    switch (c->family) {
    case FAMILY_GRAPH_TRANSFORMER:
        (void)fprintf(out,
                      "%" PRIu64 " graph%s of %" PRIu64 " nodes, %" PRIu64
                      " edges\n  hidden %" PRIu64 ", %" PRIu64 " layers, %" PRIu64
                      " heads, ffn %" PRIu64 ", %s",
                      c->batch, c->batch == 1 ? "" : "s", c->nodes, config_edges(c),
                      c->hidden, c->layers, c->heads, config_ffn(c),
                      sonde_message_name(c->message));
        if (c->encoding != SONDE_NO_ENCODING)
            (void)fprintf(out, ", %s of %" PRIu64, sonde_encoding_name(c->encoding),
                          c->encoding_dim);
        break;
    case FAMILY_GPT2:
        (void)fprintf(out,
                      "%" PRIu64 " × %" PRIu64 " tokens of %" PRIu64
                      "\n  hidden %" PRIu64 ", %" PRIu64 " layers, %" PRIu64 " heads",
                      c->batch, c->tokens, c->vocabulary, c->hidden, c->layers,
                      c->heads);
        break;
    default:
        (void)fprintf(out,
                      "batch %" PRIu64 " of %" PRIu64 " · hidden %" PRIu64 ", %" PRIu64
                      " layers",
                      c->batch, c->features, c->hidden, c->layers);
    }
    if (c->dropout > 0)
        (void)fprintf(out, ", dropout %g", c->dropout);
}

int model_text(const struct model_answer *a, FILE *out)
{
    (void)fprintf(out, "%s · ", a->zoo ? a->zoo->title : a->name);
    if (a->config)
        sizes_text(a->config, out);
    else if (a->zoo)
        (void)fputs(a->zoo->input, out);
    (void)fputs("\n\n", out);
    if (a->note)
        (void)fprintf(out, "  note: %s\n\n", a->note);
    if (!a->hide_flops)
        flops_text(a, out);
    if (!a->hide_memory)
        estimated_memory_text(a, out);
    if (a->measured && !a->hide_memory)
        measured_memory_text(a, out);
    if (a->measured && a->has_runtime)
        runtime_text(a, out);
    if (a->roofline)
        roofline_text(a, out);
    for (size_t i = 0; i < a->scaling_count; i++) {
        (void)fprintf(out, "\n  SCALING by %s\n\n", axis_name(a->scalings[i]->axis));
        (void)scaling_text(a->scalings[i], out);
    }
    if (a->zoo)
        (void)fprintf(out, "\n  source: %s\n", a->zoo->source);
    return ferror(out) ? -EIO : 0;
}

/* ---- JSON -------------------------------------------------------------------------- */

static void put_now(struct json_writer *w)
{
    char text[32];
    const time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        put_text(w, "timestamp", text);
}

/* Estimates look at no GPU: what is not looked for is null, not false. */
static void put_hardware(struct json_writer *w)
{
    struct machine m;
    machine_read(&m);
    json_key(w, "hardware");
    json_object_begin(w);
    put_text(w, "cpu", m.cpu[0] ? m.cpu : NULL);
    put_number(w, "cores", m.cores);
    put_number(w, "memory_mb", m.memory_mb);
    put_text(w, "cuda_available", NULL);
    put_text(w, "gpu_name", NULL);
    json_object_end(w);
}

void sizes_json(struct json_writer *w, const struct model_config *c)
{
    put_number(w, "hidden_dim", (double)c->hidden);
    put_number(w, "num_layers", (double)c->layers);
    put_number(w, "batch_size", (double)c->batch);
    put_number(w, "dropout", c->dropout);
    if (c->family != FAMILY_MLP) {
        put_number(w, "num_heads", (double)c->heads);
        put_number(w, "ffn_dim", (double)config_ffn(c));
    }
    if (c->family == FAMILY_GRAPH_TRANSFORMER) {
        put_number(w, "num_nodes", (double)c->nodes);
        put_number(w, "num_edges", (double)config_edges(c));
        put_text(w, "mpnn", sonde_message_name(c->message));
        put_text(w, "pe", sonde_encoding_name(c->encoding));
        put_number(w, "pe_dim", (double)c->encoding_dim);
    }
    if (c->family == FAMILY_GPT2) {
        put_number(w, "seq_len", (double)c->tokens);
        put_number(w, "vocab", (double)c->vocabulary);
    } else {
        put_number(w, "features", (double)c->features);
        put_number(w, "outputs", (double)c->outputs);
    }
}

void head_json(struct json_writer *w)
{
    put_now(w);
    put_hardware(w);
}

static void put_info(struct json_writer *w, const struct model_answer *a)
{
    json_key(w, "model_info");
    json_object_begin(w);
    put_text(w, "name", a->name);
    put_number(w, "total_parameters", a->estimate.total.parameters);
    put_mb(w, "parameter_memory_mb", 4 * a->estimate.total.parameters);
    if (a->config)
        sizes_json(w, a->config);
    if (a->zoo)
        put_text(w, "source", a->zoo->source);
    json_object_end(w);
}

static void put_memory(struct json_writer *w, const struct model_answer *a)
{
    const struct sonde_memory *m = &a->training;
    json_key(w, "memory");
    json_object_begin(w);
    put_text(w, "method", "estimated");
    put_text(w, "optimizer", sonde_optimizer_name(a->optimizer));
    if (a->measured) {
        put_mb(w, "peak_mb", a->measured->peak_bytes);
        put_mb(w, "allocated_mb",
               a->measured->tape_bytes + a->measured->parameter_bytes);
        put_mb(w, "predicted_mb", a->plan->total - a->plan->data);
    }
    if (a->plan) /* of `sonde model`'s own net, its data included */
        put_mb(w, "step_mb", a->plan->total);
    put_mb(w, "total_mb", m->total);
    put_mb(w, "inference_mb", a->inference.total);
    json_key(w, "breakdown");
    json_object_begin(w);
    put_mb(w, "parameters", m->parameters);
    put_mb(w, "gradients", m->gradients);
    put_mb(w, "optimizer_state", m->optimizer);
    put_mb(w, "activations", m->activations);
    put_mb(w, "attention_matrices", m->attention);
    json_object_end(w);
    if (a->has_attention) {
        json_key(w, "attention_layer");
        json_object_begin(w);
        put_mb(w, "qkv_mb", a->attention.qkv);
        put_mb(w, "scores_mb", a->attention.scores);
        put_mb(w, "probabilities_mb", a->attention.probabilities);
        put_mb(w, "output_mb", a->attention.output);
        put_mb(w, "total_mb", a->attention.total);
        json_object_end(w);
    }
    if (a->has_storage) {
        json_key(w, "pe_storage");
        json_object_begin(w);
        put_mb(w, "node_pe", a->storage.node);
        put_mb(w, "relative_pe_dense", a->storage.relative_dense);
        put_mb(w, "relative_pe_sparse", a->storage.relative_sparse);
        put_mb(w, "relative_index_dense", a->storage.index_dense);
        put_mb(w, "relative_index_sparse", a->storage.index_sparse);
        json_object_end(w);
    }
    json_object_end(w);
}

static void put_source(struct json_writer *w, const char *metric, const char *status,
                       const char *method)
{
    json_object_begin(w);
    put_text(w, "metric", metric);
    put_text(w, "status", status);
    put_text(w, "method", method);
    json_object_end(w);
}

static void put_provenance(struct json_writer *w, const struct model_answer *a)
{
    json_key(w, "provenance");
    json_array_begin(w);
    put_source(w, "flops", "modelled", "formulas of sonde/model.h");
    put_source(w, "memory.breakdown", "modelled", "formulas of sonde/model.h");
    if (a->measured) {
        put_source(w, "memory.peak_mb", "measured",
                   "VmHWM of the process above its memory before the net was built");
        put_source(w, "runtime", "measured",
                   "clock around each pass in a child process");
    }
    if (a->roofline) {
        put_source(w, "roofline.peak_flops_per_s", "measured",
                   "best of many 768 × 768 matrix products");
        put_source(w, "roofline.peak_bytes_per_s", "measured",
                   "best of many triads over 192 MiB");
        put_source(w, "roofline.parts.bytes", "modelled",
                   "operands read and results written once");
    }
    json_array_end(w);
}

int model_json(const struct model_answer *a, FILE *out)
{
    struct json_writer w;
    json_init_file(&w, out, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    put_text(&w, "schema", "sonde.model/1");
    head_json(&w);
    put_info(&w, a);
    put_text(&w, "note", a->note);
    if (a->measured && a->has_runtime)
        runtime_json(a, &w);
    if (!a->hide_memory)
        put_memory(&w, a);
    if (!a->hide_flops)
        flops_json(a, &w);
    if (a->roofline)
        roofline_json(a, &w);
    if (a->scaling_count > 0) {
        json_key(&w, "scaling");
        json_array_begin(&w);
        for (size_t i = 0; i < a->scaling_count; i++)
            scaling_json(a->scalings[i], &w);
        json_array_end(&w);
    }
    padding_json(a, &w);
    put_provenance(&w, a);
    json_object_end(&w);
    json_newline(&w);
    return json_finish(&w);
}
