/* repeat.c: see repeat.h. */
#include "tune/repeat.h"

#include <assert.h>
#include <math.h>

/* Beyond what run to run and model make of the same. */
static const double MUCH_MORE = 1.4;

/* As far as a prediction and a trial of the same may be apart and still agree: the model's
 * median error in the eighth exam (docs/guide-diagnosis.md). */
static const double AGREE = 0.12;

static double counted(const struct repeat *r, size_t i)
{
    return r->loop ? r->done[i].loop_ns : r->done[i].step_ns;
}

bool repeat_is_worth(const struct repeat *r)
{
    return r->count > 0 && !(fabs(counted(r, 0) / r->model_ns - 1) <= AGREE);
}

bool repeat_wants_more(const struct repeat *r, double spent_s, double budget_s)
{
    return repeat_is_worth(r) && !repeat_says_less(r) && r->count < REPEAT_MOST &&
           spent_s + spent_s / (double)r->count <= budget_s;
}

/* ---- Together ------------------------------------------------------------------------ */

static void sort(double *x, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && x[j] < x[j - 1]; j--) {
            const double larger = x[j - 1];
            x[j - 1] = x[j];
            x[j] = larger;
        }
}

struct span {
    double low, mid, high;
};

/* `half`: what is not known of one, as a part of it. NaN where one is. */
static struct span span_of(const double *values, size_t count, double half)
{
    double x[REPEAT_MOST];
    for (size_t i = 0; i < count; i++) {
        if (isnan(values[i]))
            return (struct span){ NAN, NAN, NAN };
        x[i] = values[i];
    }
    sort(x, count);
    const double mid = (x[(count - 1) / 2] + x[count / 2]) / 2;
    return (struct span){ fmin(mid * (1 - half), x[0]), mid,
                          fmax(mid * (1 + half), x[count - 1]) };
}

/* The one that is told about: in the middle, or before it. */
static size_t middle_of(const struct repeat *r)
{
    for (size_t i = 0; i < r->count; i++) {
        size_t below = 0;
        for (size_t j = 0; j < r->count; j++)
            below += counted(r, j) < counted(r, i) ||
                     (counted(r, j) == counted(r, i) && j < i);
        if (below == (r->count - 1) / 2)
            return i;
    }
    return 0;
}

void repeat_median(const struct repeat *r, struct trial_entry *ret_entry)
{
    assert(r->count > 0 && r->count <= REPEAT_MOST);
    double steps[REPEAT_MOST], loops[REPEAT_MOST], half = 0;
    for (size_t i = 0; i < r->count; i++) {
        steps[i] = r->done[i].step_ns;
        loops[i] = r->done[i].loop_ns;
        half = fmax(half, r->done[i].high_ns / r->done[i].step_ns - 1);
    }
    struct trial_entry e = r->done[middle_of(r)];
    const struct span step = span_of(steps, r->count, half);
    const struct span loop = span_of(loops, r->count, half);
    e.low_ns = step.low;
    e.step_ns = step.mid;
    e.high_ns = step.high;
    e.loop_low_ns = loop.low;
    e.loop_ns = loop.mid;
    e.loop_high_ns = loop.high;
    e.median_of = r->count;
    *ret_entry = e;
}

bool repeat_says_less(const struct repeat *r)
{
    struct trial_entry e;
    if (!r->calls_alone || r->count == 0 || !(r->model_ns > 0))
        return false;
    repeat_median(r, &e);
    return (r->loop ? e.loop_ns : e.step_ns) > MUCH_MORE * r->model_ns;
}
