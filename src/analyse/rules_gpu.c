/* rules_gpu.c: rules about cards. */
#include "analyse/rules.h"

static bool judge_unused(const struct rule_case *c, struct draft *d)
{
    if (!(FACT_OF(c, GPUS) >= 1) || !(FACT_OF(c, GPU_BUSY) <= c->t->gpu_idle) ||
        !(FACT_OF(c, GPU_OWN) == 0))
        return false;
    /* Programs that do not train have no use for one. */
    const double compute = FACT_OF(c, FORWARD_SHARE) + FACT_OF(c, BACKWARD_SHARE);
    if (!(compute >= 0.2))
        return false;
    d->stake = rule_of_run(c, fmin(compute, 1));
    d->gain = (struct gain){ 0.3 * compute, 0.7 * compute, 0.95 * compute };
    buf_printf(&d->text, "The machine has %.0f card%s, and the model runs on the CPU.",
               FACT_OF(c, GPUS), FACT_OF(c, GPUS) == 1 ? "" : "s");
    buf_puts(&d->advice, "model.to('cuda') and batches with .to('cuda', "
                         "non_blocking=True); CUDA_VISIBLE_DEVICES must not be empty");
    return true;
}

static bool judge_underused(const struct rule_case *c, struct draft *d)
{
    const double busy = FACT_OF(c, GPU_BUSY);
    if (!(busy < c->t->gpu_busy) || !(busy > c->t->gpu_idle))
        return false;
    d->stake = 1 - busy;
    d->alone_is_low = true;
    buf_printf(&d->text, "The card was busy %.0f %% of the time.", 100 * busy);
    buf_puts(&d->advice,
             "See the cause; without one: a larger batch, or a smaller card");
    return true;
}

static bool judge_throttled(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, GPU_THROTTLED_SHARE);
    const double clock = FACT_OF(c, GPU_CLOCK_SHARE);
    if (!(share >= c->t->gpu_throttled))
        return false;
    const double lost = isnan(clock) ? 0.2 * share : fmin(share, 1 - clock);
    d->stake = fmax(lost, 0.05);
    d->gain = (struct gain){ 0.3 * lost, 0.7 * lost, lost };
    buf_printf(&d->text, "The card's clocks were held down %.0f %% of the time.",
               100 * share);
    buf_puts(&d->advice,
             "nvidia-smi -q -d PERFORMANCE names the reason: cooling, or the "
             "power limit (nvidia-smi -pl)");
    return true;
}

static bool judge_contended(const struct rule_case *c, struct draft *d)
{
    const double others = FACT_OF(c, GPU_FOREIGN);
    if (!(others >= c->t->gpu_foreign))
        return false;
    d->stake = 0.2;
    d->gain = (struct gain){ 0, 0.3, 0.6 };
    buf_printf(&d->text, "%.0f other process%s use the same card.", others,
               others == 1 ? "" : "es");
    buf_puts(&d->advice, "Use another card (CUDA_VISIBLE_DEVICES), or wait for them");
    return true;
}

static bool judge_memory(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, GPU_MEMORY_SHARE);
    const bool full = share >= c->t->gpu_memory;
    if (full)
        buf_printf(&d->text, "The card's memory was %.0f %% full.", 100 * share);
    const struct rule_fit fit = { FACT_OF(c, GPU_BATCH_FITS),
                                  FACT_OF(c, GPU_BATCH_POSSIBLE),
                                  FACT_OF(c, GPU_BATCH_LIKELY) };
    const double batch = rule_batch_too_large(c, fit, "the card", d);
    if (!full && !(batch > 0))
        return false;
    d->stake = fmax(full ? rule_nearness(share, c->t->gpu_memory, 1) : 0, batch);
    if (batch > 0)
        buf_puts(&d->advice, "Bound what a batch holds (batches by length or by number "
                             "of nodes and edges), cut long samples. ");
    buf_puts(&d->advice, "Little room is left for a larger batch or longer samples: "
                         "mixed precision, gradient checkpointing, "
                         "optimizer.zero_grad(set_to_none=True)");
    return true;
}

