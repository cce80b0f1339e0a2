/* Predicted gains: a known pipeline, a known illness, and what must be left of the step
 * when it is cured. */
#include "rules_rows.h"

#include "analyse/fact_parts.h"
#include "analyse/whatif.h"

/* No workers: 20 ms to make a batch of 10 samples, 5 ms to compute. */
static const struct pipeline alone = {
    .known = true,
    .prefetch = 2,
    .cores = 2,
    .step_ns = 25e6,
    .make_ns = 20e6,
    .make_cpu_ns = 20e6,
    .compute_ns = 5e6,
    .compute_cpu_ns = 5e6,
    .transform_share = NAN,
    .ship_ns = NAN,
    .receive_ns = NAN,
    .batch_mb = 1,
};

/* One worker that is always behind, and whose threads answer late. */
static const struct pipeline behind = {
    .known = true,
    .workers = 1,
    .prefetch = 2,
    .cores = 2,
    .step_ns = 21e6,
    .make_ns = 20e6,
    .make_cpu_ns = 20e6,
    .compute_ns = 3e6,
    .compute_cpu_ns = 3e6,
    .transform_share = NAN,
    .ship_ns = 0.5e6,
    .receive_ns = 2e6,
    .receive_idle_ns = 1e6,
    .batch_mb = 1,
};

static double left_of(const struct facts *f, enum fact gain, double step_ns)
{
    assert_true(f->v[gain + 1] <= f->v[gain] && f->v[gain] <= f->v[gain + 2]);
    return (1 - f->v[gain]) * step_ns;
}

static void a_transform_leaves_a_few_calls_for_each_sample(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_TRANSFORM_OF_SAMPLE] = 0.9;
    f.v[FACT_BATCH_SIZE] = 10;
    gains_of_pipeline(&alone, &f);
    /* 5 ms computing, 2 ms that are no transform, 10 times 20 µs; less 0.49 since caches
     * stay warm. */
    assert_near(left_of(&f, FACT_TRANSFORM_GAIN, 25e6), 7.2e6 - 0.49e6, 0.05e6);
    /* It stays a third of what it was at worst, and nothing of it at best. */
    assert_true((1 - f.v[FACT_TRANSFORM_GAIN_LOW]) * 25e6 >= 13e6);
    assert_true((1 - f.v[FACT_TRANSFORM_GAIN_HIGH]) * 25e6 <= 7e6);
    /* Computing itself may be faster then, but not by much. */
    assert_true((1 - f.v[FACT_TRANSFORM_GAIN_HIGH]) * 25e6 > 4.5e6);
}

static void collating_becomes_one_copy(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_COLLATE_OF_BATCH] = 0.95;
    gains_of_pipeline(&alone, &f);
    assert_near(left_of(&f, FACT_COLLATE_GAIN, 25e6), 5e6 + 1e6 + 0.4e6 - 0.54e6,
                0.05e6);
}

static void few_large_files_leave_one_read_a_sample(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_OPEN_SHARE] = 0.3; /* and as much again around the calls */
    f.v[FACT_READ_SHARE] = 0.2;
    f.v[FACT_BATCH_SIZE] = 50;
    gains_of_pipeline(&alone, &f);
    assert_near(left_of(&f, FACT_OPENS_GAIN, 25e6), 5e6 + 4e6 - 0.38e6, 0.05e6);
    /* Larger reads alone leave the opens. */
    assert_near(left_of(&f, FACT_READS_GAIN, 25e6), 5e6 + 16e6 - 0.04e6, 0.05e6);
    /* Files are all there was: 50 samples have a few calls each. */
    f.v[FACT_OPEN_SHARE] = 0.9;
    gains_of_pipeline(&alone, &f);
    assert_near(left_of(&f, FACT_OPENS_GAIN, 25e6), 5e6 + 1e6 - 0.58e6, 0.05e6);
    /* Byte by byte: around each read as much again. */
    f.v[FACT_READ_SHARE] = 0.45;
    f.v[FACT_READ_KB] = 0.01;
    gains_of_pipeline(&alone, &f);
    assert_near(left_of(&f, FACT_READS_GAIN, 25e6), 5e6 + 2e6 - 0.5e6, 0.05e6);
}

