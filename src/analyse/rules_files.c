/* rules_files.c: rules about the files that data come from. */
#include <stdio.h>

#include "analyse/fact_parts.h"
#include "analyse/input_words.h"
#include "analyse/rules.h"
#include "analyse/whatif.h"

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

/* What the program loads by hand, of a step: outside of phases. */
static double by_hand(const struct rule_case *c)
{
    const double zones = FACT_OF(c, WAIT_SHARE) + FACT_OF(c, PREPROCESSING_SHARE) +
                         FACT_OF(c, COLLATE_SHARE);
    return fmax(FACT_OF(c, INPUT_SHARE) - zones, 0);
}

/* There only its calls are known to be input: what it does around them takes about as
 * long again, and is outside of phases. */
static double around_by_hand(const struct rule_case *c)
{
    const double rest = FACT_OF(c, OTHER_SHARE); /* what is input is out of it */
    return rest > 0 ? fmin(by_hand(c), rest) : 0;
}

/* Of what is around calls by hand: a batch out of arrays that are there is a few calls
 * from Python, 0.1 ms. Where steps are not timed, a tenth stays. */
static double gone_around(const struct rule_case *c, double around)
{
    const double few = 0.1 / FACT_OF(c, STEP_MS);
    return around > 0 ? fmax(around - (few > 0 ? few : 0.1 * around), 0) : 0;
}

/* Of the time to load: what Python does around a file that is opened (its object, a name
 * put together, what is made of the bytes: open() and read() take 5 to 6 µs beyond the
 * system calls) and around other calls. It goes with them. */
static double objects_part(const struct rule_case *c, double input)
{
    const double us = 5 * FACT_OF(c, OPENS_PER_STEP) +
                      0.25 * (FACT_OF(c, LOOKS_PER_STEP) + FACT_OF(c, READS_PER_STEP));
    const double part = us / 1e3 / (input * FACT_OF(c, STEP_MS));
    return part > 0 ? part : 0;
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
 * large ones. What the program does around each call goes with it; of anything else that
 * loading is, a half. */
static void gain_of_calls(const struct rule_case *c, struct draft *d, double part)
{
    const double input = input_share(c);
    const double gone = fmax(part - bytes_part(c), 0.5 * part);
    const double objects = fmin(objects_part(c, input), 1 - part);
    const double around = around_by_hand(c);
    const double all = fmin(input + around, 1);
    const double warm = by_hand(c) > 0 ? warmer_without(c, all) : 0;
    const double mid = input * (gone + objects + 0.5 * (1 - part - objects)) +
                       gone_around(c, around);
    d->gain = (struct gain){ 0.6 * input * gone, fmin(mid, all) + warm, all + warm };
}

static bool judge_metadata(const struct rule_case *c, struct draft *d)
{
    const double opens = FACT_OF(c, OPEN_SHARE);
    if (!input_waits(c) || !(opens >= c->t->open_time) ||
        !(opens >= FACT_OF(c, READ_SHARE)) ||
        fmax(FACT_OF(c, OPENS_PER_STEP), FACT_OF(c, LOOKS_PER_STEP)) <
            c->t->opens_per_step)
        return false;
    gain_of_calls(c, d, fmin(opens + FACT_OF(c, READ_SHARE), 1));
    draft_gain_of_model(c, d, FACT_OPENS_GAIN);
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
    if (!input_waits(c) || !(small >= c->t->small_reads) ||
        !(reads >= c->t->small_read_time) || !(FACT_OF(c, READS_PER_STEP) >= 20) ||
        FACT_OF(c, READS_PER_STEP) < c->t->reads_per_open * FACT_OF(c, OPENS_PER_STEP))
        return false;
    gain_of_calls(c, d, fmin(reads, 1));
    draft_gain_of_model(c, d, FACT_READS_GAIN);
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

/* ---- The rows ----------------------------------------------------------------------------------- */

const struct rule rules_files[] = {
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
    { 0 },
};
