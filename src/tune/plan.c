/* plan.c: see plan.h.
 *
 * What stays of a cured work is what the predictions assume (docs/guide-diagnosis.md, "How
 * a gain is predicted"): the trial measures what nobody can predict, how the rest of the
 * step runs without the illness.
 */
#include "tune/plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/loaders.h"
#include "analyse/whatif.h"
#include "base/files.h"
#include "base/json.h"

/* As the rules advise (analyse/rules_step.c, gains.c). */
static const double SELDOM = 50, CHECKPOINT_TARGET = 0.02, EVALUATION_TARGET = 0.1;
static const double SAMPLE_US = 20, COMMON_BATCH = 64;
static const double COPY_US = 100, COPY_US_PER_MB = 300;
static const double NEVER = 1e6;
static const double KEEP_MB = 1024; /* where nobody knows how much memory there is */

static int refuse(char why[PLAN_WHY], const char *text)
{
    (void)snprintf(why, PLAN_WHY, "%s", text);
    return -ENOTSUP;
}

static void plan_init(struct plan *p, const struct plan_known *known)
{
    *p = (struct plan){ .finding = "",
                        .workers = -1,
                        .prefetch = -1,
                        .sample_left = NAN,
                        .collate_left = NAN,
                        .memo_place = "",
                        .loader = known->loader };
}

static void add_rare(struct plan *p, const char *what, const char *place, double times)
{
    if (times > 1 && p->rare_count < PLAN_RARE)
        p->rare[p->rare_count++] = (struct plan_rare){ what, place, times };
}

bool plan_leaves_out_calls(const struct plan *p)
{
    return p->rare_count == 1 && strcmp(p->rare[0].what, "logging") == 0;
}

/* ---- Samples --------------------------------------------------------------------------- */

/* Loading in the loop, without a loader: the function at the line that loads. */
static int plan_by_hand(const struct facts *f, double left, struct plan *p,
                        char why[PLAN_WHY])
{
    if (!f->place[PLACE_TRANSFORM][0])
        return refuse(why, "the function that loads is not known");
    p->memo_place = f->place[PLACE_TRANSFORM];
    p->memo_left = left;
    p->memo_least_us = SAMPLE_US;
    return 0;
}

static int plan_samples(const struct pipeline *pipe, const struct facts *f, double left,
                        struct plan *p, char why[PLAN_WHY])
{
    if (pipe->by_hand || !pipe->known)
        return plan_by_hand(f, left, p, why);
    p->sample_left = left;
    p->sample_least_us = SAMPLE_US;
    return 0;
}

