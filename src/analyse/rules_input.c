/* rules_input.c: rules about how data reach the step. */
#include <stdio.h>

#include "analyse/fact_parts.h"
#include "analyse/rules.h"
#include "analyse/whatif.h"

/* Share of step time that goes into input; when nobody recorded steps, all of it. */
static double input_share(const struct rule_case *c)
{
    const double share = FACT_OF(c, INPUT_SHARE);
    return isnan(share) ? 1 : share;
}

/* Making batches costs next to nothing: a busy machine stretches the wall time of work
 * that is mostly computing, so there its CPU time counts. */
static bool is_trifle(const struct rule_case *c)
{
    const double cpu = FACT_OF(c, SAMPLE_CPU_SHARE) >= 0.5 ? FACT_OF(c, BATCH_CPU_MS)
                                                           : NAN;
    return fmin(FACT_OF(c, BATCH_MS), cpu) < c->t->batch_least_ms;
}

/* Batches are there when they are asked for, or cost nothing: whatever making them takes
 * is hidden. A few asks that wait long are few, and cost as much as many short ones. */
static bool workers_keep_up(const struct rule_case *c)
{
    const bool there = FACT_OF(c, QUEUE_EMPTY_SHARE) < c->t->queue_empty &&
                       !(FACT_OF(c, QUEUE_WAIT_SHARE) >= c->t->data_wait);
    return there || is_trifle(c);
}

/* Does the step wait for its batch at all? Unknown counts as yes: then the cost itself
 * was measured against the whole run. */
static bool waits(const struct rule_case *c)
{
    const double share = FACT_OF(c, INPUT_SHARE);
    return (isnan(share) || share >= c->t->data_wait) && !workers_keep_up(c);
}

/* Batches come in time, but the cores that make them are those the step wants. */
static bool crowds(const struct rule_case *c)
{
    return FACT_OF(c, CROWDED_SHARE) >= c->t->crowded;
}

/* Share of a step that its batch costs: by waiting, or by taking the cores. */
static double burden(const struct rule_case *c)
{
    const double wait = FACT_OF(c, INPUT_SHARE);
    return crowds(c) ? fmax(wait, FACT_OF(c, CROWDED_SHARE)) : wait;
}

/* Nothing is to be had from cheaper batches. */
static bool is_hidden(const struct rule_case *c)
{
    return workers_keep_up(c) && !crowds(c);
}

/* The what-if's answer where the loader was recorded: three facts from `mid` on. */
static void gain_of_model(const struct rule_case *c, struct draft *d, enum fact mid)
{
    const double *v = &c->f->v[mid];
    if (!isnan(v[0]))
        d->gain = (struct gain){ fmin(v[1], v[0]), v[0], fmax(v[2], v[0]) };
}

/* ---- data_loading_bound ----------------------------------------------------------------- */

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
    if (best > 0 && best != workers)
        buf_printf(&d->advice, "; use num_workers=%.0f", best);
    else
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
    if ((gain < c->t->workers_help || workers_keep_up(c)) && !absolute)
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

/* Settings are a number to change, a transform is a program to write: they come first
 * where they bring half of what is lost; and where nobody has tried workers, cores have
 * no work and some would help, whatever is left then. */
