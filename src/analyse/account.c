/* account.c: see account.h.
 *
 * What warm-up is can be told only when the median is known, so the first HEAD steps are
 * kept one by one; later ones are added up at once, and every k-th duration is kept for
 * quantiles, k doubling when the room is full.
 */
#include "analyse/account.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "num/summary.h"

enum { HEAD = 128, KEPT = 4096, EVENTS_MAX = 64000000 };

/* The first steps are warm-up while they take this much longer than the median, … */
static const double WARMUP_RATIO = 1.25;
/* … and this many deviations. At most a quarter of the steps can be. */
static const double WARMUP_DEVIATIONS = 5;

enum { AT_EPOCH = 1, AT_CHECKPOINT = 2, AT_EVALUATION = 4 };
static const unsigned extra_flags[EXTRAS] = {
    [EXTRA_CHECKPOINT] = AT_CHECKPOINT, [EXTRA_EVALUATION] = AT_EVALUATION
};

struct row {
    double wall_ns; /* without checkpoints and evaluations */
    double phase_ns[SONDE_PHASE_COUNT];
    double checkpoint_ns, evaluation_ns;
    unsigned flags, before; /* before: of the step before it */
    bool evaluated;         /* an evaluation ended, and nothing of training has begun */
    double between_ns;      /* outside of zones since then */
};

struct walk {
    const struct trace *trace;
    struct step_account *a;
    unsigned lane;
    uint64_t events;
    int stack_phase[MAX_DEPTH];
    unsigned stack_site[MAX_DEPTH], depth, too_deep;
    bool started, stepped, in_step; /* stepped: at least one has begun */
    int64_t last_ns;
    struct row now;
    struct row worked; /* as it was when something of training ended last … */
    bool has_worked;   /* … in this step */
    struct row head[HEAD];
    size_t head_count;
    struct row later; /* sum of steady steps behind the head */
    uint64_t later_count;
    double later_epoch_ns; /* whole time of steps at an epoch's change */
    uint64_t later_epochs;
    double kept[KEPT]; /* durations of steps that are not at a change of epochs */
    size_t kept_count;
    uint64_t candidates, every;
};

/* ---- Rows ------------------------------------------------------------------------- */

static int current_phase(const struct walk *w)
{
    const int phase = w->depth ? w->stack_phase[w->depth - 1] : SONDE_NO_PHASE;
    return phase == SONDE_NO_PHASE ? SONDE_OTHER : phase;
}

static void spend(struct row *row, int phase, double ns)
{
    if (phase == SONDE_CHECKPOINT) {
        row->checkpoint_ns += ns;
    } else if (phase == SONDE_EVALUATION) {
        row->evaluation_ns += ns;
    } else {
        row->phase_ns[phase] += ns;
        row->wall_ns += ns;
        if (phase == SONDE_OTHER && row->evaluated)
            row->between_ns += ns;
    }
}

/* Models are asked batch by batch, and what is made of their answers (ranking, metrics) is
 * in no zone. Between two answers it is evaluating. */
static void join_evaluations(struct row *row, int phase)
{
    if (phase == SONDE_NO_PHASE)
        return;
    if (phase == SONDE_EVALUATION && row->evaluated) {
        row->phase_ns[SONDE_OTHER] -= row->between_ns;
        row->wall_ns -= row->between_ns;
        row->evaluation_ns += row->between_ns;
    }
    row->evaluated = phase == SONDE_EVALUATION;
    row->between_ns = 0;
}

static void add_row(struct row *sum, const struct row *row)
{
    sum->wall_ns += row->wall_ns;
    for (int p = 0; p < SONDE_PHASE_COUNT; p++)
        sum->phase_ns[p] += row->phase_ns[p];
}

static void keep_duration(struct walk *w, double ns)
{
    if (w->kept_count == KEPT) {
        for (size_t i = 0; i < KEPT / 2; i++)
            w->kept[i] = w->kept[2 * i];
        w->kept_count = KEPT / 2;
        w->every *= 2;
    }
    if (w->candidates++ % w->every == 0)
        w->kept[w->kept_count++] = ns;
}

/* What belongs to no step's own time, wherever it happened. */
static void take_extras(struct walk *w, const struct row *row)
{
    w->a->checkpoint_ns += row->checkpoint_ns;
    w->a->evaluation_ns += row->evaluation_ns;
    w->a->checkpoints += (row->flags & AT_CHECKPOINT) != 0;
    w->a->evaluations += (row->flags & AT_EVALUATION) != 0;
}