static double within(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

static double collate_of(const struct pipeline *pipe)
{
    return isnan(pipe->collate_share) ? 0 : within(pipe->collate_share, 0, 0.99);
}

/* Of a sample's time, when its transform takes `times` times less. */
static double left_of_transform(const struct pipeline *pipe, double times)
{
    const double collate = collate_of(pipe);
    const double share = isnan(pipe->transform_share)
                             ? 1
                             : within(pipe->transform_share / (1 - collate), 0, 1);
    return 1 - share + share / times;
}

/* ---- Asked for -------------------------------------------------------------------------- */

static int plan_loader(const struct pipeline *pipe, const struct facts *f,
                       const struct settings *s, struct plan *p, char why[PLAN_WHY])
{
    const struct settings now = whatif_now(pipe);
    const bool set = s->workers != now.workers || s->prefetch != now.prefetch;
    if (set && pipe->by_hand)
        return refuse(why, "there is no loader to set");
    if (s->workers != now.workers)
        p->workers = s->workers;
    if (s->prefetch != now.prefetch)
        p->prefetch = s->prefetch;
    if (s->collate_speed > 0)
        p->collate_left = 1 / s->collate_speed;
    p->data_free = s->data_free;
    if (s->transform_speed > 0 && fabs(s->transform_speed - 1) > 1e-9) {
        const int rc = plan_samples(
            pipe, f, left_of_transform(pipe, s->transform_speed), p, why);
        p->sample_least_us = p->memo_least_us = 0; /* asked for: no floor */
        return rc;
    }
    return 0;
}

/* Larger by the loader, or else by the rows that the loop takes out of tensors itself. */
static int plan_batch(const struct facts *f, double times, struct plan *p,
                      char why[PLAN_WHY])
{
    const double rows = round(f->v[FACT_BATCH_SIZE]);
    if (!p->loader[0] && !(rows >= 1))
        return refuse(why, "how many rows its batches have is not known");
    if (!p->loader[0])
        p->rows = rows;
    p->batch = times;
    p->by_loop = true;
    return 0;
}

int plan_asked(const struct plan_known *known, const char *text,
               const struct settings *s, struct plan *ret_plan, char ret_why[PLAN_WHY])
{
    const struct facts *f = known->facts;
    struct plan p;
    plan_init(&p, known);
    (void)snprintf(p.asked, sizeof p.asked, "%s", text);
    if (s->exchange > 0)
        return refuse(ret_why, "ranks that exchange less cannot be tried");
    const int rc = s->loader ? plan_loader(known->pipeline, f, s, &p, ret_why) : 0;
    if (rc < 0)
        return rc;
    add_rare(&p, "logging", f->place[PLACE_LOG], s->logging);
    add_rare(&p, "checkpoint", "", s->checkpoint);
    add_rare(&p, "evaluation", "", s->evaluation);
    p.gc = s->gc;
    p.optimizer = s->optimizer;
    p.threads = s->threads;
    p.by_loop = s->checkpoint > 0 || s->evaluation > 0;
    const int more = s->batch > 0 ? plan_batch(f, s->batch, &p, ret_why) : 0;
    if (more == 0)
        *ret_plan = p;
    return more;
}

/* ---- A finding's own cure --------------------------------------------------------------- */

struct plan_case {
    const struct facts *f;
    const struct pipeline *pipe;
    const struct finding *finding;
    char *why;
};

typedef int cure_fn(const struct plan_case *c, struct plan *p);

static void say(struct plan *p, const char *name, double value)
{
    (void)snprintf(p->asked, sizeof p->asked, "%s=%.4g", name, value);
}

/* What a finding says it takes of the time to load, gone. */
static double left_after_gain(const struct plan_case *c)
{
    const double load = c->f->v[FACT_INPUT_SHARE];
    const double left = 1 - c->finding->gain.mid / fmax(load, 0.01);
    return within(left, 0.02, 1);
}

static int cure_workers(const struct plan_case *c, struct plan *p)
{
    const double best = c->f->v[FACT_WORKERS_BEST];
    if (c->pipe->by_hand || !c->pipe->known)
        return plan_by_hand(c->f, left_after_gain(c), p, c->why);
    if (isnan(best))
        return refuse(c->why, "no number of workers was named");
    p->workers = (int)best;
    say(p, "workers", best);
    return 0;
}

static int cure_transform(const struct plan_case *c, struct plan *p)
{
    const double share = c->f->v[FACT_TRANSFORM_OF_SAMPLE];
    const double left = share > 0 ? within(1 - share, 0, 1) : 0;
    (void)snprintf(p->asked, sizeof p->asked, "samples without their transform");
    return plan_samples(c->pipe, c->f, left, p, c->why);
}

/* Of a sample, what is left of its batch's making when all that goes is in its samples. */
static double left_of_sample(const struct pipeline *pipe, double of_making)
{
    return within(1 - (1 - of_making) / (1 - collate_of(pipe)), 0, 1);
}

/* The model's own cure: what was no call for files stays. */
static int cure_files(const struct plan_case *c, struct plan *p)
{
    const bool opens = strcmp(c->finding->id, "metadata_bound") == 0;
    const double making = c->pipe->by_hand
                              ? NAN
                              : gains_left_without_files(c->pipe, c->f, opens);
    const double left = isnan(making) ? left_after_gain(c)
                                      : left_of_sample(c->pipe, making);
    (void)snprintf(p->asked, sizeof p->asked, "samples without their files");
    return plan_samples(c->pipe, c->f, left, p, c->why);
}

static int cure_collate(const struct plan_case *c, struct plan *p)
{
    (void)snprintf(p->asked, sizeof p->asked, "collate in one copy");
    p->collate_left = 0;
    p->collate_least_us = COPY_US;
    p->collate_us_per_mb = COPY_US_PER_MB;
    return c->pipe->by_hand ? refuse(c->why, "there is no collate function") : 0;
}

static int cure_slow(const struct plan_case *c, struct plan *p)
{
    (void)snprintf(p->asked, sizeof p->asked, "samples without the slow ones");
    p->even = true;
    p->sample_left = 1;
    return c->pipe->by_hand || !c->pipe->known
               ? refuse(c->why, "no loader makes these samples")
               : 0;
}

static int cure_epochs(const struct plan_case *c, struct plan *p)
{
    if (c->f->v[FACT_PERSISTENT] != 0 || !(c->f->v[FACT_WORKERS] > 0))
        return refuse(c->why, "no setting of the loader keeps what is made anew");
    (void)snprintf(p->asked, sizeof p->asked, "persistent workers");
    p->persistent = true;
    p->by_loop = true;
    return 0;
}

static int cure_collector(const struct plan_case *c, struct plan *p)
{
    (void)c;
    (void)snprintf(p->asked, sizeof p->asked, "no collections in the loop");
    p->gc = NEVER;
    p->gc_freeze = true;
    return 0;
}

static int cure_optimizer(const struct plan_case *c, struct plan *p)
{
    (void)c;
    p->foreach = true;
    (void)snprintf(p->asked, sizeof p->asked, "torch's own optimizer in its place");
    return 0;
}

static int cure_logging(const struct plan_case *c, struct plan *p)
{
    add_rare(p, "logging", c->f->place[PLACE_LOG], SELDOM);
    say(p, "logging", SELDOM);
    return 0;
}

static int cure_sync(const struct plan_case *c, struct plan *p)
{
    const char *place = c->finding->place;
    if (!place[0])
        return refuse(c->why, "the function that waits is not known");
    add_rare(p, "sync", place, SELDOM);
    (void)snprintf(p->asked, sizeof p->asked, "results every %.0f steps", SELDOM);
    return 0;
}

/* So many times more seldom that `share` of the loop becomes `target`. */
static double times_for(double share, double target)
{
    return fmax(ceil(share / (1 - share) * (1 - target) / target), 2);
}

static double shares(const struct facts *f, enum fact share, enum fact beside)
{
    return within(f->v[share] + (f->v[beside] > 0 ? f->v[beside] : 0), 0, 0.99);
}

static int cure_checkpoint(const struct plan_case *c, struct plan *p)
{
    const double times = times_for(
        shares(c->f, FACT_CHECKPOINT_SHARE, FACT_CHECKPOINT_BESIDE), CHECKPOINT_TARGET);
    add_rare(p, "checkpoint", "", times);
    say(p, "checkpoint", times);
    p->by_loop = true;
    return 0;
}

static int cure_evaluation(const struct plan_case *c, struct plan *p)
{
    const double times = times_for(
        shares(c->f, FACT_EVALUATION_SHARE, FACT_EVALUATION_BESIDE), EVALUATION_TARGET);
    add_rare(p, "evaluation", "", times);
    say(p, "evaluation", times);
    p->by_loop = true;
    return 0;
}

static int cure_threads(const struct plan_case *c, struct plan *p)
{
    const double cores = c->f->v[FACT_CORES];
    p->threads = cores >= 1 ? (int)cores : 1;
    say(p, "threads", p->threads);
    return 0;
}

static int cure_lock(const struct plan_case *c, struct plan *p)
{
    p->apart = c->finding->place;
    (void)snprintf(p->asked, sizeof p->asked, "the other thread in a process");
    return 0;
}

/* A quarter of the memory there is for all of the program's processes: the rest is for what
 * they hold. */
static int cure_churn(const struct plan_case *c, struct plan *p)
{
    const double limit = c->f->v[FACT_MEMORY_LIMIT_MB];
    const double workers = c->f->v[FACT_WORKERS];
    p->keep_mb = (limit > 0 ? limit / 4 : KEEP_MB) / (1 + (workers > 0 ? workers : 0));
    (void)snprintf(p->asked, sizeof p->asked, "buffers used again");
    return 0;
}

static int cure_precision(const struct plan_case *c, struct plan *p)
{
    (void)c;
    p->single = true;
    (void)snprintf(p->asked, sizeof p->asked, "floats instead of doubles");
    return 0;
}

static int cure_padding(const struct plan_case *c, struct plan *p)
{
    if (c->pipe->by_hand || !p->loader[0])
        return refuse(c->why, "there is no loader whose batches could be made anew");
    p->alike = true;
    (void)snprintf(p->asked, sizeof p->asked, "batches of similar length");
    return 0;
}

static int cure_batch(const struct plan_case *c, struct plan *p)
{
    const double batch = c->f->v[FACT_BATCH_SIZE];
    const double times = fmax(round(COMMON_BATCH / batch), 2);
    say(p, "batch", times);
    return batch >= 1 ? plan_batch(c->f, times, p, c->why)
                      : refuse(c->why, "how large its batches are is not known");
}

static const struct {
    const char *id;
    cure_fn *cure;
} cures[] = {
    { "data_loading_bound", cure_workers },
    { "too_many_workers", cure_workers },
    { "preprocessing_bound", cure_transform },
    { "metadata_bound", cure_files },
    { "small_reads", cure_files },
    { "collate_bound", cure_collate },
    { "slow_samples", cure_slow },
    { "epoch_boundary_stall", cure_epochs },
    { "gc_pauses", cure_collector },
    { "optimizer_bound", cure_optimizer },
    { "logging_stall", cure_logging },
    { "sync_stall", cure_sync },
    { "checkpoint_stall", cure_checkpoint },
    { "evaluation_heavy", cure_evaluation },
    { "oversubscribed", cure_threads },
    { "batch_too_small", cure_batch },
    { "gil_contention", cure_lock },
    { "allocation_churn", cure_churn },
    { "precision_unused", cure_precision },
    { "padding_waste", cure_padding },
};

int plan_cure(const struct plan_known *known, const struct finding *finding,
              struct plan *ret_plan, char ret_why[PLAN_WHY])
{
    const struct plan_case c = { known->facts, known->pipeline, finding, ret_why };
    struct plan p;
    plan_init(&p, known);
    p.finding = finding->id;
    for (size_t i = 0; i < sizeof cures / sizeof *cures; i++)
        if (strcmp(cures[i].id, finding->id) == 0) {
            const int rc = cures[i].cure(&c, &p);
            if (rc < 0)
                return rc;
            if (!p.asked[0])
                (void)snprintf(p.asked, sizeof p.asked, "%s cured", finding->id);
            *ret_plan = p;
            return 0;
        }
    (void)snprintf(ret_why, PLAN_WHY, "no trial can stand for a cure of %s",
                   finding->id);
    return -ENOTSUP;
}

/* ---- Of a report ------------------------------------------------------------------------- */

/* Where the loader is made whose batches are trained with; "" unknown. */
static const char *loader_place(struct report *r)
{
    const struct loader *l = loaders_training(&r->loaders);
    char text[300];
    if (!l || !l->file || !l->file[0] || l->line <= 0)
        return "";
    (void)snprintf(text, sizeof text, "%s:%d", path_base(l->file), l->line);
    const char *copy = arena_strdup(&r->arena, text);
    return copy ? copy : "";
}

static int known_of(struct report *r, struct pipeline *pipe, struct plan_known *ret)
{
    struct facts *f = arena_alloc(&r->arena, sizeof *f);
    if (!f)
        return -ENOMEM;
    const int rc = facts_read(r, f);
    pipeline_of(r, pipe);
    *ret = (struct plan_known){ f, pipe, loader_place(r) };
    return rc;
}

int plan_of_settings(struct report *r, const struct report_forecast *asked,
                     struct plan *ret_plan, char ret_why[PLAN_WHY])
{
    struct plan_known known;
    struct pipeline pipe;
    const int rc = known_of(r, &pipe, &known);
    return rc < 0
               ? rc
               : plan_asked(&known, asked->text, &asked->settings, ret_plan, ret_why);
}

int plan_of_finding(struct report *r, const struct finding *finding,
                    struct plan *ret_plan, char ret_why[PLAN_WHY])
{
    struct plan_known known;
    struct pipeline pipe;
    const int rc = known_of(r, &pipe, &known);
    return rc < 0 ? rc : plan_cure(&known, finding, ret_plan, ret_why);
}

/* ---- As the layer reads it --------------------------------------------------------------- */

static void put_number(struct json_writer *w, const char *key, double value)
{
    json_key(w, key);
    json_put_double(w, value);
}

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text);
}