static bool judge_growth(const struct rule_case *c, struct draft *d)
{
    const double total = FACT_OF(c, GPU_MEMORY_MB) / FACT_OF(c, GPU_MEMORY_SHARE);
    const double growth = FACT_OF(c, GPU_GROWTH_MB) / total;
    if (!(growth >= c->t->gpu_growth) ||
        !(FACT_OF(c, GPU_GROWTH_LATE) >= c->t->leak_steady))
        return false;
    d->stake = fmin(0.2 + growth, 1);
    buf_printf(&d->text, "Memory of the card grew by %.0f MiB and went on growing.",
               FACT_OF(c, GPU_GROWTH_MB));
    buf_puts(&d->advice,
             "Sum losses with .item() or .detach(): kept tensors keep their "
             "graph; bound caches");
    return true;
}

static bool judge_thrash(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, GPU_ALLOC_SHARE);
    if (!(share >= c->t->gpu_alloc))
        return false;
    draft_time(c, d, share, 0.5, 0.8, 1);
    buf_printf(&d->text, "%.0f %% of a step allocates and frees memory of the card.",
               100 * share);
    buf_puts(&d->advice, "Do not call torch.cuda.empty_cache() in the loop; "
                         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; batches of "
                         "equal shape");
    return true;
}

const struct rule rules_gpu[] = {
    { "gpu_unused", "CARD NOT USED", RULES_GPU, .judge = judge_unused,
      .needs = { FACT_GPUS, FACT_GPU_BUSY, FACT_GPU_OWN },
      .shows = { FACT_FORWARD_SHARE, FACT_BACKWARD_SHARE, FACT_CPU_CORES } },
    { "gpu_underutilized", "CARD IDLES", RULES_GPU, true, .judge = judge_underused,
      .needs = { FACT_GPU_BUSY, FACT_GPUS },
      .shows = { FACT_STEP_MS, FACT_INPUT_SHARE, FACT_BATCH_SIZE },
      .yields_to = { "data_loading_bound", "preprocessing_bound", "collate_bound",
                     "transfer_bound", "launch_bound", "sync_stall", "checkpoint_stall",
                     "evaluation_heavy", "startup_bound", "batch_too_small",
                     "communication_bound", "straggler", "gil_contention",
                     "optimizer_bound" } },
    { "gpu_throttled", "CARD HELD DOWN", RULES_GPU, .judge = judge_throttled,
      .needs = { FACT_GPU_THROTTLED_SHARE },
      .shows = { FACT_GPU_CLOCK_SHARE, FACT_GPU_BUSY } },
    { "gpu_contended", "CARD SHARED", RULES_GPU, .judge = judge_contended,
      .needs = { FACT_GPU_FOREIGN },
      .shows = { FACT_GPU_BUSY, FACT_GPU_MEMORY_SHARE } },
    { "gpu_memory_high", "CARD NEARLY FULL", RULES_GPU, .judge = judge_memory,
      .needs = { FACT_GPU_MEMORY_SHARE },
      .shows = { FACT_GPU_MEMORY_MB, FACT_BATCH_SIZE, FACT_LARGEST_BATCH_MB,
                 FACT_GPU_BATCH_FITS, FACT_GPU_BATCH_POSSIBLE, FACT_GPU_BATCH_LIKELY },
      .yields_to = { "gpu_memory_growth", "gpu_contended" } },
    { "gpu_memory_growth", "CARD FILLS UP", RULES_GPU, .judge = judge_growth,
      .needs = { FACT_GPU_GROWTH_MB, FACT_GPU_GROWTH_LATE, FACT_GPU_MEMORY_SHARE,
                 FACT_GPU_MEMORY_MB } },
    { "gpu_allocator_thrash", "ALLOCATING ON THE CARD", RULES_GPU,
      .judge = judge_thrash, .needs = { FACT_GPU_ALLOC_SHARE },
      .shows = { FACT_GPU_ALLOC_RETRIES, FACT_GPU_MEMORY_SHARE } },
    { 0 },
};
