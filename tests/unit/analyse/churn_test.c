/* Memory that comes and goes against memory that grows: from series and counts. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyse/facts.h"
#include "analyse/facts_churn.h"
#include "analyse/report.h"

enum { POINTS = 8 };
static const double PAGE_MB = 4.0 / 1024;

struct machine {
    struct report *report;
    struct report_series series[2];
    struct series_point rss[POINTS], faults[POINTS];
    struct facts facts;
};

/* 8 s of steps of 100 ms: resident memory grows by so much a second, and so many faults.
 * The first two seconds are the start, with faults of their own. */
static void set_up(struct machine *m, double grows_mb, double faults)
{
    static struct report made; /* too large for a stack */
    struct report *r = &made;
    memset(r, 0, sizeof *r);
    *m = (struct machine){ .report = r };
    for (int i = 0; i < POINTS; i++) {
        m->rss[i] = (struct series_point){ i, 300 + grows_mb * i, 300 + grows_mb * i };
        m->faults[i] = (struct series_point){ i, i < 2 ? 1e6 : faults, 1e6 };
    }
    m->series[0] = (struct report_series){
        .metric = "rss", .subject = "", .points = m->rss, .point_count = POINTS
    };
    m->series[1] = (struct report_series){ .metric = "page_faults",
                                           .subject = "",
                                           .points = m->faults,
                                           .point_count = POINTS };
    r->monitors.series = m->series;
    r->monitors.series_count = 2;
    r->account = (struct step_account){
        .known = true, .steps = 60, .startup_ns = 1.5e9, .wall_ns = 8e9
    };
    facts_init(&m->facts);
    m->facts.v[FACT_STEP_MS] = 100;
}

static void allocates(struct machine *m, double mb_per_step)
{
    m->report->allocations.known = true;
    m->report->allocations.bytes = (uint64_t)(mb_per_step * 60 * (1 << 20));
}

static void faults_of_the_start_do_not_count(void **state)
{
    (void)state;
    struct machine m;
    set_up(&m, 0, 500);
    assert_near(churn_of(m.report, &m.facts).faults_per_s, 500, 1e-9);
}

static void faults_of_memory_that_grows_are_no_churn(void **state)
{
    (void)state;
    struct machine m;
    set_up(&m, 100, 100 / PAGE_MB + 700);
    assert_near(churn_of(m.report, &m.facts).faults_per_s, 700, 1e-6);
    set_up(&m, 100, 50 / PAGE_MB); /* less than it grew by: huge pages */
    assert_near(churn_of(m.report, &m.facts).faults_per_s, 0, 0);
}

/* 10 steps a second. */
static void there_are_no_more_fresh_pages_than_were_allocated(void **state)
{
    (void)state;
    struct machine m;
    set_up(&m, 0, 1e5);
    allocates(&m, 2);
    assert_near(churn_of(m.report, &m.facts).faults_per_s, 20 / PAGE_MB, 1);
}

static void turnover_is_what_comes_over_what_stays(void **state)
{
    (void)state;
    struct machine m;
    set_up(&m, 20, 0);
    allocates(&m, 10);
    struct churn c = churn_of(m.report, &m.facts);
    assert_near(churn_turnover(&c), 5, 1e-6);
    assert_near(churn_returned(&c), 0.8, 1e-6);
    set_up(&m, 0, 0);
    allocates(&m, 10);
    c = churn_of(m.report, &m.facts);
    assert_near(churn_turnover(&c), 1000, 0);
    assert_near(churn_returned(&c), 1, 0);
}

static void what_nobody_counted_stays_unknown(void **state)
{
    (void)state;
    struct machine m;
    set_up(&m, 20, 100);
    struct churn c = churn_of(m.report, &m.facts);
    assert_true(isnan(churn_turnover(&c)) && isnan(c.made_mb_per_s));
    m.report->monitors.series_count = 0;
    allocates(&m, 10);
    c = churn_of(m.report, &m.facts);
    assert_true(isnan(c.faults_per_s) && isnan(churn_turnover(&c)));
    assert_near(churn_returned(&c), 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_of_the_start_do_not_count),
        cmocka_unit_test(faults_of_memory_that_grows_are_no_churn),
        cmocka_unit_test(there_are_no_more_fresh_pages_than_were_allocated),
        cmocka_unit_test(turnover_is_what_comes_over_what_stays),
        cmocka_unit_test(what_nobody_counted_stays_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
