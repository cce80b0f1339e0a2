/* rules_step.c: rules about the step itself and what stands between steps. */
#include "analyse/habits.h"
#include "analyse/rules.h"

static bool judge_optimizer(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, OPTIMIZER_SHARE);
    if (!(share >= c->t->optimizer))
        return false;
    /* The interpreter's part goes, about half of it: on the host every parameter still
     * has its operators, called from C++; and all bytes are moved as before. */
    draft_time(c, d, share, 0.2, 0.5, 0.9);
    buf_printf(&d->text, "%.0f %% of every step is the optimizer.", 100 * share);
    d->place = PLACE_OF(c, OPTIMIZER);
    buf_puts(&d->advice, "Use an implementation that updates all parameters at once "
                         "(foreach=True or fused=True in torch.optim)");
    put_place(&d->advice, " at ", PLACE_OF(c, OPTIMIZER));
    buf_puts(&d->advice, "; larger batches or accumulation step less often");
    return true;
}

/* How often what is done "every N steps" is done, as the advice says. */
enum { SELDOM = 50 };

/* Something that took `share` is done every SELDOM-th time only; at least, every fifth. */
static struct gain gain_of_seldom(double share)
{
    return (struct gain){ 0.8 * share, share * (1 - 1.0 / SELDOM),
                          fmin(1 - 0.9 * (1 - share), 0.99) };
}

/* Something that was `share` of the loop is to be at most `target` of it. At least, it is
 * done five times less often. */
static struct gain gain_of_target(double share, double target)
{
    const double mid = fmax(1 - (1 - share) / (1 - target), 0.8 * share);
    return (struct gain){ fmin(0.8 * share, mid), mid,
                          fmin(1 - 0.9 * (1 - share), 0.99) };
}

/* What is behind a lock is the holder's work, and only its result has to be exchanged. */
static void advise_lock(const struct rule_case *c, struct draft *d)
{
    buf_puts(&d->text, " for a lock");
    put_place(&d->text, ", at ", PLACE_OF(c, LOCK));
    put_place(&d->text, "; others compute most at ", PLACE_OF(c, HOLDER));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, LOCK);
    buf_puts(&d->advice, "Hold the lock for a copy in and a copy out, and calculate "
                         "without it");
    put_place(&d->advice, ": ", PLACE_OF(c, HOLDER));
    buf_puts(&d->advice, "; or read a copy that is a step old");
}

static void advise_results(const struct rule_case *c, struct draft *d)
{
    buf_puts(&d->text, " for results");
    put_place(&d->text, ", at ", PLACE_OF(c, SYNC));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, SYNC);
    buf_printf(&d->advice,
               "Ask for values (.item(), .cpu(), print of a tensor) every N steps, say "
               "%d, instead of every step",
               SELDOM);
    put_place(&d->advice, ": ", PLACE_OF(c, SYNC));
}

/* Results are waited for in zones, locks outside of all: together they are the wait. */
static bool judge_sync(const struct rule_case *c, struct draft *d)
{
    const double results = FACT_OF(c, SYNC_SHARE);
    const double lock = FACT_OF(c, LOCK_SHARE) > 0 ? FACT_OF(c, LOCK_SHARE) : 0;
    const double share = fmin(results + lock, 1);
    if (!(share >= c->t->sync))
        return false;
    /* A card still has its work to do when nobody waits for it; others need not. */
    const double busy = FACT_OF(c, GPU_BUSY);
    const double had = isnan(busy) ? 1 : fmax(1 - busy, 0.1);
    d->stake = rule_of_run(c, share);
    d->gain = gain_of_seldom(results * had + lock);
    d->gain.high = fmax(d->gain.high, share);
    buf_printf(&d->text, "%.0f %% of every step waits", 100 * share);
    if (lock > results)
        advise_lock(c, d);
    else
        advise_results(c, d);
    return true;
}

static bool judge_launch(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, LAUNCH_SHARE);
    if (!(share >= c->t->launch) || !(FACT_OF(c, GPU_BUSY) < 0.8))
        return false;
    draft_time(c, d, 1 - FACT_OF(c, GPU_BUSY), 0.3, 0.6, 0.9);
    d->stake = rule_of_run(c, share);
    buf_printf(
        &d->text,
        "The host takes %.0f %% of the step to launch kernels, and the card waits "
        "for them.",
        100 * share);
    d->place = PLACE_OF(c, OVERHEAD);
    buf_puts(&d->advice,
             "torch.compile or CUDA graphs, fused operators, larger batches");
    return true;
}

/* A batch that is large enough for most models. */
static const double COMMON_BATCH = 64;