/* A steady one, to its kind. With both extras it tells nothing of either. */
static void classify(struct step_account *a, const struct row *row)
{
    const unsigned any = AT_CHECKPOINT | AT_EVALUATION;
    struct step_class *to = !((row->flags | row->before) & any) ? &a->plain : NULL;
    for (int i = 0; i < EXTRAS; i++) {
        if ((row->flags & any) == extra_flags[i])
            to = &a->with[i];
        else if (!(row->flags & any) && (row->before & any) == extra_flags[i])
            to = &a->behind[i];
    }
    if (to) {
        to->count++;
        to->wall_ns += row->wall_ns;
    }
}

static void end_step(struct walk *w)
{
    const struct row *row = &w->now;
    w->a->steps++;
    take_extras(w, row);
    if (!(row->flags & AT_EPOCH))
        keep_duration(w, row->wall_ns);
    if (w->head_count < HEAD) {
        w->head[w->head_count++] = *row;
    } else if (row->flags & AT_EPOCH) {
        w->later_epoch_ns += row->wall_ns;
        w->later_epochs++;
    } else {
        add_row(&w->later, row);
        classify(w->a, row);
        w->later_count++;
    }
}

/* ---- Events ------------------------------------------------------------------------ */

static int zone_phase(const struct walk *w, unsigned site)
{
    const int around = w->depth ? w->stack_phase[w->depth - 1] : SONDE_NO_PHASE;
    const int own = trace_site(w->trace, site)->phase;
    if (around == SONDE_EVALUATION || around == SONDE_CHECKPOINT)
        return around;
    return own > SONDE_NO_PHASE && own < SONDE_PHASE_COUNT ? own : around;
}

static void on_begin(struct walk *w, unsigned site)
{
    if (w->depth == MAX_DEPTH) {
        w->too_deep++;
        return;
    }
    const int phase = zone_phase(w, site);
    join_evaluations(&w->now, phase);
    w->stack_site[w->depth] = site;
    w->stack_phase[w->depth++] = phase;
    if (phase == SONDE_CHECKPOINT)
        w->now.flags |= AT_CHECKPOINT;
    if (phase == SONDE_EVALUATION)
        w->now.flags |= AT_EVALUATION;
}

/* As in timeline.c: an end closes what was left open inside; one without a begin is
 * of a zone from before the retained events. */
static void on_end(struct walk *w, unsigned site)
{
    unsigned at = w->depth;
    if (w->too_deep > 0) {
        w->too_deep--;
        return;
    }
    while (at > 0 && w->stack_site[at - 1] != site)
        at--;
    if (at == 0)
        return;
    const int phase = w->stack_phase[at - 1];
    w->depth = at - 1;
    if (w->in_step && phase >= SONDE_BACKWARD && phase <= SONDE_OPTIMIZER) {
        w->worked = w->now;
        w->has_worked = true;
    }
}

/* The time so far was a step, or none. */
static void close_row(struct walk *w)
{
    if (w->in_step) {
        end_step(w);
    } else {
        take_extras(w, &w->now);
        *(w->stepped ? &w->a->between_ns : &w->a->startup_ns) += w->now.wall_ns;
        if (!w->stepped)
            w->a->startup_work_ns += w->now.phase_ns[SONDE_FORWARD] +
                                     w->now.phase_ns[SONDE_BACKWARD] +
                                     w->now.phase_ns[SONDE_OPTIMIZER];
        else
            w->a->between_idle_ns += w->now.phase_ns[SONDE_OTHER] +
                                     w->now.phase_ns[SONDE_DATA_LOADING];
    }
}

/* The row without its first part. */
static struct row rest_of(const struct row *whole, const struct row *part)
{
    struct row rest = { .flags = whole->flags & ~part->flags, .before = part->flags };
    rest.wall_ns = whole->wall_ns - part->wall_ns;
    for (int p = 0; p < SONDE_PHASE_COUNT; p++)
        rest.phase_ns[p] = whole->phase_ns[p] - part->phase_ns[p];
    rest.checkpoint_ns = whole->checkpoint_ns - part->checkpoint_ns;
    rest.evaluation_ns = whole->evaluation_ns - part->evaluation_ns;
    rest.evaluated = whole->evaluated;
    rest.between_ns = whole->between_ns;
    return rest;
}

/* It was over when its work was, and what came then is no step. */
static void end_with_work(struct walk *w)
{
    const struct row rest = rest_of(&w->now, &w->worked);
    w->now = w->worked;
    end_step(w);
    w->in_step = false;
    w->now = rest;
}

