/* facts_time.c: facts about steps, phases and the run around them. */
#include <math.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/report.h"
#include "base/files.h"

/* Fewer steps say little about a usual one. */
enum { LEAST_STEPS = 8 };

static void set_shares(struct facts *f, const struct phase_split *s)
{
    static const struct {
        enum fact fact;
        int phase;
    } rows[] = {
        { FACT_WAIT_SHARE, SONDE_DATA_LOADING },
        { FACT_COLLATE_SHARE, SONDE_COLLATE },
        { FACT_TRANSFER_SHARE, SONDE_TRANSFER },
        { FACT_FORWARD_SHARE, SONDE_FORWARD },
        { FACT_BACKWARD_SHARE, SONDE_BACKWARD },
        { FACT_OPTIMIZER_SHARE, SONDE_OPTIMIZER },
        { FACT_SYNC_SHARE, SONDE_SYNC },
        { FACT_COMMUNICATION_SHARE, SONDE_COMMUNICATION },
        { FACT_OTHER_SHARE, SONDE_OTHER },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        f->v[rows[i].fact] = s->share[rows[i].phase];
    f->v[FACT_PREPROCESSING_SHARE] = s->share[SONDE_PREPROCESSING] +
                                     s->share[SONDE_AUGMENTATION];
    f->v[FACT_INPUT_SHARE] = f->v[FACT_WAIT_SHARE] + f->v[FACT_PREPROCESSING_SHARE] +
                             f->v[FACT_COLLATE_SHARE];
}

static void set_parts(struct facts *f, const struct step_account *a)
{
    const double loop = account_loop_ns(a);
    if (!(loop > 0))
        return;
    f->v[FACT_STEADY_SHARE] = a->steady_ns / loop;
    f->v[FACT_WARMUP_SHARE] = a->warmup_ns / loop;
    f->v[FACT_EPOCH_SHARE] = a->epoch_ns / loop;
    f->v[FACT_EPOCHS] = (double)a->epochs;
    f->v[FACT_CHECKPOINT_SHARE] = a->checkpoint_ns / loop;
    f->v[FACT_CHECKPOINTS] = (double)a->checkpoints;
    f->v[FACT_EVALUATION_SHARE] = a->evaluation_ns / loop;
    f->v[FACT_EVALUATIONS] = (double)a->evaluations;
    f->v[FACT_CHECKPOINT_BESIDE] = account_beside_ns(a, EXTRA_CHECKPOINT) / loop;
    f->v[FACT_EVALUATION_BESIDE] = account_beside_ns(a, EXTRA_EVALUATION) / loop;
    if (!a->partial) {
        const double startup = a->startup_ns - a->startup_work_ns;
        f->v[FACT_STARTUP_S] = startup / 1e9;
        f->v[FACT_STARTUP_SHARE] = startup / a->wall_ns;
    }
}

static void set_steps(struct facts *f, const struct step_account *a)
{
    f->v[FACT_STEPS] = (double)a->steps;
    f->v[FACT_STEP_MS] = a->median_ns / 1e6;
    f->v[FACT_STEP_MEAN_MS] = a->mean_ns / 1e6;
    f->v[FACT_STEP_P99_MS] = a->p99_ns / 1e6;
    if (a->steady_ns > 0) {
        f->v[FACT_SLOW_STEP_SHARE] = a->slow_ns / a->steady_ns;
        f->v[FACT_SLOW_STEPS] = (double)a->slow;
    }
    if (a->drift_known)
        f->v[FACT_DRIFT] = a->drift;
    set_shares(f, &a->phases);
}

/* A program that names phases but no steps: all of its time is judged. What is outside
 * zones is not known to be anything. */
static void set_whole(struct facts *f, const struct phase_split *s)
{
    if (!s->has_main || !(s->wall_ns > 0) || s->share[SONDE_OTHER] > 0.5)
        return;
    set_shares(f, s);
    f->v[FACT_CHECKPOINT_SHARE] = s->share[SONDE_CHECKPOINT];
    f->v[FACT_EVALUATION_SHARE] = s->share[SONDE_EVALUATION];
}

/* ---- Places --------------------------------------------------------------------------- */

static int own_phase(const struct report *r, uint32_t index)
{
    for (; index; index = r->ops.ops[index].parent)
        if (r->ops.ops[index].phase != SONDE_NO_PHASE)
            return r->ops.ops[index].phase;
    return SONDE_OTHER;
}

/* The longest zone of a phase on the main thread, if it says where it is. */
static void place_of_phase(struct report *r, struct facts *f, int phase,
                           enum fact_place place)
{
    const struct op *best = NULL;
    for (size_t i = 0; i < r->ops.order_count; i++) {
        const uint32_t at = r->ops.order[i];
        const struct op *op = &r->ops.ops[at];
        if (op->kind == OP_ZONE && own_phase(r, at) == phase && op->file[0] &&
            (!best || op->main_self_ns > best->main_self_ns))
            best = op;
    }
    if (!best)
        return;
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s:%d", path_base(best->file), best->line);
    fact_place(r, f, place, &b);
    buf_release(&b);
}

/* ---- Imports ------------------------------------------------------------------------- */

static bool is_import(const struct op *op)
{
    return op->kind == OP_ZONE && strncmp(op->name, "import ", 7) == 0;
}

static bool is_in_import(const struct report *r, uint32_t index)
{
    for (index = r->ops.ops[index].parent; index; index = r->ops.ops[index].parent)
        if (is_import(&r->ops.ops[index]))
            return true;
    return false;
}

static bool has_python(const struct report *r)
{
    return r->layer.present || r->layer.without || r->python.present ||
           r->main_process >= r->process_count ||
           strstr(path_base(r->processes[r->main_process].exe), "python");
}

/* Where nobody looks at Python's stacks its layer still tells of the imports that take
 * longest. A program without Python has none. */
static void set_imports(const struct report *r, struct facts *f)
{
    double ns = 0;
    for (uint32_t i = 1; i < r->ops.count; i++)
        if (is_import(&r->ops.ops[i]) && !is_in_import(r, i))
            ns += r->ops.ops[i].main_ns;
    if (ns > 0 || !has_python(r)) {
        f->v[FACT_IMPORT_S] = ns / 1e9;
        f->source[FACT_IMPORT_S] = "zones";
    }
}

void facts_of_time(struct report *r, struct facts *f)
{
    const struct step_account *a = &r->account;
    f->v[FACT_RUN_S] = report_duration_s(r);
    f->v[FACT_LOOP_S] = account_loop_ns(&r->account) / 1e9;
    if (a->known && a->steps >= LEAST_STEPS) {
        set_parts(f, a);
        set_steps(f, a);
        if (r->phases.count[SONDE_COMMUNICATION])
            f->v[FACT_COLLECTIVES] = (double)r->phases.count[SONDE_COMMUNICATION] /
                                     (double)a->steps;
    } else {
        set_whole(f, &r->phases);
    }
    set_imports(r, f);
    place_of_phase(r, f, SONDE_DATA_LOADING, PLACE_TRANSFORM);
    place_of_phase(r, f, SONDE_PREPROCESSING, PLACE_TRANSFORM);
    place_of_phase(r, f, SONDE_COLLATE, PLACE_COLLATE);
    place_of_phase(r, f, SONDE_OPTIMIZER, PLACE_OPTIMIZER);
    place_of_phase(r, f, SONDE_SYNC, PLACE_SYNC);
    place_of_phase(r, f, SONDE_CHECKPOINT, PLACE_CHECKPOINT);
    place_of_phase(r, f, SONDE_EVALUATION, PLACE_EVALUATION);
}
