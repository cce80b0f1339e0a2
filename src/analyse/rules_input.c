/* rules_input.c: rules about how data reach the step. */
#include "analyse/input_words.h"
#include "analyse/rules.h"

/* ---- data_loading_bound ----------------------------------------------------------------- */

/* Why that many, and what else has to be changed with the number. */
static void put_reasons(const struct rule_case *c, struct draft *d, double workers,
                        double best)
{
    if (best == 0)
        buf_puts(&d->advice, ": without workers no batch has to be sent");
    else if (best > FACT_OF(c, CORES))
        buf_puts(&d->advice, ": samples wait more than they compute, so that more "
                             "workers than cores are of use");
    put_without_workers(c, d);
    if (FACT_OF(c, ITERABLE) == 1 && workers < 2 && best >= 2)
        buf_puts(&d->advice,
                 ". The data set is an iterable: have each worker take its own part "
                 "(torch.utils.data.get_worker_info()), or each sends all samples");
}

static void put_settings(const struct rule_case *c, struct draft *d)
{
    const double workers = FACT_OF(c, WORKERS);
    const double best = FACT_OF(c, WORKERS_BEST);
    const double idle = FACT_OF(c, IDLE_CORES), free = FACT_OF(c, FREE_CORES);
    buf_printf(&d->advice, "num_workers=%.0f", workers);
    put_place(&d->advice, " at ", PLACE_OF(c, LOADER));
    if (free >= idle + 0.1)
        buf_printf(&d->advice, "; %.1f of %.0f cores have no work (idle or spinning)",
                   free, FACT_OF(c, CORES));
    else if (idle >= 0.1)
        buf_printf(&d->advice, "; %.1f of %.0f cores are idle", idle,
                   FACT_OF(c, CORES));
    if (best >= 0 && best != workers) {
        buf_printf(&d->advice, "; use num_workers=%.0f", best);
        put_reasons(c, d, workers, best);
    } else
        buf_puts(&d->advice, "; more workers would not help: make samples cheaper");
}

static void advise_loading(const struct rule_case *c, struct draft *d)
{
    if (fact_known(c->f, FACT_WORKERS)) {
        put_settings(c, d);
        return;
    }
    buf_puts(&d->advice,
             "Load the next batch while this one is computed: a thread or a "
             "process that reads ahead");
    put_place(&d->advice, ". Most of the time is at ", PLACE_OF(c, TRANSFORM));
}

/* Without a model of a loader: what reading ahead can hide. */
static void gain_of_overlap(const struct rule_case *c, struct draft *d, double share)
{
    const double hidden = fmin(share, 1 - share);
    d->gain = (struct gain){ 0.5 * hidden, 0.9 * hidden, share };
    d->stake = rule_of_run(c, fmax(share * 0.75, hidden));
}

/* What settings do not bring has another cause, which has its own rule. */
static double stake_of_settings(const struct rule_case *c, double share, double gain)
{
    return rule_of_run(c, fmin(share, 1.5 * gain + 0.05));
}

/* With a model of the loader: what it says. */
static void gain_of_settings(const struct rule_case *c, struct draft *d, double share,
                             double gain)
{
    const double low = FACT_OF(c, WORKERS_GAIN_LOW);
    const double high = FACT_OF(c, WORKERS_GAIN_HIGH);
    d->stake = stake_of_settings(c, share, gain);
    d->gain = (struct gain){ isnan(low) ? 0.8 * gain : fmin(low, gain), gain,
                             isnan(high) ? fmin(1.1 * gain, 1) : fmax(high, gain) };
}

static bool judge_data_loading(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, INPUT_SHARE);
    const double gain = FACT_OF(c, WORKERS_GAIN);
    const bool absolute = FACT_OF(c, BATCH_MS) >= c->t->batch_ms;
    if (!(share >= c->t->data_wait) && !absolute)
        return false;
    /* No setting of the loader helps: then it is what samples cost, or the storage. */
    if ((gain < c->t->workers_help || input_keeps_up(c)) && !absolute)
        return false;
    if (isnan(gain))
        gain_of_overlap(c, d, share);
    else
        gain_of_settings(c, d, share, gain);
    buf_printf(&d->text, "%.0f %% of every step is spent waiting for the next batch",
               100 * share);
    if (FACT_OF(c, QUEUE_EMPTY_SHARE) > 0.5)
        buf_printf(&d->text, "; the queue was empty at %.0f %% of asks",
                   100 * FACT_OF(c, QUEUE_EMPTY_SHARE));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, LOADER);
    advise_loading(c, d);
    return true;
}

