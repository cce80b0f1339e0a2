/* The batch that will not fit: known lines and curves, and what is none. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyse/facts.h"
#include "analyse/fits.h"
#include "analyse/report.h"

static void assert_part(double value, double expected, double part)
{
    assert_near(value, expected, part * fabs(expected));
}

static const double MIB = 1 << 20;
enum { COUNT = 24, SAMPLES = 8 };

/* 100 MiB and 20 bytes a byte, and as much more as `square` says. */
static size_t make_points(struct fit_point *points, size_t count, double square)
{
    for (size_t i = 0; i < count; i++) {
        const double bytes = (1 + (double)(i * 7 % count) / 8) * MIB;
        points[i] = (struct fit_point){
            bytes, SAMPLES, 100 * MIB + 20 * bytes + square * bytes * bytes / SAMPLES
        };
    }
    return count;
}

static void a_line_says_how_large_a_batch_may_get(void **state)
{
    (void)state;
    struct fit_point points[COUNT];
    struct batch_fit fit = { .possible = NAN };
    make_points(points, COUNT, 0);
    /* 50 MiB elsewhere: 1,000 − 50 − 100 is left for twenty times a batch. */
    assert_true(
        fit_batches(points, COUNT, (struct fit_room){ 50 * MIB, 0, 1000 * MIB }, &fit));
    assert_true(fit.known && fit.batches == COUNT);
    assert_part(fit.per_byte, 20, 1e-3);
    assert_part(fit.fits, 42.5 * MIB, 1e-3);
    assert_part(fit.largest, (1 + 23.0 / 8) * MIB, 1e-9);
}

static void squares_are_seen_where_they_are(void **state)
{
    (void)state;
    struct fit_point points[COUNT];
    struct batch_fit fit = { 0 };
    make_points(points, COUNT, 8e-5); /* at the largest: as much again, and more */
    assert_true(
        fit_batches(points, COUNT, (struct fit_room){ 0, 0, 1000 * MIB }, &fit));
    assert_part(fit.per_square, 8e-5, 1e-3);
    /* 20 s + 1e-5 s² = 900 MiB */
    assert_part(20 * fit.fits + 1e-5 * fit.fits * fit.fits, 900 * MIB, 1e-3);
}

static void pages_that_can_be_taken_back_make_room(void **state)
{
    (void)state;
    struct fit_point points[COUNT];
    struct batch_fit fit = { 0 };
    make_points(points, COUNT, 0);
    assert_true(fit_batches(
        points, COUNT, (struct fit_room){ 150 * MIB, 100 * MIB, 1000 * MIB }, &fit));
    assert_part(fit.fits, 42.5 * MIB, 1e-3);
    assert_part(fit.fits_low, 37.5 * MIB, 1e-3);
}

static void what_is_no_line_says_nothing(void **state)
{
    (void)state;
    struct fit_point points[COUNT];
    const struct fit_room room = { 0, 0, 1000 * MIB };
    struct batch_fit fit = { 0 };
    make_points(points, COUNT, 0);
    assert_false(fit_batches(points, 2, room, &fit)); /* few */
    points[1].held *= 1.1;
    assert_false(fit_batches(points, 5, room, &fit)); /* few, and not on a line */
    assert_true(fit_batches(points, COUNT, room, &fit));
    fit = (struct batch_fit){ 0 };
    for (size_t i = 0; i < COUNT; i++) /* grows with time: a leak */
        points[i].held = (100 + 20 * (double)i) * MIB;
    assert_false(fit_batches(points, COUNT, room, &fit));
    make_points(points, COUNT, 0);
    for (size_t i = 0; i < COUNT; i++) /* all alike */
        points[i].bytes = (2 + 0.01 * (double)(i % 3)) * MIB;
    assert_false(fit_batches(points, COUNT, room, &fit));
    make_points(points, COUNT, 0);
    assert_false(
        fit_batches(points, COUNT, (struct fit_room){ NAN, 0, 1000 * MIB }, &fit));
    assert_false(fit_batches(points, COUNT, (struct fit_room){ 0, 0, NAN }, &fit));
    assert_false(fit.known);
}

/* ---- From a report ---------------------------------------------------------------------- */

struct made {
    struct report r;
    struct loader loader;
    struct loader_batch batches[COUNT + 2];
    struct loader_epoch epoch;
    struct facts f;
};