static void a_worker_that_keeps_up_leaves_the_main_process_its_own(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_COLLATE_OF_BATCH] = 0.99;
    gains_of_pipeline(&behind, &f);
    const double left = left_of(&f, FACT_COLLATE_GAIN, 21e6);
    /* Computing, somewhat faster with the other core free, and taking the batch from a
     * worker that answers at once. */
    assert_true(left > 3.2e6 && left < 4.4e6);
    assert_true((1 - f.v[FACT_COLLATE_GAIN_HIGH]) * 21e6 < 3.2e6);
}

/* One batch in ten takes ten times as long; cured, all are like the usual one. */
static void slow_samples_become_like_the_others(void **state)
{
    (void)state;
    struct distribution d = { 0 };
    distribution_add(&d, 90, 10e6, 0, 10e6, 10e6);
    distribution_add(&d, 10, 100e6, 0, 100e6, 100e6);
    assert_int_equal(distribution_add_bucket(&d, 10e6, 90), 0);
    assert_int_equal(distribution_add_bucket(&d, 100e6, 10), 0);
    distribution_settle(&d);
    struct pipeline p = alone;
    struct facts f;
    p.make = &d;
    p.make_ns = p.make_cpu_ns = d.mean;
    p.step_ns = p.make_ns + p.compute_ns;
    facts_init(&f);
    f.v[FACT_SLOW_SAMPLE_SHARE] = 0.4; /* what is beyond four medians says less */
    gains_of_pipeline(&p, &f);
    assert_near(left_of(&f, FACT_EVEN_GAIN, p.step_ns) / 15e6, 1, 0.05);
    /* Most steps waited for none of them, and were measured … */
    f.v[FACT_STEP_MS] = 18;
    gains_of_pipeline(&p, &f);
    assert_near(left_of(&f, FACT_EVEN_GAIN, p.step_ns), 18e6, 1);
    /* … unless every other one waits. */
    f.v[FACT_STEP_MS] = 23;
    gains_of_pipeline(&p, &f);
    assert_near(left_of(&f, FACT_EVEN_GAIN, p.step_ns) / 15e6, 1, 0.05);
    distribution_release(&d);
}

static void without_a_loader_nothing_is_predicted(void **state)
{
    (void)state;
    const struct pipeline none = { .known = false };
    struct facts f;
    facts_init(&f);
    f.v[FACT_TRANSFORM_OF_SAMPLE] = 0.9;
    gains_of_pipeline(&none, &f);
    assert_true(isnan(f.v[FACT_TRANSFORM_GAIN]) && isnan(f.v[FACT_WORKERS_GAIN]));
}

/* ---- Rules ------------------------------------------------------------------------------ */

static struct gain gain_of(struct trial *c, const char *id)
{
    const struct finding *n = judged(c, id);
    assert_non_null(n);
    check_finding(n);
    const struct gain g = n->gain;
    trial_release(c);
    return g;
}

/* A fifth of a core, one thread: 8 ms of CPU time in a step of 40 ms. */
static void without_a_quota_cpu_time_is_left(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_THROTTLED_SHARE, 0.9 }, { FACT_CPU_CORES, 0.2 },
                           { FACT_BUSY_THREADS, 1 }, { FACT_CORES, 4 });
    assert_near(gain_of(&c, "cpu_throttled").mid, 0.8, 1e-9);
    /* Two threads share the quota: then it takes half of that. */
    c = TRIAL({ FACT_THROTTLED_SHARE, 1 }, { FACT_CPU_CORES, 0.2 },
              { FACT_BUSY_THREADS, 2 }, { FACT_CORES, 4 });
    assert_near(gain_of(&c, "cpu_throttled").mid, 0.9, 1e-9);
    /* Most steps were never stopped: they tell. */
    c = TRIAL({ FACT_THROTTLED_SHARE, 0.9 }, { FACT_CPU_CORES, 0.3 },
              { FACT_BUSY_THREADS, 1 }, { FACT_CORES, 4 }, { FACT_STEP_MS, 4 },
              { FACT_STEP_MEAN_MS, 20 });
    assert_near(gain_of(&c, "cpu_throttled").mid, 0.8, 1e-9);
    /* Seldom stopped: no more than that time comes back. */
    c = TRIAL({ FACT_THROTTLED_SHARE, 0.1 }, { FACT_CPU_CORES, 0.3 },
              { FACT_BUSY_THREADS, 1 }, { FACT_CORES, 4 });
    assert_near(gain_of(&c, "cpu_throttled").mid, 0.1, 1e-9);
}