static bool settings_first(const struct rule_case *c, double part)
{
    const double gain = FACT_OF(c, WORKERS_GAIN);
    const bool untried = FACT_OF(c, WORKERS) == 0 &&
                         FACT_OF(c, FREE_CORES) >= c->t->free_cores;
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
    const double share = burden(c);
    const double transform = transform_share(c);
    const bool absolute = FACT_OF(c, SAMPLE_MS) >= c->t->sample_ms;
    const double cpu = FACT_OF(c, SAMPLE_CPU_SHARE);
    if (!absolute && (!(share >= c->t->data_wait) || !(transform >= c->t->transform)))
        return false;
    /* A transform that waits is slow storage, whatever it is called. */
    if ((cpu < 0.5 || is_hidden(c)) && !absolute)
        return false;
    const double part = share * (isnan(transform) ? 1 : fmin(transform, 1));
    /* Without a model: array operators or a cache leave a twentieth of it. */
    draft_time(c, d, part, 0.67, 0.95, 1);
    gain_of_model(c, d, FACT_TRANSFORM_GAIN);
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
    const double share = burden(c);
    const double of_step = FACT_OF(c, COLLATE_SHARE);
    const double direct = share > 0 ? of_step / share : NAN;
    const double part = fmax(FACT_OF(c, COLLATE_OF_BATCH), direct);
    if (!(share >= c->t->data_wait) || !(part >= c->t->collate) || is_hidden(c))
        return false;
    /* Without a model: one copy instead of many steps of Python. */
    draft_time(c, d, share * fmin(part, 1), 0.67, 0.95, 1);
    gain_of_model(c, d, FACT_COLLATE_GAIN);
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

/* 6421, 52, 3.25: as people write them. */
static const char *count_text(double value, char ret_text[24])
{
    (void)snprintf(ret_text, 24, value >= 100 ? "%.0f" : "%.3g", value);
    return ret_text;
}

/* ---- metadata_bound, small_reads -------------------------------------------------------- */

/* Of the time to load: the same bytes in large reads, at what copying them from the page
 * cache takes at least (2 GB a second); reads from the disk take as long as they did. */
static double bytes_part(const struct rule_case *c)
{
    const double bytes = FACT_OF(c, READ_KB) * 1024 * FACT_OF(c, READS_PER_STEP);
    const double load_ns = input_share(c) * FACT_OF(c, STEP_MS) * 1e6;
    const double part = bytes / 2 / load_ns;
    return part > 0 ? fmin(part, 0.5) : 0;
}

/* Where the program loads by hand, outside of phases, only its calls are known to be
 * input: what it does around them takes about as long again, and is outside of phases. */
static double around_by_hand(const struct rule_case *c)
{
    const double zones = FACT_OF(c, WAIT_SHARE) + FACT_OF(c, PREPROCESSING_SHARE) +
                         FACT_OF(c, COLLATE_SHARE);
    const double by_hand = FACT_OF(c, INPUT_SHARE) - zones;
    const double rest = FACT_OF(c, OTHER_SHARE); /* what is input is out of it */
    return by_hand > 0 && rest > 0 ? fmin(by_hand, rest) : 0;
}

/* Of what is around calls by hand: a batch out of arrays that are there is a few calls
 * from Python, 0.1 ms. Where steps are not timed, a tenth stays. */
static double gone_around(const struct rule_case *c, double around)
{
    const double few = 0.1 / FACT_OF(c, STEP_MS);
    return around > 0 ? fmax(around - (few > 0 ? few : 0.1 * around), 0) : 0;
}

/* Of the step: what it takes less when it begins with warm caches (whatif.h), loading by
 * hand having been `all` of it. */
static double warmer_without(const struct rule_case *c, double all)
{
    const double step_ns = FACT_OF(c, STEP_MS) * 1e6;
    return step_ns > 0 ? whatif_cold_ns((1 - all) * step_ns, all * step_ns) / step_ns
                       : 0;
}

/* Where nobody modelled a loader: calls that took `part` of the time to load become few
 * large ones. What the program does around each call goes with it, in half. */
static void gain_of_calls(const struct rule_case *c, struct draft *d, double part)
{
    const double input = input_share(c);
    const double gone = fmax(part - bytes_part(c), 0.5 * part);
    const double around = around_by_hand(c);
    const double all = fmin(input + around, 1);
    const double warm = around > 0 ? warmer_without(c, all) : 0;
    const double mid = input * (gone + 0.5 * (1 - part)) + gone_around(c, around);
    d->gain = (struct gain){ 0.6 * input * gone, fmin(mid, all) + warm, all + warm };
}

static bool judge_metadata(const struct rule_case *c, struct draft *d)
{
    const double opens = FACT_OF(c, OPEN_SHARE);
    if (!waits(c) || !(opens >= c->t->open_time) ||
        !(opens >= FACT_OF(c, READ_SHARE)) ||
        fmax(FACT_OF(c, OPENS_PER_STEP), FACT_OF(c, LOOKS_PER_STEP)) <
            c->t->opens_per_step)
        return false;
    gain_of_calls(c, d, fmin(opens + FACT_OF(c, READ_SHARE), 1));
    gain_of_model(c, d, FACT_OPENS_GAIN);
    d->stake = rule_of_run(c, input_share(c) * fact_of_calls(c->f));
    const bool looks = FACT_OF(c, LOOKS_PER_STEP) > FACT_OF(c, OPENS_PER_STEP);
    buf_printf(&d->text,
               "%s files takes %.0f %% of the time to load, reading them %.0f %%",
               looks ? "Listing, looking at and opening" : "Opening",
               100 * fmin(opens, 1), 100 * fmin(FACT_OF(c, READ_SHARE), 1));
    if (fact_known(c->f, FACT_OPENS_PER_STEP))
        buf_printf(&d->text, ": %s files a step",
                   count_text(FACT_OF(c, OPENS_PER_STEP), (char[24]){ 0 }));
    if (looks)
        buf_printf(&d->text, ", and %s looks at names (stat, listing)",
                   count_text(FACT_OF(c, LOOKS_PER_STEP), (char[24]){ 0 }));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, READ);
    buf_puts(&d->advice, "Put the many small files");
    put_place(&d->advice, " of ", PLACE_OF(c, READ));
    buf_puts(&d->advice,
             " into few large ones (tar shards, one array with an index), or "
             "keep them open");
    if (looks)
        buf_puts(&d->advice, "; list a folder once and remember what it holds");
    return true;
}

