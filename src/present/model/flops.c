/* flops.c: operations and estimated memory as text and JSON; the published models. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "present/model/parts.h"
#include "present/model/words.h"

/* ---- Text -------------------------------------------------------------------------- */

static void put_component(FILE *out, const char *name, const struct sonde_cost *cost,
                          double all)
{
    char flops[HUMAN_LEN], macs[HUMAN_LEN], other[HUMAN_LEN], bytes[HUMAN_LEN],
        parameters[HUMAN_LEN];
    const double total = sonde_ops_total(&cost->forward);
    (void)fprintf(out, "  %-11s %7s %5.1f %% %7s %9s %9s %7.1f %12s\n", name,
                  words_si(flops, total), all > 0 ? 100 * total / all : 0,
                  words_si(macs, cost->forward.macs),
                  words_si(other, cost->forward.elementwise),
                  human_bytes(bytes, cost->forward.bytes),
                  cost->forward.bytes > 0 ? total / cost->forward.bytes : 0,
                  words_whole(parameters, cost->parameters));
}

static void put_passes(FILE *out, const struct model_answer *a)
{
    const struct sonde_cost *t = &a->estimate.total;
    const double forward = sonde_ops_total(&t->forward),
                 backward = sonde_ops_total(&t->backward),
                 update = sonde_optimizer_ops(a->optimizer, t->parameters);
    char f[HUMAN_LEN], b[HUMAN_LEN], s[HUMAN_LEN], p[HUMAN_LEN], w[HUMAN_LEN];
    (void)fprintf(out,
                  "\n  forward %sFLOP · backward %sFLOP · training step %sFLOP\n"
                  "  %s parameters (%s) · %.1f FLOP per parameter\n",
                  words_si(f, forward), words_si(b, backward),
                  words_si(s, forward + backward + update),
                  words_whole(p, t->parameters), human_bytes(w, 4 * t->parameters),
                  t->parameters > 0 ? forward / t->parameters : NAN);
}

void flops_text(const struct model_answer *a, FILE *out)
{
    const double all = sonde_ops_total(&a->estimate.total.forward);
    (void)fprintf(out, "  %-11s %7s %7s %7s %9s %9s %7s %12s\n", "FORWARD", "FLOP",
                  "share", "MAC", "elementw.", "memory", "FLOP/B", "parameters");
    for (size_t i = 0; i < a->estimate.component_count; i++)
        put_component(out, a->estimate.components[i].name,
                      &a->estimate.components[i].cost, all);
    put_component(out, "total", &a->estimate.total, all);
    put_passes(out, a);
    if (a->has_padding)
        (void)fprintf(out,
                      "  padding %" PRIu64 " graphs to %" PRIu64 " nodes each would"
                      " waste\n    %.1f %% of the rows, %.1f %% of the pairs\n",
                      a->padding.graphs, a->padding.largest,
                      100 * a->padding.node_waste, 100 * a->padding.pair_waste);
}

void estimated_memory_text(const struct model_answer *a, FILE *out)
{
    const struct sonde_memory *m = &a->training;
    char t[HUMAN_LEN], p[HUMAN_LEN], g[HUMAN_LEN], o[HUMAN_LEN], c[HUMAN_LEN],
        s[HUMAN_LEN], i[HUMAN_LEN];
    (void)fprintf(out,
                  "\n  MEMORY, estimated\n"
                  "  training with %s %s = parameters %s + gradients %s\n"
                  "    + optimizer %s + activations %s (attention matrices %s)\n"
                  "  inference %s of parameters\n",
                  sonde_optimizer_name(a->optimizer), human_bytes(t, m->total),
                  human_bytes(p, m->parameters), human_bytes(g, m->gradients),
                  human_bytes(o, m->optimizer), human_bytes(c, m->activations),
                  human_bytes(s, m->attention), human_bytes(i, a->inference.total));
    if (a->has_attention)
        (void)fprintf(
            out, "  an attention layer %s: q, k, v %s + scores %s + softmax %s\n",
            human_bytes(t, a->attention.total), human_bytes(p, a->attention.qkv),
            human_bytes(g, a->attention.scores),
            human_bytes(o, a->attention.probabilities));
}

/* ---- JSON -------------------------------------------------------------------------- */

static void put_ops(struct json_writer *w, const char *key, const struct sonde_ops *ops)
{
    json_key(w, key);
    json_object_begin(w);
    put_number(w, "flops", sonde_ops_total(ops));
    put_number(w, "macs", ops->macs);
    put_number(w, "elementwise", ops->elementwise);
    put_number(w, "bytes", ops->bytes);
    json_object_end(w);
}

