/* runtime.c: measured time and memory, the roofline. */
#include <math.h>
#include <stdbool.h>

#include "model/ref/plan.h"
#include "model/run/measure.h"
#include "model/run/roofline.h"
#include "present/model/parts.h"
#include "present/model/words.h"

/* ---- Text -------------------------------------------------------------------------- */

static void put_pass(FILE *out, const char *name, const struct summary *s)
{
    char t[HUMAN_LEN];
    const double values[] = {
        s->mean, s->std, s->min, s->median, s->p95, s->p99, s->max
    };
    (void)fprintf(out, "  %-13s", name);
    for (int i = 0; i < 7; i++) {
        (void)fputc(' ', out);
        words_right(out, human_duration(t, values[i] * 1e6), 8);
    }
    (void)fputc('\n', out);
}

void runtime_text(const struct model_answer *a, FILE *out)
{
    const struct measurement *m = a->measured;
    (void)fprintf(out, "\n  %-13s %8s %8s %8s %8s %8s %8s %8s\n", "RUNTIME", "mean",
                  "std", "min", "p50", "p95", "p99", "max");
    for (int p = 0; p < PASS_COUNT; p++)
        put_pass(out, pass_name((enum pass)p), &m->passes[p]);
    (void)fprintf(out, "  %zu runs%s · %d thread%s · %s\n", m->runs,
                  m->stopped ? " (the time budget ended)" : "", m->threads,
                  m->threads == 1 ? "" : "s", m->blas);
    if (m->encode_ms >= 0) {
        char t[HUMAN_LEN];
        (void)fprintf(out, "  positional encoding, once: %s\n",
                      human_duration(t, m->encode_ms * 1e6));
    }
}

void roofline_text(const struct model_answer *a, FILE *out)
{
    const struct roofline *r = a->roofline;
    char peak[HUMAN_LEN], memory[HUMAN_LEN], step[HUMAN_LEN];
    bool above = false;
    (void)fprintf(out, "\n  %-11s %8s %7s %8s %8s %7s  %-8s %7s\n", "ROOFLINE", "time",
                  "share", "FLOP/s", "bytes/s", "FLOP/B", "bound by", "of roof");
    for (size_t i = 0; i < r->count; i++) {
        const struct roof_part *p = &r->parts[i];
        char t[HUMAN_LEN], f[HUMAN_LEN], b[HUMAN_LEN];
        (void)fprintf(out, "  %-11s ", refpart_name(p->part));
        words_right(out, human_duration(t, p->ms * 1e6), 8);
        above = above || p->of_roof > 1;
        (void)fprintf(out, " %5.1f %% %8s %8s %7.1f  %-8s %5.0f %%\n", 100 * p->share,
                      words_si(f, p->flops_per_s), words_si(b, p->bytes_per_s),
                      p->intensity, p->memory_bound ? "memory" : "compute",
                      100 * p->of_roof);
    }
    (void)fprintf(out,
                  "  peaks measured here: %sFLOP/s (matrix product), %sB/s (triad);\n"
                  "    they meet at %.1f FLOP/byte\n"
                  "  MFU %.1f %% · the step achieves %sFLOP/s\n",
                  words_si(peak, r->peaks.flops_per_s),
                  words_si(memory, r->peaks.bytes_per_s), r->ridge, 100 * r->mfu,
                  words_si(step, r->flops_per_s));
    if (above)
        (void)fputs("  above 100 %: what it works on was still in the caches\n", out);
}

void measured_memory_text(const struct model_answer *a, FILE *out)
{
    const struct measurement *m = a->measured;
    char peak[HUMAN_LEN], held[HUMAN_LEN], plan[HUMAN_LEN];
    const double allocated = m->tape_bytes + m->parameter_bytes;
    (void)fprintf(
        out,
        "\n  MEMORY, measured\n"
        "  peak %s resident · the net allocated %s, predicted %s (%+.1f %%)\n",
        human_bytes(peak, m->peak_bytes), human_bytes(held, allocated),
        human_bytes(plan, a->plan->total - a->plan->data),
        100 * ((a->plan->total - a->plan->data) / allocated - 1));
}

/* ---- JSON -------------------------------------------------------------------------- */

void summary_json(struct json_writer *w, const char *key, const struct summary *s)
{
    json_key(w, key);
    json_object_begin(w);
    put_number(w, "mean", s->mean);
    put_number(w, "std", s->std);
    put_number(w, "min", s->min);
    put_number(w, "max", s->max);
    put_number(w, "p50", s->median);
    put_number(w, "p95", s->p95);
    put_number(w, "p99", s->p99);
    put_number(w, "ci95_low", s->mean_t.low);
    put_number(w, "ci95_high", s->mean_t.high);
    put_number(w, "num_runs", (double)s->n);
    put_text(w, "unit", "ms");
    json_object_end(w);
}

void runtime_json(const struct model_answer *a, struct json_writer *w)
{
    const struct measurement *m = a->measured;
    json_key(w, "runtime");
    json_object_begin(w);
    for (int p = 0; p < PASS_COUNT; p++)
        summary_json(w, pass_name((enum pass)p), &m->passes[p]);
    put_number(w, "threads", m->threads);
    put_text(w, "blas", m->blas);
    json_key(w, "stopped_by_budget");
    json_put_bool(w, m->stopped);
    put_number(w, "pe_precomputation_ms", m->encode_ms);
    put_number(w, "first_loss", m->first_loss);
    put_number(w, "last_loss", m->last_loss);
    json_object_end(w);
}

void roofline_json(const struct model_answer *a, struct json_writer *w)
{
    const struct roofline *r = a->roofline;
    json_key(w, "roofline");
    json_object_begin(w);
    put_number(w, "peak_flops_per_s", r->peaks.flops_per_s);
    put_number(w, "peak_bytes_per_s", r->peaks.bytes_per_s);
    put_number(w, "ridge_flops_per_byte", r->ridge);
    put_number(w, "achieved_flops_per_s", r->flops_per_s);
    put_number(w, "mfu", r->mfu);
    json_key(w, "parts");
    json_array_begin(w);
    for (size_t i = 0; i < r->count; i++) {
        const struct roof_part *p = &r->parts[i];
        json_object_begin(w);
        put_text(w, "name", refpart_name(p->part));
        put_number(w, "ms", p->ms);
        put_number(w, "share", p->share);
        put_number(w, "flops", p->flops);
        put_number(w, "bytes", p->bytes);
        put_number(w, "flops_per_s", p->flops_per_s);
        put_number(w, "bytes_per_s", p->bytes_per_s);
        put_number(w, "flops_per_byte", p->intensity);
        put_text(w, "bound_by", p->memory_bound ? "memory" : "compute");
        put_number(w, "of_roof", p->of_roof);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}