static bool judge_small_reads(const struct rule_case *c, struct draft *d)
{
    const double small = FACT_OF(c, SMALL_READ_SHARE);
    const double reads = FACT_OF(c, READ_SHARE);
    if (!waits(c) || !(small >= c->t->small_reads) ||
        !(reads >= c->t->small_read_time) || !(FACT_OF(c, READS_PER_STEP) >= 20) ||
        FACT_OF(c, READS_PER_STEP) < c->t->reads_per_open * FACT_OF(c, OPENS_PER_STEP))
        return false;
    gain_of_calls(c, d, fmin(reads, 1));
    gain_of_model(c, d, FACT_READS_GAIN);
    d->stake = rule_of_run(c, input_share(c) * fmin(reads, 1));
    buf_printf(&d->text,
               "%.0f %% of reads move less than 4 KiB, %s calls a step; they take "
               "%.0f %% of the time to load.",
               100 * small, count_text(FACT_OF(c, READS_PER_STEP), (char[24]){ 0 }),
               100 * fmin(reads, 1));
    d->place = PLACE_OF(c, READ);
    buf_puts(&d->advice, "Read larger pieces");
    put_place(&d->advice, " of ", PLACE_OF(c, READ));
    buf_puts(&d->advice, " at once: a buffered file, one read per sample, or mmap");
    return true;
}

/* ---- io_wait --------------------------------------------------------------------------- */

static bool judge_io_wait(const struct rule_case *c, struct draft *d)
{
    const double waiting = fmax(FACT_OF(c, IOWAIT_SHARE), FACT_OF(c, IO_PRESSURE));
    if (!(waiting >= c->t->iowait))
        return false;
    d->stake = fmin(waiting, 1);
    d->alone_is_low = true;
    buf_printf(&d->text, "%.0f %% of the time was spent waiting for storage.",
               100 * fmin(waiting, 1));
    d->place = PLACE_OF(c, READ);
    buf_puts(&d->advice,
             "Read ahead and in parallel, keep data that fits in memory, or "
             "use faster storage");
    put_place(&d->advice, " for ", PLACE_OF(c, READ));
    return true;
}