static void without_collections_the_phases_are_left(void **state)
{
    (void)state;
    /* 5 of 100 ms are phases, and 0.7 ms of those filled the caches again. */
    struct trial c = TRIAL({ FACT_GC_SHARE, 0.95 }, { FACT_OTHER_SHARE, 0.95 },
                           { FACT_STEP_MS, 100 });
    assert_near(gain_of(&c, "gc_pauses").mid, 1 - (0.05 - 0.007 + 0.005), 1e-9);
    /* What the loop does itself outside of phases stays too, where it was seen. */
    c = TRIAL({ FACT_GC_SHARE, 0.95 }, { FACT_OTHER_SHARE, 0.95 },
              { FACT_STEP_MS, 100 }, { FACT_GC_BESIDE_SHARE, 0.07 });
    assert_near(gain_of(&c, "gc_pauses").mid, 1 - (0.05 - 0.007 + 0.07), 1e-9);
    /* Less than the phases: cold code around them. */
    c.f.v[FACT_GC_BESIDE_SHARE] = 0.03;
    assert_near(gain_of(&c, "gc_pauses").mid, 1 - (0.05 - 0.007 + 0.005), 1e-9);
    /* It ran inside the phases: all that is known is its own share. */
    c = TRIAL({ FACT_GC_SHARE, 0.5 }, { FACT_OTHER_SHARE, 0.1 }, { FACT_STEP_MS, 100 });
    assert_near(gain_of(&c, "gc_pauses").mid, 1 - 0.85 * 0.5, 1e-9);
}

/* parcel_rounds: the collector comes by itself, in one step of five. */
static void without_pauses_steps_are_like_the_one_in_the_middle(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_GC_SHARE, 0.68 }, { FACT_OTHER_SHARE, 0.9 },
                           { FACT_STEP_MEAN_MS, 25.6 }, { FACT_STEP_MS, 8.77 });
    assert_near(1 - gain_of(&c, "gc_pauses").mid, 8.77 / 25.6, 1e-9);
    /* The collector took more than the others lack of the mean: that one had it too. */
    c.f.v[FACT_GC_SHARE] = 0.9;
    assert_true(1 - gain_of(&c, "gc_pauses").mid < 0.2);
    /* A fifth of every step: they are all alike. */
    c = TRIAL({ FACT_GC_SHARE, 0.2 }, { FACT_OTHER_SHARE, 0.1 },
              { FACT_STEP_MEAN_MS, 10 }, { FACT_STEP_MS, 9.6 });
    assert_true(gain_of(&c, "gc_pauses").mid > 0.15);
}

/* 90 % of the CPU time of two cores waits; the rest, 0.2 of a step, takes between a tenth
 * of a step on both cores and two tenths on one. */
static void as_many_threads_as_cores_leave_the_work(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_BUSY_THREADS, 20 }, { FACT_CORES, 2 },
                           { FACT_RUNNABLE, 10 }, { FACT_CPU_CORES, 2 },
                           { FACT_AWAIT_SHARE, 0.9 });
    const struct gain most = gain_of(&c, "oversubscribed");
    assert_near(1 - most.mid, 0.2 / pow(2, 0.55), 1e-9);
    assert_true(1 - most.high < 0.1 && 1 - most.low > 0.2);
    /* They do nothing but work: fewer threads leave all of it. */
    c = TRIAL({ FACT_BUSY_THREADS, 20 }, { FACT_CORES, 2 }, { FACT_RUNNABLE, 10 },
              { FACT_CPU_CORES, 2 }, { FACT_AWAIT_SHARE, 0.1 });
    assert_near(1 - gain_of(&c, "oversubscribed").mid, 1.8 / pow(2, 0.95), 1e-9);
    /* What is waiting and what is work is not known: a guess, and a wide range. */
    c = TRIAL({ FACT_BUSY_THREADS, 20 }, { FACT_CORES, 2 }, { FACT_RUNNABLE, 10 },
              { FACT_CPU_CORES, 2 });
    const struct gain guess = gain_of(&c, "oversubscribed");
    assert_true(guess.low < 0.1 && guess.high > 0.9);
}

/* Where the loop's work is known, and what of it one thread does: that much alone, then
 * pieces on all cores, whose threads wait a little for one another. */