/* ---- preprocessing_bound ------------------------------------------------------------------ */

/* How much of the input's time is the transform, by whichever way it is known. */
static double transform_share(const struct rule_case *c)
{
    const double of_sample = FACT_OF(c, TRANSFORM_OF_SAMPLE);
    const double of_step = FACT_OF(c, PREPROCESSING_SHARE);
    const double share = FACT_OF(c, INPUT_SHARE);
    const double direct = share > 0 ? of_step / share : NAN;
    return fmax(of_sample, direct); /* fmax takes the one that is known */
}

/* Cores that the run leaves to others: what they take of them today workers get a part
 * of, and tomorrow all. */
static double spare_cores(const struct rule_case *c)
{
    const double foreign = FACT_OF(c, FOREIGN_CORES);
    return FACT_OF(c, FREE_CORES) + (foreign > 0 ? foreign : 0);
}

/* Settings are a number to change, a transform is a program to write: they come first
 * where they bring half of what is lost; and where nobody has tried workers, cores have
 * no work of the run and some would help, whatever is left then. A loop that reads its
 * files itself has not tried either. */
static bool settings_first(const struct rule_case *c, double part)
{
    const double gain = FACT_OF(c, WORKERS_GAIN);
    const bool spare = spare_cores(c) >= c->t->free_cores;
    const bool untried = FACT_OF(c, WORKERS) == 0 && spare;
    if (!fact_known(c->f, FACT_WORKERS))
        return spare && FACT_OF(c, OPENS_PER_STEP) >= 0.5;
    return gain >= c->t->workers_help && (gain >= 0.5 * part || untried);
}

/* Of what samples take: beyond the handful of calls that any needs. CPU time, where a
 * busy machine stretches the other. Something can always be had: whole batches at once
 * instead of one sample after the other. */
static double beyond_usual(const struct rule_case *c)
{
    const double of_batch = FACT_OF(c, BATCH_CPU_MS) / FACT_OF(c, BATCH_SIZE);
    const double ms = fmin(FACT_OF(c, SAMPLE_MS), of_batch > 0 ? of_batch : NAN);
    return isnan(ms) ? 1 : fmax(1 - c->t->sample_usual_ms / ms, 0.2);
}

static void advise_transform(const struct rule_case *c, struct draft *d)
{
    if (beyond_usual(c) <= 0.2) {
        buf_puts(&d->advice,
                 "Samples take a few microseconds each, the calls around them as "
                 "long: let the data set give whole batches (__getitems__, or "
                 "batch_size=None with a BatchSampler)");
        return;
    }
    buf_puts(&d->advice, "Make the transform cheaper");
    put_place(&d->advice, " at ", PLACE_OF(c, TRANSFORM));
    buf_puts(&d->advice,
             ": work on whole arrays, do once and keep (cache) what does not "
             "change from epoch to epoch");
}

static bool judge_preprocessing(const struct rule_case *c, struct draft *d)
{
    const double share = input_burden(c);
    const double transform = transform_share(c);
    const bool absolute = FACT_OF(c, SAMPLE_MS) >= c->t->sample_ms;
    const double cpu = FACT_OF(c, SAMPLE_CPU_SHARE);
    if (!absolute && (!(share >= c->t->data_wait) || !(transform >= c->t->transform)))
        return false;
    /* A transform that waits is slow storage, whatever it is called. */
    if ((cpu < 0.5 || input_is_hidden(c)) && !absolute)
        return false;
    const double part = share * (isnan(transform) ? 1 : fmin(transform, 1));
    /* Without a model: array operators or a cache leave a twentieth of it. */
    draft_time(c, d, part, 0.67, 0.95, 1);
    draft_gain_of_model(c, d, FACT_TRANSFORM_GAIN);
    d->stake = rule_of_run(c, share * fmin(transform, 1)) * beyond_usual(c);
    if (settings_first(c, part)) {
        const double gain = FACT_OF(c, WORKERS_GAIN);
        d->stake = fmin(0.6 * d->stake, 0.9 * stake_of_settings(c, share, gain));
    }
    buf_printf(&d->text, "%.0f %% of the time to make a sample is its transform",
               100 * fmin(transform, 1));
    put_place(&d->text, ", most of it at ", PLACE_OF(c, TRANSFORM));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, TRANSFORM);
    advise_transform(c, d);
    return true;
}