/* What every step pays, however many samples it has. The gain is of the time for the same
 * samples. */
static void gain_of_larger_batch(const struct rule_case *c, struct draft *d,
                                 double batch)
{
    const struct fixed_share fixed = habits_fixed_share(c->f);
    const double times = fmax(COMMON_BATCH / fmax(batch, 1), 2);
    const double mid = fmax(1 - habits_left_of_samples(fixed.mid, times), 0);
    d->gain = (struct gain){ fmin(fixed.low, mid), mid,
                             fmax(fmin(1 - 0.5 * (1 - mid), 0.99), mid) };
}

/* Fixed costs of a step, on the host: what is outside compute kernels. */
static bool judge_batch(const struct rule_case *c, struct draft *d)
{
    const double overhead = habits_step_overhead(c->f);
    const double batch = FACT_OF(c, BATCH_SIZE);
    const bool rows = fact_known(c->f, FACT_BATCH_ROWS);
    if (!(overhead >= c->t->overhead) || !(batch <= c->t->small_batch))
        return false;
    /* Steps that load have another illness, and workers' CPU time is not the steps'. */
    const double samples = FACT_OF(c, SAMPLE_MS) * batch / FACT_OF(c, STEP_MS);
    const bool loads = FACT_OF(c, INPUT_SHARE) >= 0.3 && !(samples < 0.3);
    if (loads || FACT_OF(c, WORKERS) > 0 || FACT_OF(c, STEP_MS) > 50)
        return false;
    /* What the program does itself, outside of all phases, is no cost of the framework. */
    if (FACT_OF(c, OTHER_SHARE) >= c->t->own_work)
        return false;
    const double own = FACT_OF(c, OWN_SHARE) > 0 ? FACT_OF(c, OWN_SHARE) : 0;
    d->stake = rule_of_run(c, overhead * (1 - own));
    gain_of_larger_batch(c, d, batch);
    buf_printf(&d->text,
               "%.0f %% of CPU time in %s is not computing: each step of %s%.0f %s%s "
               "pays for the interpreter and the framework.",
               100 * overhead, own >= 0.05 ? "training" : "steps",
               rows ? "at most " : "", batch, rows ? "row" : "sample",
               batch == 1 ? "" : "s");
    d->place = rows ? PLACE_OF(c, HOT) : PLACE_OF(c, LOADER);
    buf_printf(&d->advice, "A larger batch, say %.0f (now %s%.0f%s)", COMMON_BATCH,
               rows ? "" : "batch_size=", batch,
               rows ? " rows, by the shapes the model sees: no loader tells" : "");
    if (!rows)
        put_place(&d->advice, " at ", PLACE_OF(c, LOADER));
    buf_puts(&d->advice, "; it changes the training: the learning rate goes with it");
    return true;
}

static bool judge_precision(const struct rule_case *c, struct draft *d)
{
    const double doubles = FACT_OF(c, DOUBLE_SHARE);
    const double tensor = FACT_OF(c, TENSOR_CORE_SHARE);
    const bool on_card = tensor < c->t->tensor_cores && FACT_OF(c, GPU_BUSY) >= 0.5;
    if (!(doubles >= c->t->float64) && !on_card)
        return false;
    /* Half the bytes and twice the numbers in a register for everything that computes in
     * double, operators without a telling name too. */
    const double kernels = FACT_OF(c, KERNEL_SHARE);
    const double of_kernels = kernels > doubles ? doubles / kernels : 1;
    const double compute = FACT_OF(c, FORWARD_SHARE) + FACT_OF(c, BACKWARD_SHARE) +
                           FACT_OF(c, OPTIMIZER_SHARE);
    const double share = on_card ? FACT_OF(c, GPU_BUSY)
                         : isnan(compute)
                             ? doubles
                             : fmin(fmax(compute * of_kernels, doubles), 1);
    d->stake = on_card ? 0.3 * share : rule_of_run(c, 0.5 * share);
    d->gain = on_card ? (struct gain){ 0.1 * share, 0.4 * share, 0.7 * share }
                      : (struct gain){ 0.3 * share, 0.5 * share, 0.65 * share };
    if (on_card)
        buf_puts(&d->text, "The card computes in float32 without its tensor cores.");
    else
        buf_printf(&d->text, "%.0f %% of CPU time computes in float64.", 100 * doubles);
    d->place = on_card ? "" : PLACE_OF(c, HOT);
    buf_puts(&d->advice, on_card ? "torch.autocast with bfloat16, or "
                                   "torch.set_float32_matmul_precision('high')"
                                 : "float32: model.float() and data.float(), "
                                   "numpy arrays with dtype=np.float32");
    put_place(&d->advice, "; most of it at ", d->place);
    return true;
}