static void a_team_that_fits_works_alone_and_then_side_by_side(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_BUSY_THREADS, 14 }, { FACT_CORES, 2 },
                           { FACT_RUNNABLE, 7 }, { FACT_CPU_CORES, 2 },
                           { FACT_AWAIT_SHARE, 0.93 }, { FACT_WORK_CORES, 0.06 },
                           { FACT_SERIAL_CORES, 0.01 });
    const struct gain g = gain_of(&c, "oversubscribed");
    assert_near(1 - g.mid, 0.01 + 1.2 * 0.05 / 2, 1e-9);
    assert_true(g.low < g.mid && g.mid < g.high);
    /* To put a thread to sleep and wake it is no work either. */
    c = TRIAL({ FACT_BUSY_THREADS, 14 }, { FACT_CORES, 2 }, { FACT_RUNNABLE, 7 },
              { FACT_CPU_CORES, 2 }, { FACT_AWAIT_SHARE, 0.93 },
              { FACT_WORK_CORES, 0.06 }, { FACT_SERIAL_CORES, 0.01 },
              { FACT_SLEEPS, 2000 });
    assert_near(1 - gain_of(&c, "oversubscribed").mid, 0.01 + 1.2 * 0.03 / 2, 1e-9);
}

/* Two cores are busy, one of them spins while the other faults: what is left is a part of
 * the work, not of the CPU time, and arithmetic then has both. */
static void without_churn_a_part_of_the_work_is_left(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_ALLOC_SHARE, 0 }, { FACT_FAULT_SHARE, 0.2 },
                           { FACT_FAULT_KERNEL_SHARE, 0.4 },
                           { FACT_FAULT_TOUCH_SHARE, 0.05 }, { FACT_TURNOVER, 100 },
                           { FACT_CPU_CORES, 2 }, { FACT_CORES, 2 },
                           { FACT_WORK_CORES, 1 });
    assert_near(1 - gain_of(&c, "allocation_churn").mid, 1 - 0.8 - 0.1, 1e-9);
    c = TRIAL({ FACT_ALLOC_SHARE, 0 }, { FACT_FAULT_SHARE, 0.2 },
              { FACT_FAULT_KERNEL_SHARE, 0.4 }, { FACT_FAULT_TOUCH_SHARE, 0.05 },
              { FACT_TURNOVER, 100 }, { FACT_CPU_CORES, 2 }, { FACT_CORES, 2 },
              { FACT_WORK_CORES, 1 }, { FACT_ARITHMETIC_SHARE, 0.025 });
    assert_near(1 - gain_of(&c, "allocation_churn").mid, 0.05 + 0.6 * 0.05, 1e-9);
    /* Less work than faults took is an error of the model: the old one stands. */
    c = TRIAL({ FACT_ALLOC_SHARE, 0 }, { FACT_FAULT_SHARE, 0.2 },
              { FACT_FAULT_KERNEL_SHARE, 0.6 }, { FACT_TURNOVER, 100 },
              { FACT_CPU_CORES, 2 }, { FACT_CORES, 2 }, { FACT_WORK_CORES, 1 });
    assert_near(gain_of(&c, "allocation_churn").mid, 0.6, 1e-9);
}

/* Sorted by length a thirtieth is still padding; a fit of the steps' times knows better. */
static void without_padding_what_is_in_a_batch_is_left(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_PADDING_SHARE, 0.757 }, { FACT_FORWARD_SHARE, 0.4 },
                           { FACT_BACKWARD_SHARE, 0.5 });
    assert_near(1 - gain_of(&c, "padding_waste").mid, 1 - 0.9 * (1 - 0.243 / 0.97),
                1e-9);
    c = TRIAL({ FACT_PADDING_SHARE, 0.757 }, { FACT_FORWARD_SHARE, 0.4 },
              { FACT_BACKWARD_SHARE, 0.5 }, { FACT_LENGTHS_GAIN, 0.8 });
    const struct gain g = gain_of(&c, "padding_waste");
    assert_near(g.mid, 0.8, 1e-9);
    assert_true(g.low < 0.4 && g.high > 0.8);
}

/* Moved into a process the other work keeps its core: the main thread's own time is
 * left as it was. */
static void without_the_lock_the_main_threads_own_time_is_left(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_GIL_WAIT_SHARE, 0.8 }, { FACT_CORES, 2 });
    const struct gain gain = gain_of(&c, "gil_contention");
    assert_near(gain.mid, 0.8, 1e-9);
    assert_true(gain.low < 0.8 && gain.high > 0.85);
}