/* ---- collate_bound ---------------------------------------------------------------------- */

static bool judge_collate(const struct rule_case *c, struct draft *d)
{
    const double share = input_burden(c);
    const double of_step = FACT_OF(c, COLLATE_SHARE);
    const double direct = share > 0 ? of_step / share : NAN;
    const double part = fmax(FACT_OF(c, COLLATE_OF_BATCH), direct);
    if (!(share >= c->t->data_wait) || !(part >= c->t->collate) || input_is_hidden(c))
        return false;
    /* Without a model: one copy instead of many steps of Python. */
    draft_time(c, d, share * fmin(part, 1), 0.67, 0.95, 1);
    draft_gain_of_model(c, d, FACT_COLLATE_GAIN);
    buf_printf(&d->text,
               "%.0f %% of the time to make a batch is putting its samples "
               "together.",
               100 * fmin(part, 1));
    d->place = PLACE_OF(c, COLLATE);
    buf_puts(&d->advice, "Collate");
    put_place(&d->advice, " at ", PLACE_OF(c, COLLATE));
    buf_puts(&d->advice,
             ": fill one preallocated tensor instead of stacking many, keep "
             "samples in few tensors of equal shape");
    return true;
}

/* ---- transfer_bound ------------------------------------------------------------------------ */

static bool judge_transfer(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, TRANSFER_SHARE);
    if (!(share >= c->t->transfer))
        return false;
    draft_time(c, d, share, 0.5, 0.8, 1);
    buf_printf(&d->text, "%.0f %% of every step copies data to the card.", 100 * share);
    d->place = PLACE_OF(c, LOADER);
    buf_puts(&d->advice, FACT_OF(c, PIN_MEMORY) == 1
                             ? "Copy with non_blocking=True and one batch ahead, send "
                               "smaller types (uint8) and convert on the card"
                             : "pin_memory=True");
    if (FACT_OF(c, PIN_MEMORY) != 1) {
        put_place(&d->advice, " at ", PLACE_OF(c, LOADER));
        buf_puts(&d->advice, ", and .to(device, non_blocking=True)");
    }
    return true;
}

/* ---- slow_samples -------------------------------------------------------------------------- */

/* Data that comes in pieces of several samples has a slow sample in every batch, and so has
 * who allocates much when Python collects garbage now and then. No batch and no step takes
 * longer than another by that. */
static bool is_even(const struct rule_case *c)
{
    return FACT_OF(c, SLOW_STEP_SHARE) < c->t->uneven_steps ||
           FACT_OF(c, SLOW_BATCH_SHARE) < c->t->uneven_steps;
}

static bool judge_slow_samples(const struct rule_case *c, struct draft *d)
{
    const double lost = FACT_OF(c, SLOW_SAMPLE_SHARE);
    const double tail = FACT_OF(c, SAMPLE_TAIL);
    if (!input_waits(c) || is_even(c) || !(tail >= c->t->sample_tail) ||
        !(lost >= c->t->slow_samples))
        return false;
    draft_time(c, d, input_share(c) * lost, 0.6, 0.97, 1);
    draft_gain_of_model(c, d, FACT_EVEN_GAIN);
    d->stake = rule_of_run(c, input_share(c) * lost);
    buf_printf(
        &d->text,
        "A few samples take %.0f times as long as the median; %.0f %% of the time "
        "to load goes into them.",
        tail, 100 * lost);
    d->place = PLACE_OF(c, TRANSFORM);
    buf_puts(&d->advice, "Look at what the slowest samples have in common");
    put_place(&d->advice, ", ", PLACE_OF(c, SLOWEST));
    buf_puts(&d->advice, " (sonde report --full lists more): limit their size, or "
                         "prepare them once and keep the result");
    put_place(&d->advice, ", at ", PLACE_OF(c, TRANSFORM));
    buf_puts(&d->advice, ". More prefetch hides short stalls only");
    return true;
}

/* ---- padding_waste ---------------------------------------------------------------------------- */

/* What a step takes by the length of its batch was fitted (facts_lengths.c); where it
 * could not be, computing goes with what is in a batch. */
