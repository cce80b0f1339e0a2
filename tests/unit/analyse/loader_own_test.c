/* Words about one loader: what its batches usually take. */
#include "analyse/loader_own.h"

#include <math.h>

#include "unit.h"

static void add(struct distribution *d, uint64_t count, double ns)
{
    distribution_add(d, count, ns, 0, ns, ns);
    assert_int_equal(distribution_add_bucket(d, ns, count), 0);
}

/* 100 batches by two workers that were started five times each: the first ten of a
 * process take 200 ms, the others 1 ms. */
struct started {
    struct loader l;
    struct loader_worker workers[2];
};

static void start_anew(struct started *s, double first_fetch_ns)
{
    *s = (struct started){ .workers = { { .processes = 5 }, { .processes = 5 } } };
    s->l.num_workers = 2;
    s->l.workers = s->workers;
    s->l.worker_count = 2;
    add(&s->l.make.d, 90, 1e6);
    add(&s->l.make.d, 10, 200e6);
    distribution_settle(&s->l.make.d);
    distribution_add(&s->l.first_fetch.d, 5, first_fetch_ns, 0, first_fetch_ns,
                     first_fetch_ns);
}

static void what_workers_do_once_is_no_batch(void **state)
{
    (void)state;
    struct started s;
    start_anew(&s, 210e6);
    assert_near(loader_usual_ns(&s.l, &s.l.make), 1e6, 0.05e6);
    distribution_release(&s.l.make.d);
}

/* The first batches came quickly: the slow ones are others. */
static void slow_batches_that_were_not_first_count(void **state)
{
    (void)state;
    struct started s;
    start_anew(&s, 30e6);
    assert_near(loader_usual_ns(&s.l, &s.l.make), 20.9e6, 0.01e6);
    distribution_release(&s.l.make.d);
}

/* Processes as many as before, but slow batches are twice as many as they. */
static void more_slow_batches_than_processes_count(void **state)
{
    (void)state;
    struct started s;
    start_anew(&s, 210e6);
    s.workers[0].processes = s.workers[1].processes = 2;
    assert_true(loader_usual_ns(&s.l, &s.l.make) > 10e6);
    distribution_release(&s.l.make.d);
}

static void without_workers_the_mean_counts(void **state)
{
    (void)state;
    struct started s;
    start_anew(&s, 210e6);
    s.l.worker_count = 0;
    assert_near(loader_usual_ns(&s.l, &s.l.make), 20.9e6, 0.01e6);
    assert_true(isnan(loader_usual_ns(&s.l, &s.l.make_cpu)));
    distribution_release(&s.l.make.d);
}

/* Two workers in turns. The first batch is sent at 10 ms and asked for at 20; its worker makes
 * another from 12 to 212 ms, and answers then. */
static void a_worker_that_makes_another_batch_answers_late(void **state)
{
    (void)state;
    const int64_t ms = 1000000;
    struct loader_batch batches[] = {
        { .worker = 0,
          .begun_ns = 5 * ms,
          .made_ns = 9 * ms,
          .sent_ns = 10 * ms,
          .asked_ns = 20 * ms,
          .given_ns = 212 * ms },
        { .worker = 1,
          .begun_ns = 5 * ms,
          .made_ns = 9 * ms,
          .sent_ns = 10 * ms,
          .asked_ns = 220 * ms,
          .given_ns = 222 * ms },
        { .worker = 0,
          .begun_ns = 12 * ms,
          .made_ns = 212 * ms,
          .sent_ns = 213 * ms,
          .asked_ns = 230 * ms,
          .given_ns = 232 * ms },
    };
    struct loader l = { .recent = batches, .recent_count = 3, .num_workers = 2 };
    const double usual = loader_usual_receive_ns(&l);
    assert_near(loader_answer_ns(&l), (192e6 - usual) / 3, 1);
    /* One with nothing to do was slow for another reason: it had no core. */
    batches[2].begun_ns = 212 * ms;
    batches[2].made_ns = 216 * ms;
    assert_near(loader_answer_ns(&l), 0, 1);
    /* Nothing was ready: that is waiting for the queue. */
    batches[2].begun_ns = 12 * ms;
    batches[0].sent_ns = 211 * ms;
    assert_near(loader_answer_ns(&l), 0, 1);
    l.recent_count = 0;
    assert_near(loader_answer_ns(&l), 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_workers_do_once_is_no_batch),
        cmocka_unit_test(slow_batches_that_were_not_first_count),
        cmocka_unit_test(more_slow_batches_than_processes_count),
        cmocka_unit_test(without_workers_the_mean_counts),
        cmocka_unit_test(a_worker_that_makes_another_batch_answers_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