/* 40 % in the kernel; the code that touches the pages pays for them too. */
static void fresh_pages_cost_the_program_itself(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_ALLOC_SHARE, 0 }, { FACT_FAULT_SHARE, 0.3 },
                           { FACT_FAULT_KERNEL_SHARE, 0.4 }, { FACT_TURNOVER, 100 });
    assert_near(gain_of(&c, "allocation_churn").mid, 0.4, 1e-9);
    c = TRIAL({ FACT_ALLOC_SHARE, 0 }, { FACT_FAULT_SHARE, 0.3 },
              { FACT_FAULT_KERNEL_SHARE, 0.4 }, { FACT_FAULT_TOUCH_SHARE, 0.1 },
              { FACT_TURNOVER, 100 });
    assert_near(gain_of(&c, "allocation_churn").mid, 0.5, 1e-9);
    /* A modelled cost never takes all that is left. */
    c = TRIAL({ FACT_ALLOC_SHARE, 0 }, { FACT_FAULT_SHARE, 0.3 },
              { FACT_FAULT_KERNEL_SHARE, 0.8 }, { FACT_FAULT_TOUCH_SHARE, 0.3 },
              { FACT_TURNOVER, 100 });
    assert_near(gain_of(&c, "allocation_churn").mid, 0.95, 1e-9);
}

static void a_function_that_mostly_logs_goes_whole(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_LOG_SHARE, 0.5 }, { FACT_LOG_WHOLE_SHARE, 0.7 });
    assert_near(gain_of(&c, "logging_stall").mid, 0.7 * 0.98, 1e-9);
}

static void what_is_done_seldom_leaves_its_fiftieth(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_SYNC_SHARE, 0.75 });
    assert_near(gain_of(&c, "sync_stall").mid, 0.735, 1e-9);
    c = TRIAL({ FACT_LOG_SHARE, 0.5 });
    assert_near(gain_of(&c, "logging_stall").mid, 0.49, 1e-9);
    /* The card still has its work to do. */
    c = TRIAL({ FACT_SYNC_SHARE, 0.75 }, { FACT_GPU_BUSY, 0.6 });
    assert_near(gain_of(&c, "sync_stall").mid, 0.75 * 0.4 * 0.98, 1e-9);
}

/* Phases say that 55 % are outside of them: samples that say 60 % are not as exact. */
static void logging_takes_its_values_with_it(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_LOG_SHARE, 0.5 }, { FACT_LOG_WHOLE_SHARE, 0.6 });
    assert_near(gain_of(&c, "logging_stall").mid, 0.6 * 0.98, 1e-9);
    c = TRIAL({ FACT_LOG_SHARE, 0.5 }, { FACT_LOG_WHOLE_SHARE, 0.6 },
              { FACT_OTHER_SHARE, 0.55 });
    assert_near(gain_of(&c, "logging_stall").mid, 0.55 * 0.98, 1e-9);
    /* It logs inside of phases: they say nothing. */
    c = TRIAL({ FACT_LOG_SHARE, 0.5 }, { FACT_LOG_WHOLE_SHARE, 0.6 },
              { FACT_OTHER_SHARE, 0.1 });
    assert_near(gain_of(&c, "logging_stall").mid, 0.6 * 0.98, 1e-9);
}

static void evaluation_and_checkpoints_keep_their_part(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_EVALUATION_SHARE, 0.55 });
    assert_near(gain_of(&c, "evaluation_heavy").mid, 0.5, 1e-9);
    c = TRIAL({ FACT_CHECKPOINT_SHARE, 0.51 });
    assert_near(gain_of(&c, "checkpoint_stall").mid, 0.5, 1e-9);
    /* What steps with one take longer goes with it: metrics, files that are synced. */
    c = TRIAL({ FACT_EVALUATION_SHARE, 0.5 }, { FACT_EVALUATION_BESIDE, 0.05 });
    assert_near(gain_of(&c, "evaluation_heavy").mid, 0.5, 1e-9);
    c = TRIAL({ FACT_CHECKPOINT_SHARE, 0.4 }, { FACT_CHECKPOINT_BESIDE, 0.11 });
    assert_near(gain_of(&c, "checkpoint_stall").mid, 0.5, 1e-9);
}