static bool judge_compile(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, COMPILE_SHARE);
    if (!(share >= c->t->compile))
        return false;
    d->stake = share;
    /* What is new runs slowly the first time, and is made by code around the compiler: with
     * neither, backward and the optimizer are what is left for sure. */
    const double rest = FACT_OF(c, BACKWARD_SHARE) + FACT_OF(c, OPTIMIZER_SHARE);
    d->gain = (struct gain){ 0.5 * share, share,
                             isnan(rest) ? share : fmax(share, fmin(1 - rest, 0.98)) };
    buf_printf(&d->text, "%.0f %% of the time is spent compiling, after warm-up too.",
               100 * share);
    d->place = PLACE_OF(c, HOT);
    buf_puts(&d->advice, "Give shapes that do not change (pad to a few sizes, "
                         "drop_last=True) or torch.compile(dynamic=True); "
                         "TORCH_LOGS=recompiles tells why");
    return true;
}

/* In their zones, and what steps with them take longer than steps without: metrics made
 * of a model's answers, files synced behind torch.save(), caches filled again. */
static double with_beside(double share, double beside)
{
    return beside > 0 ? fmin(share + beside, 1) : share;
}

static bool judge_checkpoint(const struct rule_case *c, struct draft *d)
{
    const double share = with_beside(FACT_OF(c, CHECKPOINT_SHARE),
                                     FACT_OF(c, CHECKPOINT_BESIDE));
    if (!(share >= c->t->checkpoint))
        return false;
    d->stake = share;
    d->gain = gain_of_target(share, 0.02);
    /* What was written is still on its way to the disk while the next steps compute. */
    d->gain.high = fmax(d->gain.high, fmin(1.3 * share, 0.99));
    buf_printf(&d->text, "%.0f %% of %s goes into checkpoints", 100 * share,
               rule_loop_words(c));
    if (FACT_OF(c, CHECKPOINTS) >= 1)
        buf_printf(&d->text, ", %.0f of them", FACT_OF(c, CHECKPOINTS));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, CHECKPOINT);
    buf_puts(&d->advice,
             "Write checkpoints less often, so that they take 2 % of the loop "
             "at most, or in the background from a copy");
    put_place(&d->advice, " (", PLACE_OF(c, CHECKPOINT));
    if (PLACE_OF(c, CHECKPOINT)[0])
        buf_putc(&d->advice, ')');
    return true;
}

static bool judge_logging(const struct rule_case *c, struct draft *d)
{
    const double log = FACT_OF(c, LOG_SHARE);
    const double synced = FACT_OF(c, SYNC_IO_SHARE);
    const double share = fmax(log, synced);
    if (!(share >= c->t->logging))
        return false;
    d->stake = share;
    d->gain = gain_of_seldom(habits_log_share(c->f));
    /* What is computed only to be logged goes with it; what was written is still on its
     * way to the disk while the next steps compute. */
    d->gain.high = fmax(d->gain.high, fmin(1.4 * share, 0.98));
    buf_printf(&d->text, "%.0f %% of %s goes into logging%s", 100 * share,
               rule_loop_words(c), synced >= log ? " and flushing files" : "");
    put_place(&d->text, ", at ", PLACE_OF(c, LOG));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, LOG);
    buf_printf(&d->advice, "Log every N steps, say %d, without flushing each time",
               SELDOM);
    put_place(&d->advice, ": ", PLACE_OF(c, LOG));
    put_place(&d->advice, "; written to ", PLACE_OF(c, LOG_FILE));
    return true;
}

static bool judge_evaluation(const struct rule_case *c, struct draft *d)
{
    const double share = with_beside(FACT_OF(c, EVALUATION_SHARE),
                                     FACT_OF(c, EVALUATION_BESIDE));
    if (!(share >= c->t->evaluation))
        return false;
    d->stake = share;
    d->gain = gain_of_target(share, 0.1);
    buf_printf(&d->text, "%.0f %% of %s is evaluation", 100 * share,
               rule_loop_words(c));
    put_place(&d->text, ", most of it at ", PLACE_OF(c, EVALUATION));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, EVALUATION);
    buf_puts(&d->advice,
             "Evaluate less often or on a part of the data, so that it takes "
             "a tenth of the loop at most, with larger batches and without "
             "gradients (torch.inference_mode())");
    return true;
}