static void on_step(struct walk *w, unsigned kind, double ago_ns)
{
    if (kind == STEP_SAMPLES)
        return;
    /* What was begun is taken back: its time goes on as time outside of steps. */
    if (kind == STEP_CANCEL) {
        w->in_step = false;
        return;
    }
    if (kind == STEP_END && ago_ns > 0 && w->in_step && w->has_worked) {
        end_with_work(w);
        return; /* what follows goes on with the rest */
    }
    close_row(w);
    /* A zone may be open across the step. Behind a pause the first step waits for workers
     * to start. */
    const int phase = current_phase(w);
    const bool resumes = kind == STEP_NEXT && w->stepped && !w->in_step;
    const unsigned before = w->now.flags;
    w->now = (struct row){ .flags = (phase == SONDE_CHECKPOINT ? AT_CHECKPOINT : 0) |
                                    (phase == SONDE_EVALUATION ? AT_EVALUATION : 0) |
                                    (resumes ? AT_EPOCH : 0),
                           .before = before };
    w->has_worked = false;
    w->in_step = kind == STEP_NEXT;
    w->stepped |= w->in_step;
}

/* Adapters and programs mark epochs; names as people write them: "epoch", "epoch 3". */
static void on_mark(struct walk *w, unsigned site)
{
    if (strncmp(trace_site(w->trace, site)->name, "epoch", 5) == 0)
        w->now.flags |= AT_EPOCH;
}

static void pass_time(struct walk *w, int64_t time_ns)
{
    if (w->started && time_ns > w->last_ns)
        spend(&w->now, current_phase(w), (double)(time_ns - w->last_ns));
    if (!w->started || time_ns > w->last_ns)
        w->last_ns = time_ns;
    w->started = true;
}

static int take_event(void *arg, const struct trace_event *e)
{
    struct walk *w = arg;
    if (e->lane != w->lane)
        return w->events > 0; /* ours is over */
    if (++w->events > EVENTS_MAX)
        return 1;
    pass_time(w, e->time_ns);
    switch (e->kind) {
    case TRACE_BEGIN:
        on_begin(w, e->site);
        break;
    case TRACE_END:
        on_end(w, e->site);
        break;
    case TRACE_STEP:
        on_step(w, e->sub, e->wall_ns);
        break;
    case TRACE_MARK:
        on_mark(w, e->site);
        break;
    case TRACE_THREAD:
        w->depth = w->too_deep = 0;
        break;
    default:
        break;
    }
    return 0;
}

/* ---- What it comes to --------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void find_median(struct walk *w)
{
    struct step_account *a = w->a;
    double away[KEPT];
    if (w->kept_count == 0)
        return;
    qsort(w->kept, w->kept_count, sizeof *w->kept, compare);
    a->median_ns = summary_quantile(w->kept, w->kept_count, 0.50);
    a->p95_ns = summary_quantile(w->kept, w->kept_count, 0.95);
    a->p99_ns = summary_quantile(w->kept, w->kept_count, 0.99);
    double slow_ns = 0;
    size_t slow = 0;
    for (size_t i = 0; i < w->kept_count; i++) {
        away[i] = fabs(w->kept[i] - a->median_ns);
        if (w->kept[i] > 2 * a->median_ns) {
            slow_ns += w->kept[i] - a->median_ns;
            slow++;
        }
    }
    const double scale = (double)w->candidates / (double)w->kept_count;
    a->slow_ns = slow_ns * scale;
    a->slow = (uint64_t)llround((double)slow * scale);
    a->mad_ns = median_of(away, w->kept_count);
}

static size_t count_warmup(const struct walk *w)
{
    const struct step_account *a = w->a;
    const double spread = WARMUP_DEVIATIONS * 1.4826 * a->mad_ns;
    const double limit = fmax(a->median_ns * WARMUP_RATIO, a->median_ns + spread);
    const size_t most = a->steps / 4 < w->head_count ? a->steps / 4 : w->head_count;
    size_t n = 0;
    while (n < most && w->head[n].wall_ns > limit)
        n++;
    return n;
}

/* Steps at the change of an epoch: what they took beyond ordinary ones. */
static void add_epoch_steps(struct step_account *a, double wall_ns, uint64_t count)
{
    const double ordinary = isnan(a->median_ns) ? 0 : a->median_ns * (double)count;
    const double extra = fmax(wall_ns - ordinary, 0);
    a->epoch_ns += extra;
    a->steady_ns += wall_ns - extra;
    a->epochs += count;
}

static void sum_up(struct walk *w)
{
    struct step_account *a = w->a;
    struct row steady = w->later;
    a->warmup = count_warmup(w);
    a->steady = w->later_count;
    for (size_t i = 0; i < w->head_count; i++) {
        const struct row *row = &w->head[i];
        if (i < a->warmup) {
            a->warmup_ns += row->wall_ns;
        } else if (row->flags & AT_EPOCH) {
            add_epoch_steps(a, row->wall_ns, 1);
        } else {
            add_row(&steady, row);
            classify(a, row);
            a->steady++;
        }
    }
    if (w->later_epochs)
        add_epoch_steps(a, w->later_epoch_ns, w->later_epochs);
    a->steady_ns += steady.wall_ns;
    a->mean_ns = a->steady ? steady.wall_ns / (double)a->steady : NAN;
    a->phases.has_main = a->steady > 0;
    memcpy(a->phases.total_ns, steady.phase_ns, sizeof steady.phase_ns);
    phase_split_close(&a->phases, steady.wall_ns, 0);
}