static void floats_take_half_of_what_doubles_do(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_DOUBLE_SHARE, 0.6 }, { FACT_KERNEL_SHARE, 0.6 },
                           { FACT_FORWARD_SHARE, 0.4 }, { FACT_BACKWARD_SHARE, 0.4 },
                           { FACT_OPTIMIZER_SHARE, 0.1 });
    assert_near(gain_of(&c, "precision_unused").mid, 0.45, 1e-9);
    /* A half of the kernels computes in float already. */
    c = TRIAL({ FACT_DOUBLE_SHARE, 0.3 }, { FACT_KERNEL_SHARE, 0.6 },
              { FACT_FORWARD_SHARE, 0.4 }, { FACT_BACKWARD_SHARE, 0.4 },
              { FACT_OPTIMIZER_SHARE, 0.1 });
    assert_near(gain_of(&c, "precision_unused").mid, 0.225, 1e-9);
}

/* 184 s against 9.5 s in double on two cores (BUDGETS). */
static void a_tuned_blas_is_as_much_faster_as_it_was_measured(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_REFERENCE_BLAS_SHARE, 0.999 },
                           { FACT_DOUBLE_SHARE, 0.999 }, { FACT_CORES, 2 });
    const struct gain g = gain_of(&c, "slow_blas");
    assert_near((1 - g.mid) * 184, 9.5, 1.0);
    assert_true(g.low < 1 - 9.5 / 184 && 1 - 9.5 / 184 < g.high + 1e-9);
}

/* One sample: 90 % of the step is paid once for 64 of them. */
static void a_larger_batch_pays_once_for_all(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_OVERHEAD_SHARE, 0.9 }, { FACT_KERNEL_SHARE, 0.1 },
                           { FACT_BATCH_SIZE, 16 }, { FACT_STEP_MS, 1 });
    assert_near(1 - gain_of(&c, "batch_too_small").mid,
                (1 - 0.9 * (1 - 0.25)) * (1 + 0.08 * (1 - 0.25)), 1e-9);
    c = TRIAL({ FACT_OVERHEAD_SHARE, 0.9 }, { FACT_KERNEL_SHARE, 0.1 },
              { FACT_BATCH_SIZE, 1 }, { FACT_STEP_MS, 1 });
    const double left = 1 - gain_of(&c, "batch_too_small").mid;
    assert_true(left > 0.9 / 64 && left < 0.9 / 64 + 0.1);
}

/* vineyard_probes: fifty files of 96 bytes for a sample. What Python does for each goes too:
 * a slice of one array is left. */
static void samples_of_many_tiny_files_are_nothing_else(void **state)
{
    (void)state;
    struct pipeline p = alone;
    struct facts f;
    facts_init(&f);
    f.v[FACT_BATCH_SIZE] = 24;
    f.v[FACT_OPENS_PER_STEP] = 24 * 8;
    f.v[FACT_OPEN_SHARE] = 0.25;
    f.v[FACT_READ_SHARE] = 0.05;
    f.v[FACT_READ_KB] = 0.1;
    f.v[FACT_READS_PER_STEP] = 24 * 8;
    gains_of_pipeline(&p, &f);
    const double slices = 0.05 * p.make_ns + p.compute_ns;
    assert_true(left_of(&f, FACT_OPENS_GAIN, p.step_ns) < 1.05 * slices);
    /* Fewer a sample may be anything. */
    f.v[FACT_OPENS_PER_STEP] = 24 * 7;
    gains_of_pipeline(&p, &f);
    assert_true(left_of(&f, FACT_OPENS_GAIN, p.step_ns) > 1.2 * slices);
}

static void small_reads_leave_their_bytes(void **state)
{
    (void)state;
    /* 4 ms of loading, all of it reads; the bytes take 0.5 ms at 2 GB a second. */
    struct trial c = TRIAL({ FACT_INPUT_SHARE, 0.8 }, { FACT_STEP_MS, 5 },
                           { FACT_READ_SHARE, 1 }, { FACT_SMALL_READ_SHARE, 1 },
                           { FACT_READS_PER_STEP, 1000 },
                           { FACT_READ_KB, 1e6 / 1000 / 1024 });
    assert_near(gain_of(&c, "small_reads").mid, 0.8 * (1 - 0.125), 1e-6);
}