static void put_loader(struct json_writer *w, const struct plan *p)
{
    const bool larger = p->batch > 0 && !(p->rows > 0);
    if (p->workers < 0 && p->prefetch < 0 && !p->persistent && !larger)
        return;
    json_key(w, "loader");
    json_object_begin(w);
    if (p->workers >= 0)
        put_number(w, "workers", p->workers);
    if (p->prefetch > 0)
        put_number(w, "prefetch", p->prefetch);
    if (p->persistent)
        put_number(w, "persistent", 1);
    if (larger)
        put_number(w, "batch", p->batch);
    json_object_end(w);
}

static void put_rows(struct json_writer *w, const struct plan *p)
{
    if (!(p->rows > 0))
        return;
    json_key(w, "rows");
    json_object_begin(w);
    put_number(w, "from", p->rows);
    put_number(w, "times", p->batch);
    json_object_end(w);
}

static void put_kept(struct json_writer *w, const char *key, double left,
                     double least_us, double us_per_mb, bool even)
{
    if (isnan(left))
        return;
    json_key(w, key);
    json_object_begin(w);
    put_number(w, "left", left);
    put_number(w, "least_us", least_us);
    if (us_per_mb > 0)
        put_number(w, "us_per_mb", us_per_mb);
    if (even)
        put_number(w, "even", 1);
    json_object_end(w);
}