/* ---- slow_samples -------------------------------------------------------------------------- */

/* Data that comes in pieces of several samples has a slow sample in every batch; no step
 * takes longer than another by that. */
static bool is_even(const struct rule_case *c)
{
    return FACT_OF(c, SLOW_STEP_SHARE) < c->t->uneven_steps;
}

static bool judge_slow_samples(const struct rule_case *c, struct draft *d)
{
    const double lost = FACT_OF(c, SLOW_SAMPLE_SHARE);
    const double tail = FACT_OF(c, SAMPLE_TAIL);
    if (!waits(c) || is_even(c) || !(tail >= c->t->sample_tail) ||
        !(lost >= c->t->slow_samples))
        return false;
    draft_time(c, d, input_share(c) * lost, 0.6, 0.97, 1);
    gain_of_model(c, d, FACT_EVEN_GAIN);
    d->stake = rule_of_run(c, input_share(c) * lost);
    buf_printf(
        &d->text,
        "A few samples take %.0f times as long as the median; %.0f %% of the time "
        "to load goes into them.",
        tail, 100 * lost);
    d->place = PLACE_OF(c, TRANSFORM);
    buf_puts(&d->advice,
             "Look at the slowest samples (sonde report --full lists them): "
             "bound or prepare them beforehand; more prefetch hides short "
             "stalls");
    put_place(&d->advice, "; slowest at ", PLACE_OF(c, TRANSFORM));
    return true;
}

/* ---- too_many_workers ------------------------------------------------------------------------ */

/* What the first step waits for the start of those that go, most of the start being over
 * by then; what steps take less comes on top. At best the whole start is saved. */
static void gain_of_fewer(const struct rule_case *c, struct draft *d, double loss,
                          double start)
{
    const double loop = FACT_OF(c, LOOP_S) > 0 ? FACT_OF(c, LOOP_S) : FACT_OF(c, RUN_S);
    const double first = FACT_OF(c, FIRST_WAIT_S) / loop *
                         (1 - FACT_OF(c, WORKERS_BEST) / FACT_OF(c, WORKERS));
    const double waited = isnan(first) ? 0 : fmin(first, 1);
    const double step = fmax(fmax(-loss, FACT_OF(c, WORKERS_GAIN)), 0);
    const double saved = 1 - (1 - waited) * (1 - step);
    d->gain = (struct gain){ 0.5 * saved, saved,
                             fmin(fmax(fmax(1.5 * saved, saved + 0.1), start), 0.95) };
}

/* What a step would lose with half of them, or with as few as are best: where taking
 * batches from other processes is the work, half of these are no better than all. */
static double loss_with_fewer(const struct rule_case *c)
{
    const double half = FACT_OF(c, FEWER_WORKERS_LOSS);
    const double gain = FACT_OF(c, WORKERS_GAIN);
    const bool fewer = FACT_OF(c, WORKERS_BEST) < FACT_OF(c, WORKERS);
    return fewer && -gain < half ? -gain : half;
}

/* Share of a step. As many of them as cores is what people are told to take: there only
 * what is sure counts. */
static double lost_to_workers(const struct rule_case *c)
{
    const bool many = !(FACT_OF(c, WORKERS) <= FACT_OF(c, CORES));
    return fmax(-FACT_OF(c, FEWER_WORKERS_LOSS),
                many ? FACT_OF(c, WORKERS_GAIN) : FACT_OF(c, WORKERS_GAIN_LOW));
}