/* Calls by hand are half of the step, and 45 % more is outside of phases. */
static void loading_by_hand_takes_what_is_around_it(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_INPUT_SHARE, 0.5 }, { FACT_WAIT_SHARE, 0 },
                           { FACT_PREPROCESSING_SHARE, 0 }, { FACT_COLLATE_SHARE, 0 },
                           { FACT_OTHER_SHARE, 0.45 }, { FACT_OPEN_SHARE, 1 },
                           { FACT_READ_SHARE, 0 }, { FACT_OPENS_PER_STEP, 1000 });
    const struct gain g = gain_of(&c, "metadata_bound");
    assert_near(g.mid, 0.5 + 0.9 * 0.45, 1e-9);
    assert_near(g.high, 0.95, 1e-9);
    /* Steps of 20 ms: 0.1 ms to put a batch together, and the 1 ms that computes begins
     * warm, which is worth 0.6 of it at most. */
    c = TRIAL({ FACT_INPUT_SHARE, 0.5 }, { FACT_WAIT_SHARE, 0 },
              { FACT_PREPROCESSING_SHARE, 0 }, { FACT_COLLATE_SHARE, 0 },
              { FACT_OTHER_SHARE, 0.45 }, { FACT_OPEN_SHARE, 1 },
              { FACT_READ_SHARE, 0 }, { FACT_OPENS_PER_STEP, 1000 },
              { FACT_STEP_MS, 20 });
    const double left_ms = 20 * (1 - gain_of(&c, "metadata_bound").mid);
    assert_near(left_ms, 1 + 0.1 - 0.39, 0.01);
}

/* Seen to wait for the lock 80 % of the time: of the rest the CPU time is its own. */
static void waits_for_the_lock_inside_of_operators_go_too(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_GIL_WAIT_SHARE, 0.8 }, { FACT_CORES, 2 });
    assert_near(gain_of(&c, "gil_contention").mid, 0.8, 1e-9);
    c = TRIAL({ FACT_GIL_WAIT_SHARE, 0.8 }, { FACT_CORES, 2 },
              { FACT_MAIN_CPU_SHARE, 0.06 });
    assert_near(gain_of(&c, "gil_contention").mid, 1 - 0.06, 1e-9);
    /* It waits for batches too, with the lock or without. */
    c = TRIAL({ FACT_GIL_WAIT_SHARE, 0.8 }, { FACT_CORES, 2 },
              { FACT_MAIN_CPU_SHARE, 0.06 }, { FACT_INPUT_SHARE, 0.04 });
    assert_near(gain_of(&c, "gil_contention").mid, 1 - 0.10, 1e-9);
    /* Other programs had half of the cores: half of the rest was for them. */
    c = TRIAL({ FACT_GIL_WAIT_SHARE, 0.8 }, { FACT_CORES, 2 },
              { FACT_MAIN_CPU_SHARE, 0.06 }, { FACT_FOREIGN_CORES, 1 });
    assert_near(gain_of(&c, "gil_contention").mid, 1 - (0.06 + 0.5 * 0.14), 1e-9);
    /* Never less than what was seen. */
    c = TRIAL({ FACT_GIL_WAIT_SHARE, 0.8 }, { FACT_CORES, 2 },
              { FACT_MAIN_CPU_SHARE, 0.5 });
    assert_near(gain_of(&c, "gil_contention").mid, 0.8, 1e-9);
}

/* 256 samples a batch, read byte by byte on one line; the other lines stay as they are,
 * and no guess of what a sample takes comes on top. */
static void reads_on_one_line_leave_the_other_lines(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_READ_SHARE] = 0.7;
    f.v[FACT_READ_KB] = 0.001;
    f.v[FACT_READS_PER_STEP] = 20000;
    f.v[FACT_BATCH_SIZE] = 256;
    f.v[FACT_OPEN_SHARE] = 0;
    gains_of_pipeline(&alone, &f);
    assert_near(left_of(&f, FACT_READS_GAIN, 25e6), 5e6 + 256 * 20e3 - 0.25e6, 0.1e6);
    f.v[FACT_LOAD_LINE_SHARE] = 0.9;
    gains_of_pipeline(&alone, &f);
    assert_near(left_of(&f, FACT_READS_GAIN, 25e6), 5e6 + 2e6 - 0.5e6, 0.05e6);
    /* Records of 16 bytes: a loop of its own, which goes whole. */
    f.v[FACT_READ_KB] = 16.0 / 1024;
    gains_of_pipeline(&alone, &f);
    assert_near(left_of(&f, FACT_READS_GAIN, 25e6), 5e6 + 256 * 20e3 - 0.25e6, 0.1e6);
    f.v[FACT_READ_KB] = 0.001;
    f.v[FACT_LOAD_LINE_SHARE] = 0.5; /* they are on several */
    gains_of_pipeline(&alone, &f);
    assert_near(left_of(&f, FACT_READS_GAIN, 25e6), 5e6 + 256 * 20e3 - 0.25e6, 0.1e6);
}