static void put_components(struct json_writer *w, const struct sonde_estimate *e)
{
    json_key(w, "breakdown");
    json_object_begin(w);
    for (size_t i = 0; i < e->component_count; i++)
        put_number(w, e->components[i].name,
                   sonde_ops_total(&e->components[i].cost.forward) / 1e9);
    json_object_end(w);
    json_key(w, "components");
    json_array_begin(w);
    for (size_t i = 0; i < e->component_count; i++) {
        json_object_begin(w);
        put_text(w, "name", e->components[i].name);
        put_ops(w, "forward", &e->components[i].cost.forward);
        put_ops(w, "backward", &e->components[i].cost.backward);
        put_number(w, "parameters", e->components[i].cost.parameters);
        json_object_end(w);
    }
    json_array_end(w);
}

void flops_json(const struct model_answer *a, struct json_writer *w)
{
    const struct sonde_cost *t = &a->estimate.total;
    const double forward = sonde_ops_total(&t->forward);
    json_key(w, "flops");
    json_object_begin(w);
    put_number(w, "total_gflops", forward / 1e9);
    put_number(w, "matrix_gflops", 2 * t->forward.macs / 1e9);
    put_number(w, "gmacs", t->forward.macs / 1e9);
    put_number(w, "training_step_gflops",
               (forward + sonde_ops_total(&t->backward) +
                sonde_optimizer_ops(a->optimizer, t->parameters)) /
                   1e9);
    put_number(w, "flops_per_parameter",
               t->parameters > 0 ? forward / t->parameters : NAN);
    put_ops(w, "forward", &t->forward);
    put_ops(w, "backward", &t->backward);
    put_components(w, &a->estimate);
    put_text(w, "counting",
             "matrix products 2 per multiply-add; softmax 5, norm 5, GELU "
             "4, other element-wise 1 per element");
    json_object_end(w);
}

void padding_json(const struct model_answer *a, struct json_writer *w)
{
    if (!a->has_padding)
        return;
    json_key(w, "padding");
    json_object_begin(w);
    put_number(w, "graphs", (double)a->padding.graphs);
    put_number(w, "nodes", (double)a->padding.nodes);
    put_number(w, "largest", (double)a->padding.largest);
    put_number(w, "node_waste", a->padding.node_waste);
    put_number(w, "pair_waste", a->padding.pair_waste);
    json_object_end(w);
}

/* ---- The published ------------------------------------------------------------------ */

/* Our figure in the unit and with the digits of theirs. */
static void put_published(FILE *out, const struct model_answer *a)
{
    const double macs = a->estimate.total.forward.macs;
    char text[HUMAN_LEN];
    if (a->zoo->published > 0) {
        const bool doubled = a->zoo->unit[1] == 'F';
        (void)fprintf(out, "%10.*f %-5s %10.*f", a->zoo->decimals,
                      macs * (doubled ? 2 : 1) / 1e9, a->zoo->unit, a->zoo->decimals,
                      a->zoo->published);
    } else {
        (void)fprintf(out, "%12sMAC  %10s", words_si(text, macs), "");
    }
}

int zoo_text(FILE *out)
{
    (void)fprintf(out, "%-18s %-26s %16s %10s %15s %15s\n", "NAME", "MODEL", "FORWARD",
                  "published", "PARAMETERS", "published");
    for (size_t i = 0; zoo_at(i); i++) {
        struct model_answer a;
        const int rc = answer_estimate_zoo(zoo_at(i), SONDE_ADAMW, SONDE_FLOAT32, &a);
        if (rc < 0)
            return rc;
        char ours[HUMAN_LEN], theirs[HUMAN_LEN];
        words_left(out, a.name, 19);
        words_left(out, a.zoo->title, 27);
        put_published(out, &a);
        (void)fprintf(out, " %15s %15s\n",
                      words_whole(ours, a.estimate.total.parameters),
                      words_whole(theirs, a.zoo->parameters));
    }
    return ferror(out) ? -EIO : 0;
}

int zoo_json(FILE *out)
{
    struct json_writer w;
    int rc = 0;
    json_init_file(&w, out, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    put_text(&w, "schema", "sonde.models/1");
    json_key(&w, "models");
    json_array_begin(&w);
    for (size_t i = 0; zoo_at(i) && rc == 0; i++) {
        struct model_answer a;
        rc = answer_estimate_zoo(zoo_at(i), SONDE_ADAMW, SONDE_FLOAT32, &a);
        json_object_begin(&w);
        put_text(&w, "name", zoo_at(i)->name);
        put_text(&w, "title", zoo_at(i)->title);
        put_text(&w, "input", zoo_at(i)->input);
        put_text(&w, "source", zoo_at(i)->source);
        put_number(&w, "gmacs", rc == 0 ? a.estimate.total.forward.macs / 1e9 : NAN);
        put_number(&w, "parameters", rc == 0 ? a.estimate.total.parameters : NAN);
        put_number(&w, "published",
                   zoo_at(i)->published > 0 ? zoo_at(i)->published : NAN);
        put_text(&w, "published_unit", zoo_at(i)->unit);
        put_number(&w, "published_parameters", zoo_at(i)->parameters);
        json_object_end(&w);
    }
    json_array_end(&w);
    json_object_end(&w);
    json_newline(&w);
    const int finished = json_finish(&w);
    return rc < 0 ? rc : finished;
}