static bool judge_too_many(const struct rule_case *c, struct draft *d)
{
    const double workers = FACT_OF(c, WORKERS);
    const double loss = loss_with_fewer(c);
    /* Starting them again in every epoch is not a matter of how many they are. */
    const double again = FACT_OF(c, EPOCH_SHARE);
    const double of = FACT_OF(c, LOOP_S) > 0 ? FACT_OF(c, LOOP_S) : FACT_OF(c, RUN_S);
    const double start = FACT_OF(c, WORKER_START_S) /
                             (FACT_OF(c, WORKER_START_S) + of) -
                         (isnan(again) ? 0 : again);
    const double memory = FACT_OF(c, WORKER_PRIVATE_MB) / FACT_OF(c, MEMORY_LIMIT_MB);
    const double best = FACT_OF(c, WORKERS_BEST);
    if (!(workers >= 2) || !(loss <= c->t->worker_excess) || !(best < workers))
        return false;
    /* Idle workers cost nothing worth a word; starting, feeding or housing them may. */
    const double steps = lost_to_workers(c);
    const double besides = fmax(isnan(start) ? 0 : start, memory >= 0.1 ? memory : 0);
    const double at_stake = fmax(steps, besides);
    if (!(at_stake >= c->t->epoch_stall))
        return false;
    d->stake = fmin(fmax(rule_of_run(c, steps), besides), 1);
    gain_of_fewer(c, d, loss, start);
    buf_printf(&d->text, "%.0f workers; %.0f would be as fast", workers, best);
    if (start > 0.02)
        buf_printf(&d->text, ", and starting them took %.0f %% of the loop",
                   100 * start);
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, LOADER);
    buf_printf(&d->advice, "num_workers=%.0f → %.0f", workers, best);
    put_place(&d->advice, " at ", PLACE_OF(c, LOADER));
    return true;
}

/* ---- epoch_boundary_stall ----------------------------------------------------------------- */

/* What the first batch of an epoch takes from workers that are there already: all of them
 * begin at once, and each sends its batch from a second thread while it makes what is
 * ahead of it, so that the first comes when that is made. 2.2 ms are the indices on their
 * way, waking up and taking it; NaN unknown. */
static double first_batch_ms(const struct rule_case *c)
{
    const double cpu = FACT_OF(c, BATCH_CPU_MS);
    const double make = isnan(cpu) ? FACT_OF(c, BATCH_MS) : cpu;
    const double ahead = FACT_OF(c, PREFETCH) >= 1 ? FACT_OF(c, PREFETCH) : 2;
    const double turns = FACT_OF(c, WORKERS) / FACT_OF(c, CORES);
    return make * ahead * (turns > 1 ? turns : 1) + 2.2;
}

/* All that passes there goes, but for that batch. */
static void gain_of_kept_workers(const struct rule_case *c, struct draft *d,
                                 double share)
{
    const double loop = FACT_OF(c, LOOP_S) > 0 ? FACT_OF(c, LOOP_S) : FACT_OF(c, RUN_S);
    const double batch = first_batch_ms(c) * (FACT_OF(c, EPOCHS) - 1) / 1e3 / loop;
    const double mid = fmax(share - (batch > 0 ? batch : 0), 0.85 * share);
    d->gain = (struct gain){ 0.7 * share, mid, fmin(1.1 * share, 0.98) };
}

static bool judge_epoch(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, EPOCH_SHARE);
    if (!(share >= c->t->epoch_stall) || !(FACT_OF(c, EPOCHS) >= 2))
        return false;
    d->stake = share;
    gain_of_kept_workers(c, d, share);
    buf_printf(&d->text, "%.0f %% of the run passes at the change of epochs",
               100 * share);
    if (FACT_OF(c, PERSISTENT) == 0 && FACT_OF(c, WORKERS) > 0)
        buf_puts(&d->text, ": workers are started anew each time");
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, LOADER);
    buf_puts(&d->advice, FACT_OF(c, PERSISTENT) == 1
                             ? "Keep what is prepared at the start of an epoch"
                             : "persistent_workers=True");
    put_place(&d->advice, " at ", PLACE_OF(c, LOADER));
    return true;
}

/* ---- shm_pressure, padding_waste ------------------------------------------------------------ */