static void kept_workers_save_what_passes_between_epochs(void **state)
{
    (void)state;
    /* 19 changes, each with two batches to be made and 2.2 ms on the way, in 10 s. */
    struct trial c = TRIAL({ FACT_EPOCH_SHARE, 0.6 }, { FACT_EPOCHS, 20 },
                           { FACT_BATCH_CPU_MS, 5 }, { FACT_LOOP_S, 10 },
                           { FACT_WORKERS, 2 }, { FACT_CORES, 2 });
    const double once = 19 * (2 * 5 + 2.2) / 1e3 / 10;
    assert_near(gain_of(&c, "epoch_boundary_stall").mid, 0.6 - once, 1e-9);
    /* Twice as many workers as cores take turns. */
    c = TRIAL({ FACT_EPOCH_SHARE, 0.6 }, { FACT_EPOCHS, 20 }, { FACT_BATCH_CPU_MS, 5 },
              { FACT_LOOP_S, 10 }, { FACT_WORKERS, 4 }, { FACT_CORES, 2 });
    const double turns = 19 * (2 * 2 * 5 + 2.2) / 1e3 / 10;
    assert_near(gain_of(&c, "epoch_boundary_stall").mid, 0.6 - turns, 1e-9);
    /* Nobody timed batches: nothing is taken for them. */
    c = TRIAL({ FACT_EPOCH_SHARE, 0.6 }, { FACT_EPOCHS, 20 }, { FACT_LOOP_S, 10 });
    assert_near(gain_of(&c, "epoch_boundary_stall").mid, 0.6, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transform_leaves_a_few_calls_for_each_sample),
        cmocka_unit_test(collating_becomes_one_copy),
        cmocka_unit_test(few_large_files_leave_one_read_a_sample),
        cmocka_unit_test(a_worker_that_keeps_up_leaves_the_main_process_its_own),
        cmocka_unit_test(slow_samples_become_like_the_others),
        cmocka_unit_test(without_a_loader_nothing_is_predicted),
        cmocka_unit_test(without_a_quota_cpu_time_is_left),
        cmocka_unit_test(without_collections_the_phases_are_left),
        cmocka_unit_test(without_pauses_steps_are_like_the_one_in_the_middle),
        cmocka_unit_test(a_function_that_mostly_logs_goes_whole),
        cmocka_unit_test(what_is_done_seldom_leaves_its_fiftieth),
        cmocka_unit_test(logging_takes_its_values_with_it),
        cmocka_unit_test(as_many_threads_as_cores_leave_the_work),
        cmocka_unit_test(a_team_that_fits_works_alone_and_then_side_by_side),
        cmocka_unit_test(without_padding_what_is_in_a_batch_is_left),
        cmocka_unit_test(without_churn_a_part_of_the_work_is_left),
        cmocka_unit_test(without_the_lock_the_main_threads_own_time_is_left),
        cmocka_unit_test(fresh_pages_cost_the_program_itself),
        cmocka_unit_test(evaluation_and_checkpoints_keep_their_part),
        cmocka_unit_test(floats_take_half_of_what_doubles_do),
        cmocka_unit_test(a_tuned_blas_is_as_much_faster_as_it_was_measured),
        cmocka_unit_test(a_larger_batch_pays_once_for_all),
        cmocka_unit_test(samples_of_many_tiny_files_are_nothing_else),
        cmocka_unit_test(small_reads_leave_their_bytes),
        cmocka_unit_test(loading_by_hand_takes_what_is_around_it),
        cmocka_unit_test(waits_for_the_lock_inside_of_operators_go_too),
        cmocka_unit_test(reads_on_one_line_leave_the_other_lines),
        cmocka_unit_test(kept_workers_save_what_passes_between_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
