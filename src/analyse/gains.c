/* gains.c: what a step would take after a cure of how its batches are made.
 *
 * A cure that removes nine tenths of a step is judged by the tenth that stays, so what
 * stays is predicted: all that was measured not to be the illness, and what the cured
 * work still needs. The model of the loader (whatif.h) turns that into step time, since
 * workers hide what they make beside the step.
 *
 * Three answers each: the usual one; `low`, where a part of the illness stays; `high`,
 * where the cured work costs nothing any more.
 */
#include <math.h>

#include "analyse/fact_parts.h"
#include "analyse/report.h"
#include "analyse/whatif.h"

/* A sample that takes a handful of calls from Python: its index, one read or a few
 * operators on arrays, each some microseconds with the tensor it makes. The cured
 * data sets of the development set took 15 to 45 µs a sample. */
static const double SAMPLE_NS = 20e3;

/* How much of the time to make a batch is left: when part of the illness stays, usually,
 * and at best. */
struct left {
    double much, usual, little;
};

/* The illness was `share` of making a batch, of which `stays` goes on; in its place comes
 * work of `floor_ns`. Never worse than it was. */
static struct left left_of(const struct pipeline *p, double share, double stays,
                           double floor_ns)
{
    const double ill = fmin(fmax(share, 0), 1);
    const double usual = fmin(1 - ill + floor_ns / p->make_ns, 1 - 0.5 * ill);
    return (struct left){ fmax(1 - ill + ill * stays, usual), usual, 1 - ill };
}

/* The three facts that begin with `mid`. */
static void set_gain(const struct pipeline *p, struct facts *f, enum fact mid,
                     const struct left *left, bool even)
{
    const double parts[3] = { left->much, left->usual, left->little };
    struct forecast with[3];
    for (int i = 0; i < 3; i++) {
        struct settings s = whatif_now(p);
        s.make_part = fmax(parts[i], 1e-3);
        s.even = even;
        with[i] = whatif_predict(p, &s);
    }
    const double step = p->step_ns;
    const double gain = fmax(1 - with[1].step_ns / step, 0);
    f->v[mid] = gain;
    f->v[mid + 1] = fmin(fmax(1 - with[0].high_ns / step, 0), gain);
    f->v[mid + 2] = fmax(1 - with[2].low_ns / step, gain);
}

/* ---- One cure each ------------------------------------------------------------------------ */

static double floor_of_samples(const struct facts *f)
{
    const double samples = f->v[FACT_BATCH_SIZE];
    return samples > 0 ? samples * SAMPLE_NS : SAMPLE_NS;
}

/* Work on whole arrays, or kept from the first epoch: a few operators are left of it. At
 * worst it becomes three times as fast. */
static void set_transform(const struct pipeline *p, struct facts *f)
{
    const double share = f->v[FACT_TRANSFORM_OF_SAMPLE];
    if (!(share > 0))
        return;
    const struct left left = left_of(p, share, 1.0 / 3, floor_of_samples(f));
    set_gain(p, f, FACT_TRANSFORM_GAIN, &left, false);
}

/* Slow samples make some of the steps wait. The step in the middle waits for none of them,
 * and all become like it: it was measured, with all that the model leaves out. Where it is
 * far from what the model says every other step has to wait. */
static void use_middle_step(const struct pipeline *p, struct facts *f)
{
    const double middle = 1e6 * f->v[FACT_STEP_MS] / p->step_ns;
    const double model = 1 - f->v[FACT_EVEN_GAIN];
    if (middle >= model && middle <= 1.5 * model &&
        1 - middle >= f->v[FACT_EVEN_GAIN_LOW])
        f->v[FACT_EVEN_GAIN] = 1 - middle;
}

/* Slow samples become like the others: batches take what the median one took. */
static void set_even(const struct pipeline *p, struct facts *f)
{
    const double tail = f->v[FACT_SLOW_SAMPLE_SHARE];
    if (!(tail > 0))
        return;
    struct left left = left_of(p, tail, 0.4, 0);
    if (p->make && p->make->count >= 20 && p->make->mean > 0) {
        const double median = distribution_quantile(p->make, 0.5) / p->make->mean;
        left.usual = left.little = fmin(left.usual, median);
    }
    left.little *= 0.9;
    set_gain(p, f, FACT_EVEN_GAIN, &left, true);
    use_middle_step(p, f);
}

static void set_collate(const struct pipeline *p, struct facts *f)
{
    const double share = f->v[FACT_COLLATE_OF_BATCH];
    if (!(share > 0))
        return;
    const struct left left = left_of(p, share, 1.0 / 3, whatif_copy_ns(p->batch_mb));
    set_gain(p, f, FACT_COLLATE_GAIN, &left, false);
}

/* What the interpreter does around a call goes with the call: some tenths of a
 * microsecond, which is nothing but for tens of thousands of them. Around reads of a few
 * bytes it takes as long as they do (fact_of_calls). */