static bool judge_shm(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, SHM_SHARE);
    if (!(share >= c->t->shm))
        return false;
    d->stake = rule_nearness(share, c->t->shm, 1) + 0.1;
    buf_printf(&d->text, "/dev/shm was %.0f %% full; when it is full, workers die.",
               100 * share);
    d->place = PLACE_OF(c, LOADER);
    buf_puts(&d->advice, "Give the container more (--shm-size), or lower "
                         "num_workers × prefetch_factor × batch size");
    put_place(&d->advice, " at ", PLACE_OF(c, LOADER));
    return true;
}

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
    buf_printf(&d->text, "%.0f %% of the batches is padding.", 100 * padding);
    d->place = PLACE_OF(c, COLLATE);
    buf_puts(&d->advice,
             "Batch samples of similar length together (bucketing), or pack "
             "them");
    put_place(&d->advice, "; padded at ", PLACE_OF(c, COLLATE));
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
    { "metadata_bound", "METADATA-BOUND", RULES_INPUT, .judge = judge_metadata,
      .needs = { FACT_OPEN_SHARE, FACT_READ_SHARE },
      .shows = { FACT_INPUT_SHARE, FACT_OPENS_PER_STEP, FACT_LOOKS_PER_STEP,
                 FACT_READ_KB, FACT_STEP_MS } },
    { "small_reads", "SMALL READS", RULES_INPUT, .judge = judge_small_reads,
      .needs = { FACT_SMALL_READ_SHARE, FACT_READ_SHARE, FACT_READS_PER_STEP },
      .shows = { FACT_INPUT_SHARE, FACT_READ_KB, FACT_STEP_MS } },
    { "io_wait", "WAITING FOR STORAGE", RULES_INPUT, true, .judge = judge_io_wait,
      .needs = { FACT_IOWAIT_SHARE },
      .shows = { FACT_IO_PRESSURE, FACT_COLD_SHARE, FACT_READ_KB, FACT_INPUT_SHARE },
      .yields_to = { "data_loading_bound", "metadata_bound", "small_reads",
                     "checkpoint_stall", "logging_stall", "swapping",
                     "startup_bound" } },
    { "slow_samples", "A FEW SLOW SAMPLES", RULES_INPUT, .judge = judge_slow_samples,
      .needs = { FACT_SAMPLE_TAIL, FACT_SLOW_SAMPLE_SHARE },
      .shows = { FACT_SAMPLE_MS, FACT_SLOW_STEP_SHARE, FACT_SLOW_STEPS,
                 FACT_INPUT_SHARE } },
    { "too_many_workers", "TOO MANY WORKERS", RULES_INPUT, .judge = judge_too_many,
      .needs = { FACT_WORKERS, FACT_FEWER_WORKERS_LOSS, FACT_WORKERS_BEST },
      .shows = { FACT_CORES, FACT_WORKER_START_S, FACT_WORKER_PRIVATE_MB, FACT_BATCH_MB,
                 FACT_STEP_MS } },
    { "epoch_boundary_stall", "STALLS BETWEEN EPOCHS", RULES_INPUT, .of_run = true,
      .judge = judge_epoch, .needs = { FACT_EPOCH_SHARE, FACT_EPOCHS },
      .shows = { FACT_WORKERS, FACT_PERSISTENT, FACT_WORKER_START_S },
      .yields_to = { "too_many_workers" } },
    { "shm_pressure", "SHARED MEMORY NEARLY FULL", RULES_INPUT, .judge = judge_shm,
      .needs = { FACT_SHM_SHARE },
      .shows = { FACT_SHM_MB, FACT_WORKERS, FACT_PREFETCH, FACT_BATCH_MB } },
    { "padding_waste", "PADDING", RULES_INPUT, .judge = judge_padding,
      .needs = { FACT_PADDING_SHARE },
      .shows = { FACT_BATCH_SIZE, FACT_FORWARD_SHARE, FACT_BACKWARD_SHARE } },
    { 0 },
};
