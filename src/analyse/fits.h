/* fits.h: the batch that will not fit.
 *
 * Where batches differ in size (padded sequences, graphs) a step's memory goes with what is
 * in its batch. Both were recorded batch by batch: the bytes of the batch, and the most
 * that was held until the next was asked for (python/src/highs.c). A line through them,
 * with a square where sequences are padded, says how large a batch may get.
 *
 *     held(s) = base + per_byte · s + per_square · s² / samples      s: bytes of the batch
 *
 * Everything is bytes. What is not known is NaN; a fit that explains little of what was
 * held is none, so that a leak, or memory that has nothing to do with batches, says nothing.
 */
#ifndef SONDE_ANALYSE_FITS_H
#define SONDE_ANALYSE_FITS_H

#include <stdbool.h>
#include <stddef.h>

struct facts;
struct report;

/* Of one batch. */
struct fit_point {
    double bytes, samples, held;
};

struct fit_room {
    double rest, spare, limit;
};

enum fit_place { FIT_HOST, FIT_CARD, FIT_PLACES };

struct batch_fit {
    bool known;
    size_t batches; /* that the line goes through */
    double base, per_byte, per_square;
    double error;           /* standard deviation around it */
    double largest;         /* batch that the program got, weighed */
    double largest_samples; /* in a usual batch */
    double held, limit;     /* the most that was in use, by everything; what there is */
    double fits;            /* the largest batch that fits, … */
    double fits_low;  /* … with no page of a mapped file taken back; two errors */
    double fits_high; /* … and two errors the other way */
    double possible;  /* the largest that samples seen so far could make; NaN unknown */
    double likely;    /* one batch in 10,000 is larger; NaN unknown */
    bool padded;      /* as long as its longest sample; else as large as all together */
    bool all_seen;    /* a whole pass over the data set: no longer sample can come */
};

/* The line through the points; false: they do not lie on one. `rest` is what is held beside
 * what the points count, of it `spare` can be taken back (pages of files); `limit` is
 * what all has to fit into. Sets `known` to `fits_high`,
 * `largest` only if the points have more. */
bool fit_batches(const struct fit_point *points, size_t count, struct fit_room room,
                 struct batch_fit *fit);

/* Fills report->fits and the facts about them; after those about memory and cards. */
void facts_of_fits(struct report *report, struct facts *facts);

#endif