/* 8 samples a batch, side by side; 200 MiB are something else. */
static void make_report(struct made *m)
{
    struct fit_point points[COUNT];
    memset(m, 0, sizeof *m);
    make_points(points, COUNT, 0);
    for (size_t i = 0; i < COUNT; i++)
        m->batches[i + 2] = (struct loader_batch){ .number = i + 2,
                                                   .samples = SAMPLES,
                                                   .bytes = (uint64_t)points[i].bytes,
                                                   .high = (uint64_t)points[i].held };
    m->loader = (struct loader){ .training = true,
                                 .batches = COUNT,
                                 .batch_size = SAMPLES,
                                 .dataset_length = 1000,
                                 .recent = m->batches,
                                 .recent_count = COUNT + 2,
                                 .epoch_list = &m->epoch,
                                 .epoch_count = 1 };
    struct distribution *b = &m->loader.batch_bytes, *s = &m->loader.sample_bytes;
    distribution_add(b, COUNT, 2.4 * MIB, (COUNT - 1) * MIB * MIB, MIB,
                     (1 + 23.0 / 8) * MIB);
    distribution_add(&m->loader.batch_samples, COUNT, SAMPLES, 0, SAMPLES, SAMPLES);
    distribution_add(s, 100, 0.3 * MIB, 0, 0.1 * MIB, 2 * MIB);
    m->r.loaders.list = &m->loader;
    m->r.loaders.count = 1;
    facts_init(&m->f);
    m->f.v[FACT_RSS_MB] = 100 + 20 * (1 + 23.0 / 8) + 200;
    m->f.v[FACT_MEMORY_LIMIT_MB] = 500;
}

static void release_report(struct made *m)
{
    distribution_release(&m->loader.batch_bytes);
    distribution_release(&m->loader.batch_samples);
    distribution_release(&m->loader.sample_bytes);
}

static void facts_tell_of_room_and_of_what_may_come(void **state)
{
    (void)state;
    static struct made m; /* too large for a stack */
    make_report(&m);
    facts_of_fits(&m.r, &m.f);
    /* 500 − 200 − 100 for twenty times a batch: 10 MiB. */
    assert_part(m.r.fits[FIT_HOST].fits, 10 * MIB, 1e-3);
    assert_part(m.f.v[FACT_BATCH_FITS], 10 / 3.875, 1e-3);
    assert_part(m.f.v[FACT_BATCH_POSSIBLE], 1.6, 1e-3); /* 8 × 2 MiB */
    assert_part(m.f.v[FACT_BATCH_LIKELY], 0.612, 1e-3); /* 2.4 + 3.72 MiB */
    assert_true(m.f.v[FACT_BATCH_ALL_SEEN] == 0);
    assert_true(isnan(m.f.v[FACT_GPU_BATCH_FITS]));
    m.epoch.exhausted = true;
    facts_of_fits(&m.r, &m.f);
    assert_true(m.f.v[FACT_BATCH_ALL_SEEN] == 1);
    /* Padded: the longest sample was in the largest batch. */
    m.f.v[FACT_PADDING_SHARE] = 0.3;
    facts_of_fits(&m.r, &m.f);
    assert_part(m.f.v[FACT_BATCH_POSSIBLE], 3.875 / 10, 1e-3);
    release_report(&m);
}

static void missing_memory_or_weights_say_nothing(void **state)
{
    (void)state;
    static struct made m; /* too large for a stack */
    make_report(&m);
    m.f.v[FACT_RSS_MB] = NAN;
    facts_of_fits(&m.r, &m.f);
    assert_true(isnan(m.f.v[FACT_BATCH_FITS]) && !m.r.fits[FIT_HOST].known);
    m.f.v[FACT_RSS_MB] = 400;
    for (size_t i = 0; i < COUNT + 2; i++)
        m.batches[i].high = 0;
    facts_of_fits(&m.r, &m.f);
    assert_true(isnan(m.f.v[FACT_BATCH_FITS]));
    m.loader.training = false;
    facts_of_fits(&m.r, &m.f);
    assert_false(m.r.fits[FIT_HOST].known);
    release_report(&m);
}

static void cards_have_their_own_line(void **state)
{
    (void)state;
    static struct made m; /* too large for a stack */
    make_report(&m);
    for (size_t i = 0; i < COUNT + 2; i++) {
        m.batches[i].card_high = m.batches[i].high;
        m.batches[i].high = 0;
        m.batches[i].card_reserved = (uint64_t)(200 * MIB);
    }
    struct report_series series[] = {
        { .metric = "gpu_memory", .subject = "gpu0", .max = 10 },
        { .metric = "gpu_memory_percent", .subject = "gpu0", .max = 2 },
        { .metric = "gpu_memory", .subject = "gpu1", .max = 300 }, /* 100: of others */
        { .metric = "gpu_memory_percent", .subject = "gpu1", .max = 60 },
    };
    m.r.monitors.series = series;
    m.r.monitors.series_count = sizeof series / sizeof *series;
    facts_of_fits(&m.r, &m.f);
    assert_part(m.r.fits[FIT_CARD].fits, 15 * MIB, 1e-3);
    assert_part(m.f.v[FACT_GPU_BATCH_FITS], 15 / 3.875, 1e-3);
    assert_true(isnan(m.f.v[FACT_BATCH_FITS]));
    release_report(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_says_how_large_a_batch_may_get),
        cmocka_unit_test(squares_are_seen_where_they_are),
        cmocka_unit_test(pages_that_can_be_taken_back_make_room),
        cmocka_unit_test(what_is_no_line_says_nothing),
        cmocka_unit_test(facts_tell_of_room_and_of_what_may_come),
        cmocka_unit_test(missing_memory_or_weights_say_nothing),
        cmocka_unit_test(cards_have_their_own_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