static void put_rare(struct json_writer *w, const struct plan *p)
{
    json_key(w, "seldom");
    json_array_begin(w);
    for (size_t i = 0; i < p->rare_count; i++) {
        json_object_begin(w);
        put_text(w, "what", p->rare[i].what);
        put_text(w, "place", p->rare[i].place);
        put_number(w, "times", p->rare[i].times);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_memo(struct json_writer *w, const struct plan *p)
{
    json_key(w, "memo");
    json_array_begin(w);
    if (p->memo_place[0]) {
        json_object_begin(w);
        put_text(w, "what", "loading");
        put_text(w, "place", p->memo_place);
        put_number(w, "left", p->memo_left);
        put_number(w, "least_us", p->memo_least_us);
        json_object_end(w);
    }
    json_array_end(w);
}

void plan_write(const struct plan *p, const struct plan_course *course, struct buf *out)
{
    struct json_writer w;
    json_init_buf(&w, out, JSON_STYLE_COMPACT);
    json_object_begin(&w);
    put_text(&w, "scratch", course->scratch);
    put_text(&w, "outcome", course->outcome);
    put_number(&w, "steps", (double)course->steps);
    put_number(&w, "warmup", (double)course->warmup);
    put_number(&w, "last", (double)course->last);
    put_number(&w, "seconds", course->seconds);
    put_number(&w, "least_s", course->least_s);
    json_key(&w, "whole");
    json_put_bool(&w, course->whole);
    put_text(&w, "place", p->loader);
    put_loader(&w, p);
    put_rows(&w, p);
    put_kept(&w, "sample", p->sample_left, p->sample_least_us, 0, p->even);
    put_kept(&w, "collate", p->collate_left, p->collate_least_us, p->collate_us_per_mb,
             false);
    if (p->data_free)
        put_number(&w, "free", 1);
    if (p->optimizer > 0)
        put_number(&w, "optimizer", p->optimizer);
    if (p->foreach)
        put_number(&w, "foreach", 1);
    if (p->gc > 0) {
        json_key(&w, "gc");
        json_object_begin(&w);
        put_number(&w, "times", p->gc);
        if (p->gc_freeze)
            put_number(&w, "freeze", 1);
        json_object_end(&w);
    }
    if (p->threads > 0)
        put_number(&w, "threads", p->threads);
    if (p->apart) {
        json_key(&w, "apart");
        json_object_begin(&w);
        put_text(&w, "place", p->apart);
        json_object_end(&w);
    }
    if (p->keep_mb > 0)
        put_number(&w, "keep", 1);
    if (p->single)
        put_number(&w, "precision", 1);
    if (p->alike)
        put_number(&w, "lengths", 1);
    put_rare(&w, p);
    put_memo(&w, p);
    json_object_end(&w);
    (void)json_finish(&w);
}