static void gain_of_lengths(const struct rule_case *c, struct draft *d, double padding)
{
    const double both = FACT_OF(c, FORWARD_SHARE) + FACT_OF(c, BACKWARD_SHARE);
    const double compute = isnan(both) ? 0.5 : both;
    const double after = fmin((1 - padding) / (1 - STILL_PADDED), 1);
    const double fitted = FACT_OF(c, LENGTHS_GAIN);
    const double linear = compute * (1 - after);
    const double mid = isnan(fitted) ? linear : fitted;
    d->stake = rule_of_run(c, padding * compute);
    d->gain = (struct gain){ 0.5 * fmin(mid, linear), mid,
                             1 - 0.8 * (1 - fmax(mid, padding * compute)) };
}

static bool judge_padding(const struct rule_case *c, struct draft *d)
{
    const double padding = FACT_OF(c, PADDING_SHARE);
    if (!(padding >= c->t->padding))
        return false;
    gain_of_lengths(c, d, padding);
    buf_printf(&d->text, "%.0f %% of what is in the batches is padding.",
               100 * padding);
    d->place = PLACE_OF(c, COLLATE);
    buf_puts(&d->advice, "Batch samples of similar length together (bucketing): a "
                         "batch_sampler");
    put_place(&d->advice, " for the loader at ", PLACE_OF(c, LOADER));
    buf_puts(&d->advice,
             " (in the place of batch_size, shuffle and drop_last) that sorts "
             "some tens of batches by length and shuffles the batches; each "
             "is padded to its own longest sample only");
    put_place(&d->advice, ", at ", PLACE_OF(c, COLLATE));
    return true;
}

/* ---- The rows ----------------------------------------------------------------------------------- */

const struct rule rules_input[] = {
    { "data_loading_bound", "INPUT-BOUND", RULES_INPUT, .judge = judge_data_loading,
      .needs = { FACT_INPUT_SHARE },
      .shows = { FACT_STEP_MS, FACT_WORKERS, FACT_QUEUE_EMPTY_SHARE,
                 FACT_WORKER_BUSY_SHARE, FACT_SAMPLE_MS, FACT_FREE_CORES,
                 FACT_WORKERS_BEST, FACT_WORKERS_GAIN, FACT_GPU_BUSY, FACT_COLD_SHARE,
                 FACT_OPENS_PER_STEP },
      .yields_to = { "metadata_bound", "small_reads", "slow_samples", "collate_bound",
                     "too_many_workers", "oversubscribed", "cpu_throttled", "swapping",
                     "gil_contention", "shm_pressure", "batch_too_small" } },
    { "preprocessing_bound", "PREPROCESSING-BOUND", RULES_INPUT,
      .judge = judge_preprocessing, .needs = { FACT_INPUT_SHARE },
      .shows = { FACT_STEP_MS, FACT_TRANSFORM_OF_SAMPLE, FACT_PREPROCESSING_SHARE,
                 FACT_SAMPLE_MS, FACT_SAMPLE_CPU_SHARE, FACT_WORKERS, FACT_IDLE_CORES,
                 FACT_FREE_CORES },
      .yields_to = { "slow_samples", "gil_contention", "oversubscribed" } },
    { "collate_bound", "COLLATE-BOUND", RULES_INPUT, .judge = judge_collate,
      .needs = { FACT_INPUT_SHARE },
      .shows = { FACT_COLLATE_OF_BATCH, FACT_COLLATE_SHARE, FACT_BATCH_MS,
                 FACT_BATCH_SIZE, FACT_STEP_MS } },
    { "transfer_bound", "TRANSFER-BOUND", RULES_INPUT, .judge = judge_transfer,
      .needs = { FACT_TRANSFER_SHARE },
      .shows = { FACT_STEP_MS, FACT_PIN_MEMORY, FACT_BATCH_MB, FACT_PCIE_SHARE } },
    { "slow_samples", "A FEW SLOW SAMPLES", RULES_INPUT, .judge = judge_slow_samples,
      .needs = { FACT_SAMPLE_TAIL, FACT_SLOW_SAMPLE_SHARE },
      .shows = { FACT_SAMPLE_MS, FACT_SLOW_STEP_SHARE, FACT_SLOW_STEPS,
                 FACT_SLOW_BATCH_SHARE, FACT_INPUT_SHARE } },
    { "padding_waste", "PADDING", RULES_INPUT, .judge = judge_padding,
      .needs = { FACT_PADDING_SHARE },
      .shows = { FACT_BATCH_SIZE, FACT_FORWARD_SHARE, FACT_BACKWARD_SHARE,
                 FACT_LENGTHS_GAIN } },
    { 0 },
};
