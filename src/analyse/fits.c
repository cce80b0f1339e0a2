/* fits.c: see fits.h.
 *
 * Beyond the largest batch seen the line is a forecast. It is given where the data set may
 * need it: FAR times the largest at most.
 */
#include "analyse/fits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/loaders.h"
#include "analyse/report.h"
#include "num/nnls.h"

enum {
    LEAST_HOST = 8,    /* batches for a line */
    LEAST_CARD = 3,    /* only those that raised the card's peak are known … */
    FEW = 6,           /* … and below so many they must lie on it nearly */
    LEAST_SQUARE = 6,  /* … for a curve */
    FIRST_BATCHES = 2, /* gradients and the optimizer's state come meanwhile */
    MOST = 4096,
    TERMS = 3,
};

static const double SPREAD = 1.2;    /* largest over smallest: below, all are alike */
static const double EXPLAINED = 0.8; /* of the variance of what was held */
static const double FEW_EXPLAINED = 0.98;
static const double SQUARE = 0.5; /* a curve must leave less than so much of it */
static const double FAR = 8;
static const double ONE_IN_10000 = 3.72;    /* standard deviations */
static const double MADE_OF_SAMPLES = 1.25; /* bytes of a batch over those of samples */
static const double MIB = 1 << 20;

/* ---- The line -------------------------------------------------------------------------- */

static double held_by(const struct batch_fit *f, double bytes, double samples)
{
    return f->base + bytes * (f->per_byte + bytes / samples * f->per_square);
}

static double squares_left(const struct batch_fit *f, const struct fit_point *p,
                           size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = p[i].held - held_by(f, p[i].bytes, p[i].samples);
        sum += off * off;
    }
    return sum;
}

static int solve(const struct fit_point *p, size_t n, size_t terms, double scale,
                 struct batch_fit *f)
{
    double *a = calloc(n * (terms + 1), sizeof *a), x[TERMS] = { 0 };
    if (!a)
        return -1;
    double *y = a + n * terms;
    for (size_t i = 0; i < n; i++) {
        const double s = p[i].bytes / scale; /* terms of like size */
        a[i * terms] = 1;
        a[i * terms + 1] = s;
        if (terms > 2)
            a[i * terms + 2] = s * s / p[i].samples;
        y[i] = p[i].held / scale;
    }
    const int rc = nnls_solve(a, y, NULL, n, terms, x);
    free(a);
    f->base = x[0] * scale;
    f->per_byte = x[1];
    f->per_square = x[2] / scale;
    return rc;
}

/* How many bytes the batch has that makes `held` of what was held. */
static double bytes_for(const struct batch_fit *f, double held, double samples)
{
    const double c = f->base - held, b = f->per_byte, a = f->per_square / samples;
    if (c >= 0)
        return 0;
    const double root = b + sqrt(b * b - 4 * a * c);
    return root > 0 ? -2 * c / root : INFINITY; /* right with a = 0 too */
}

/* Variance of what was held, and whether batches differ at all. */
static bool differ(const struct fit_point *p, size_t n, double *ret_squares,
                   double *ret_largest)
{
    double least = INFINITY, most = 0, mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        least = fmin(least, p[i].bytes);
        most = fmax(most, p[i].bytes);
        mean += p[i].held / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        squares += (p[i].held - mean) * (p[i].held - mean);
    *ret_squares = squares;
    *ret_largest = most;
    return least > 0 && most >= SPREAD * least && squares > 0;
}

static double usual_samples(const struct fit_point *p, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += p[i].samples;
    return sum / (double)n;
}