static bool judge_startup(const struct rule_case *c, struct draft *d)
{
    const double imports = FACT_OF(c, IMPORT_S);
    const double own = FACT_OF(c, STARTUP_S) - imports;
    const double share = own / FACT_OF(c, RUN_S);
    if (!(share >= c->t->startup) || !(own >= c->t->startup_s))
        return false;
    d->stake = share;
    d->gain = (struct gain){ 0.4 * share, 0.8 * share, share };
    buf_printf(&d->text, "%.1f s of %.1f s pass before the first step", own,
               FACT_OF(c, RUN_S));
    if (imports > 0.5)
        buf_printf(&d->text, " (%.1f s more are imports)", imports);
    put_place(&d->text, ", most of them at ", PLACE_OF(c, STARTUP));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, STARTUP);
    buf_puts(&d->advice,
             "Keep what is prepared at the start in a file for the next run");
    put_place(&d->advice, ": ", PLACE_OF(c, STARTUP));
    return true;
}

const struct rule rules_step[] = {
    { "optimizer_bound", "OPTIMIZER-BOUND", RULES_STEP, .judge = judge_optimizer,
      .needs = { FACT_OPTIMIZER_SHARE },
      .shows = { FACT_STEP_MS, FACT_FORWARD_SHARE, FACT_BACKWARD_SHARE,
                 FACT_BATCH_SIZE },
      .yields_to = { "batch_too_small", "precision_unused", "gil_contention",
                     "cpu_throttled", "oversubscribed", "swapping" } },
    { "sync_stall", "WAITING FOR RESULTS", RULES_STEP, .judge = judge_sync,
      .needs = { FACT_SYNC_SHARE },
      .shows = { FACT_LOCK_SHARE, FACT_STEP_MS, FACT_GPU_BUSY },
      .yields_to = { "gil_contention", "cpu_throttled", "oversubscribed",
                     "swapping" } },
    { "launch_bound", "LAUNCH-BOUND", RULES_STEP, .judge = judge_launch,
      .needs = { FACT_LAUNCH_SHARE, FACT_GPU_BUSY },
      .shows = { FACT_KERNELS_PER_STEP, FACT_KERNEL_US, FACT_STEP_MS } },
    { "batch_too_small", "BATCH TOO SMALL", RULES_STEP, .judge = judge_batch,
      .needs = { FACT_OVERHEAD_SHARE, FACT_BATCH_SIZE },
      .shows = { FACT_STEP_MS, FACT_KERNEL_SHARE, FACT_PYTHON_SHARE, FACT_OWN_SHARE,
                 FACT_GPU_MEMORY_SHARE } },
    { "precision_unused", "PRECISION", RULES_STEP, .judge = judge_precision,
      .needs = { FACT_DOUBLE_SHARE },
      .shows = { FACT_TENSOR_CORE_SHARE, FACT_GPU_BUSY, FACT_STEP_MS },
      .yields_to = { "slow_blas" } },
    { "recompilation", "COMPILING AGAIN", RULES_STEP, .judge = judge_compile,
      .needs = { FACT_COMPILE_SHARE },
      .shows = { FACT_STEP_MS, FACT_STEP_P99_MS, FACT_SLOW_STEP_SHARE } },
    { "checkpoint_stall", "CHECKPOINTS", RULES_STEP, .gain_of = GAIN_OF_LOOP,
      .judge = judge_checkpoint, .needs = { FACT_CHECKPOINT_SHARE },
      .shows = { FACT_CHECKPOINTS, FACT_STEPS, FACT_WRITE_SHARE, FACT_SYNC_IO_SHARE } },
    { "logging_stall", "LOGGING", RULES_STEP, .gain_of = GAIN_OF_LOOP,
      .judge = judge_logging, .needs = { FACT_LOG_SHARE },
      .shows = { FACT_SYNC_IO_SHARE, FACT_WRITE_SHARE, FACT_STEP_MS },
      .yields_to = { "checkpoint_stall" } },
    { "evaluation_heavy", "EVALUATION", RULES_STEP, .gain_of = GAIN_OF_LOOP,
      .judge = judge_evaluation, .needs = { FACT_EVALUATION_SHARE },
      .shows = { FACT_STEADY_SHARE, FACT_STEPS } },
    { "startup_bound", "SLOW START", RULES_STEP, .gain_of = GAIN_OF_RUN,
      .judge = judge_startup,
      /* What takes an import its time is not the program's own start. */
      .needs = { FACT_STARTUP_S, FACT_RUN_S, FACT_IMPORT_S },
      .shows = { FACT_STARTUP_SHARE, FACT_STEPS } },
    { 0 },
};