static bool find_lane(const struct trace *trace, unsigned *ret_lane)
{
    const struct trace_lane *best = NULL;
    for (unsigned i = 0; i < trace_lane_count(trace); i++) {
        const struct trace_lane *lane = trace_lane(trace, i);
        if (lane && lane->steps > 0 &&
            (!best || (lane->is_main && !best->is_main) ||
             (lane->is_main == best->is_main && lane->steps > best->steps)))
            best = lane;
    }
    if (best)
        *ret_lane = best->number;
    return best;
}

static void close_account(struct walk *w, int64_t to_ns)
{
    struct step_account *a = w->a;
    /* The last step is not over when the program is: what came behind it is the end. */
    pass_time(w, to_ns);
    take_extras(w, &w->now);
    a->end_ns = w->now.wall_ns;
    find_median(w);
    sum_up(w);
    a->known = a->steps > 0;
    a->wall_ns = a->startup_ns + a->warmup_ns + a->steady_ns + a->checkpoint_ns +
                 a->evaluation_ns + a->epoch_ns + a->between_ns + a->end_ns;
}

double account_loop_ns(const struct step_account *a)
{
    return a->known ? a->wall_ns - a->startup_ns - a->end_ns : NAN;
}

/* Fewer steps say little about the usual one. */
enum { LEAST_PLAIN = 8 };

static double beyond(const struct step_class *some, double usual_ns)
{
    return some->wall_ns - (double)some->count * usual_ns;
}

double account_beside_ns(const struct step_account *a, enum account_extra extra)
{
    const struct step_class *with = &a->with[extra], *behind = &a->behind[extra];
    if (with->count == 0)
        return 0;
    if (a->plain.count >= LEAST_PLAIN) {
        const double usual_ns = a->plain.wall_ns / (double)a->plain.count;
        return beyond(with, usual_ns) + beyond(behind, usual_ns);
    }
    /* Every second step: those behind are the usual ones. */
    return behind->count >= LEAST_PLAIN
               ? beyond(with, behind->wall_ns / (double)behind->count)
               : NAN;
}

int account_read(const struct trace *trace, int64_t from_ns, int64_t to_ns,
                 struct step_account *ret_account)
{
    struct step_account a = {
        .partial = !trace_info(trace)->timeline_complete,
        .median_ns = NAN,
        .mean_ns = NAN,
        .mad_ns = NAN,
        .p95_ns = NAN,
        .p99_ns = NAN,
        .drift = NAN,
        .drift_low = NAN,
        .drift_high = NAN,
    };
    struct walk *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    *w = (struct walk){ .trace = trace, .a = &a, .every = 1 };
    if (find_lane(trace, &w->lane)) {
        /* Older steps are gone: nothing is known of the time before. */
        if (!a.partial && from_ns) {
            w->started = true;
            w->last_ns = from_ns;
        }
        const int rc = trace_events(trace, take_event, w);
        if (rc >= 0 && w->stepped) {
            a.partial |= w->events > EVENTS_MAX;
            close_account(w, to_ns);
        }
    }
    free(w);
    *ret_account = a;
    return 0;
}

/* ---- Over the run ---------------------------------------------------------------------- */

int account_trend(struct step_account *a, const struct step_series *series)
{
    static const struct change_limits limits = { .p = 1e-4, .ratio = 0.1, .part = 8 };
    double x[STEP_POINTS], y[STEP_POINTS];
    size_t n = 0;
    struct trend t;
    for (size_t i = 0; i < series->count; i++)
        if (i * series->per_point >= a->warmup) {
            x[n] = (double)i;
            y[n++] = series->points[i].mean_ns;
        }
    if (n < 16 || !(a->median_ns > 0))
        return 0;
    int rc = trend_fit(x, y, n, 0.99, &t);
    if (rc == 0) {
        const double span = (double)(n - 1) / a->median_ns;
        a->drift_known = true;
        a->drift = t.slope * span;
        a->drift_low = t.low * span;
        a->drift_high = t.high * span;
        rc = change_find(y, n, &limits, a->changes, ACCOUNT_CHANGES, &a->change_count);
    }
    for (size_t i = 0; rc == 0 && i < a->change_count; i++)
        a->changes[i].at += series->count - n;
    return rc == -ENOMEM ? rc : 0;
}