bool fit_batches(const struct fit_point *p, size_t n, struct fit_room room,
                 struct batch_fit *f)
{
    double squares, largest;
    struct batch_fit line = *f, curve = *f;
    if (n < LEAST_CARD || !(room.rest >= 0) || !(room.limit > room.rest) ||
        !differ(p, n, &squares, &largest) || solve(p, n, 2, largest, &line) < 0)
        return false;
    double left = squares_left(&line, p, n);
    if (n >= LEAST_SQUARE && solve(p, n, TERMS, largest, &curve) == 0) {
        const double curved = squares_left(&curve, p, n);
        if (curved < SQUARE * left) {
            line = curve;
            left = curved;
        }
    }
    if (!(left <= (1 - (n < FEW ? FEW_EXPLAINED : EXPLAINED)) * squares))
        return false;
    line.known = true;
    line.batches = n;
    line.error = sqrt(left / (double)n);
    line.largest = fmax(largest, f->largest);
    line.largest_samples = usual_samples(p, n);
    line.limit = room.limit;
    const double low = room.limit - room.rest, top = low + room.spare;
    const double samples = line.largest_samples;
    line.fits = bytes_for(&line, top, samples);
    line.fits_low = bytes_for(&line, low - 2 * line.error, samples);
    line.fits_high = bytes_for(&line, top + 2 * line.error, samples);
    *f = line;
    return true;
}

/* ---- What was recorded ---------------------------------------------------------------- */

/* A batch that a quick loop did not weigh has the weight of the one before. */
static bool is_weighed(const struct loader *l, size_t i)
{
    const struct loader_batch *b = &l->recent[i];
    return b->bytes && b->samples && !(i > 0 && b->bytes == b[-1].bytes) &&
           !(b->epoch == 0 && b->number < FIRST_BATCHES);
}

static size_t collect(const struct loader *l, enum fit_place place,
                      struct fit_point *points)
{
    size_t n = 0;
    for (size_t i = 0; i < l->recent_count && n < MOST; i++) {
        const struct loader_batch *b = &l->recent[i];
        const uint64_t held = place == FIT_CARD ? b->card_high : b->high;
        if (held && is_weighed(l, i))
            points[n++] = (struct fit_point){ (double)b->bytes, b->samples,
                                              (double)held };
    }
    return n;
}

static double most_held(const struct fit_point *points, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, points[i].held);
    return most;
}

static double most_reserved(const struct loader *l)
{
    uint64_t most = 0;
    for (size_t i = 0; i < l->recent_count; i++)
        if (l->recent[i].card_reserved > most)
            most = l->recent[i].card_reserved;
    return (double)most;
}

/* Of the card that was fullest, MiB; NaN unknown. */
static void read_card(const struct report *r, double *ret_used, double *ret_total)
{
    *ret_used = *ret_total = NAN;
    for (size_t i = 0; i < r->monitors.series_count; i++) {
        const struct report_series *s = &r->monitors.series[i];
        if (strcmp(s->metric, "gpu_memory") != 0 || !s->subject[0] ||
            s->max <= *ret_used)
            continue;
        const struct report_series *percent = monitors_find(
            &r->monitors, "gpu_memory_percent", s->subject);
        *ret_used = s->max;
        *ret_total = percent && percent->max > 0 ? 100 * s->max / percent->max : NAN;
    }
}

/* Beside what the points count: on the host what is no heap of the main process, on the card
 * what is not the allocator's. */
static struct fit_room room_of(const struct report *r, const struct facts *f,
                               const struct loader *l, enum fit_place place,
                               double most)
{
    if (place == FIT_CARD) {
        double used, total;
        read_card(r, &used, &total);
        return (struct fit_room){ .rest = used * MIB - most_reserved(l),
                                  .limit = total * MIB };
    }
    /* Resident memory was highest when the heap was: of a batch that killed the program
     * that is all that is known. */
    const double heap = fmax(most, (double)r->allocations.peak_bytes);
    const double rest = f->v[FACT_RSS_MB] * MIB - heap;
    return (struct fit_room){ .rest = rest,
                              .spare = fmin(mapped_files_mb(r, l->pid) * MIB, rest),
                              .limit = f->v[FACT_MEMORY_LIMIT_MB] * MIB };
}