static const double CALL_NS = 0.25e3;

static double with_calls(const struct pipeline *p, const struct facts *f)
{
    const double reads = f->v[FACT_READ_SHARE];
    const double around = f->v[FACT_READS_PER_STEP] * CALL_NS / p->make_ns;
    const double again = f->v[FACT_READ_KB] < 1 ? reads : 0;
    return at_most(reads + fmax(around, again), 1);
}

/* readline() without a buffer reads byte by byte: all of the reads, and what goes with each
 * of them, are on one line, and what the other lines take was measured, and stays. Reads of
 * some bytes each are a loop of the program's own, whose lines all go with them. */
static bool is_readline(const struct facts *f)
{
    const double bytes = 1024 * f->v[FACT_READ_KB];
    return f->v[FACT_LOAD_LINE_SHARE] >= f->v[FACT_READ_SHARE] && bytes < 2;
}

/* A sample that is gathered from many files of some bytes each is nothing but that: paths,
 * names in a folder, objects, small numbers joined. In one array it is a slice. */
static bool is_made_of_files(const struct facts *f)
{
    return f->v[FACT_OPENS_PER_STEP] / f->v[FACT_BATCH_SIZE] >= 8 &&
           f->v[FACT_READ_KB] < 4;
}

/* Of making a batch, what goes with files: few large ones have no opens to speak of, and
 * one read a sample; larger reads alone leave the opens. */
static double share_of_files(const struct pipeline *p, const struct facts *f,
                             enum fact gain)
{
    const double reads = with_calls(p, f);
    const double large = f->v[FACT_READ_SHARE] - fact_small_reads(f);
    if (gain == FACT_OPENS_GAIN)
        return is_made_of_files(f) ? 0.95 : fmax(fact_of_calls(f) + large, reads);
    return is_readline(f) ? fmin(reads, f->v[FACT_LOAD_LINE_SHARE]) : reads;
}

/* What was measured not to be files has the sample's other calls already: the floor is
 * what stays where nothing else did. */
static struct left left_of_files(const struct pipeline *p, const struct facts *f,
                                 enum fact gain, double share)
{
    const bool floor = gain == FACT_OPENS_GAIN || !is_readline(f);
    struct left left = left_of(p, share, 0.4, 0);
    const double least = floor ? floor_of_samples(f) / p->make_ns : 0;
    left.usual = fmin(fmax(left.usual, least), 1 - 0.5 * fmin(share, 1));
    left.much = fmax(left.much, left.usual);
    return left;
}

static void set_files(const struct pipeline *p, struct facts *f, enum fact gain)
{
    const double share = share_of_files(p, f, gain);
    if (!(share > 0))
        return;
    const struct left left = left_of_files(p, f, gain, share);
    set_gain(p, f, gain, &left, false);
}

double gains_left_without_files(const struct pipeline *p, const struct facts *f,
                                bool opens)
{
    const enum fact gain = opens ? FACT_OPENS_GAIN : FACT_READS_GAIN;
    if (!p->known || !(p->make_ns > 0))
        return NAN;
    const double share = share_of_files(p, f, gain);
    return share > 0 ? left_of_files(p, f, gain, share).usual : NAN;
}

/* ---- Settings -------------------------------------------------------------------------------- */

static void set_workers(const struct pipeline *p, struct facts *f)
{
    const struct settings best = whatif_best(p);
    const struct forecast with_best = whatif_predict(p, &best);
    struct settings half = whatif_now(p);
    f->v[FACT_WORKERS_BEST] = best.workers;
    f->v[FACT_WORKERS_GAIN] = fmax(1 - with_best.step_ns / p->step_ns, 0);
    f->v[FACT_WORKERS_GAIN_LOW] = fmax(1 - with_best.high_ns / p->step_ns, 0);
    f->v[FACT_WORKERS_GAIN_HIGH] = fmax(1 - with_best.low_ns / p->step_ns, 0);
    half.workers = (half.workers + 1) / 2;
    if (p->workers >= 2)
        f->v[FACT_FEWER_WORKERS_LOSS] = whatif_predict(p, &half).step_ns / p->step_ns -
                                        1;
}

void gains_of_pipeline(const struct pipeline *p, struct facts *f)
{
    if (!p->known)
        return;
    set_transform(p, f);
    set_even(p, f);
    set_collate(p, f);
    set_files(p, f, FACT_OPENS_GAIN);
    set_files(p, f, FACT_READS_GAIN);
    set_workers(p, f);
}

void facts_of_gains(struct report *r, struct facts *f)
{
    struct pipeline p;
    r->transform_of_load = f->v[FACT_TRANSFORM_OF_SAMPLE];
    pipeline_of(r, &p);
    if (!p.by_hand) /* there is no loader to set; rules know what its calls cost */
        gains_of_pipeline(&p, f);
}