/* ---- What may still come -------------------------------------------------------------- */

static bool saw_all(const struct loader *l)
{
    for (size_t i = 0; i < l->epoch_count; i++)
        if (l->epoch_list[i].exhausted && l->dataset_length > 0)
            return true;
    return false;
}

/* A padded batch is as long as its longest sample, so the longest was seen in one. */
static double longest_padded(const struct loader *l, double samples)
{
    double most = 0;
    for (size_t i = 0; i < l->recent_count; i++)
        if (l->recent[i].bytes && l->recent[i].samples)
            most = fmax(most, (double)l->recent[i].bytes / l->recent[i].samples);
    return most > 0 ? most * samples : NAN;
}

static void set_possible(const struct loader *l, const struct facts *f,
                         struct batch_fit *fit)
{
    const double samples = l->batch_size > 0 ? l->batch_size : fit->largest_samples;
    const struct distribution *s = &l->sample_bytes, *b = &l->batch_bytes;
    fit->all_seen = saw_all(l);
    fit->padded = f->v[FACT_PADDING_SHARE] > 0;
    if (fit->padded) {
        fit->possible = fit->likely = fmax(longest_padded(l, samples), fit->largest);
        return;
    }
    /* Samples side by side. Padded by somebody's own hand a batch has more than they. */
    const double each = l->batch_samples.mean > 0 ? b->mean / l->batch_samples.mean
                                                  : NAN;
    const double more = each / s->mean;
    if (s->count < LEAST_HOST || !(more <= MADE_OF_SAMPLES) || !(more > 0.5))
        return;
    fit->possible = fmax(samples * s->max * fmax(more, 1), fit->largest);
    fit->likely = fmin(b->mean + ONE_IN_10000 * distribution_std(b), fit->possible);
}

/* ---- Facts ------------------------------------------------------------------------------ */

static void set_facts(struct facts *f, const struct batch_fit *fit,
                      const enum fact names[3])
{
    if (!fit->known || !(fit->fits <= FAR * fit->largest))
        return;
    f->v[names[0]] = fit->fits / fit->largest;
    f->v[names[1]] = fit->possible / fit->fits;
    f->v[names[2]] = fit->likely / fit->fits;
}

static void fit_place(struct report *r, struct facts *f, const struct loader *l,
                      enum fit_place place, struct fit_point *points)
{
    static const enum fact names[FIT_PLACES][3] = {
        { FACT_BATCH_FITS, FACT_BATCH_POSSIBLE, FACT_BATCH_LIKELY },
        { FACT_GPU_BATCH_FITS, FACT_GPU_BATCH_POSSIBLE, FACT_GPU_BATCH_LIKELY },
    };
    struct batch_fit *fit = &r->fits[place];
    const size_t n = collect(l, place, points);
    fit->largest = l->batch_bytes.count ? l->batch_bytes.max : 0;
    const struct fit_room room = room_of(r, f, l, place, most_held(points, n));
    fit->held = place == FIT_CARD ? room.rest + most_reserved(l)
                                  : f->v[FACT_RSS_MB] * MIB;
    if ((place == FIT_HOST && n < LEAST_HOST) || !fit_batches(points, n, room, fit))
        return;
    set_possible(l, f, fit);
    set_facts(f, fit, names[place]);
    f->v[FACT_BATCH_ALL_SEEN] = fit->all_seen && (fit->padded || fit->possible > 0);
    f->v[FACT_LARGEST_BATCH_MB] = fit->largest / MIB;
}

void facts_of_fits(struct report *r, struct facts *f)
{
    const struct loader *l = loaders_training(&r->loaders);
    struct fit_point *points = l ? calloc(MOST, sizeof *points) : NULL;
    for (int place = 0; place < FIT_PLACES; place++) {
        r->fits[place] = (struct batch_fit){ .possible = NAN, .likely = NAN };
        if (points)
            fit_place(r, f, l, place, points);
    }
    free(points);
}
