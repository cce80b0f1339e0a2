/* When a run is sampled: all the time while it is young, then an eighth of it. */
#include "capture/sample/spells.h"

#include "unit.h"

static const uint64_t MS = 1000000, S = 1000000000;

static void a_young_run_is_sampled_all_the_time(void **state)
{
    (void)state;
    struct spells s;
    spells_init(&s, true, 5 * S, 1);
    assert_false(spells_follow(&s, 15 * S - 1));
    assert_true(s.on);
    assert_int_equal(s.weight, 1);
    assert_true(spells_follow(&s, 15 * S));
    assert_false(s.on);
}

/* Ten seconds of imports, then the work. */
static void with_its_work_a_run_is_young_again(void **state)
{
    (void)state;
    struct spells s;
    spells_init(&s, true, 0, 1);
    assert_true(spells_follow(&s, 10 * S));
    assert_false(s.on);
    spells_begin_anew(&s);
    assert_true(spells_follow(&s, 10 * S + 1));
    assert_true(s.on);
    assert_int_equal(s.weight, 1);
    assert_false(spells_follow(&s, 20 * S));
    assert_true(spells_follow(&s, 20 * S + 1));
    assert_false(s.on);
    /* One that is young still stays so for longer; nothing changes in that instant. */
    spells_init(&s, true, 0, 1);
    spells_begin_anew(&s);
    assert_false(spells_follow(&s, 4 * S));
    assert_false(spells_follow(&s, 14 * S - 1));
    assert_true(spells_follow(&s, 14 * S));
    assert_false(s.on);
    /* Who asked for a rate has it anyway. */
    spells_init(&s, false, 0, 1);
    spells_begin_anew(&s);
    assert_false(spells_follow(&s, 1000 * S));
}

static void who_asked_for_a_rate_gets_it(void **state)
{
    (void)state;
    struct spells s;
    spells_init(&s, false, 5 * S, 1);
    assert_false(spells_follow(&s, 1000 * S));
    assert_true(s.on);
    assert_int_equal(s.weight, 1);
}

/* Follows an hour in ticks of `tick`; returns the sampled time, each by its weight. */
static double weighted_hour(uint64_t seed, uint64_t tick, double *ret_early_share)
{
    struct spells s;
    double sum = 0, early = 0;
    spells_init(&s, true, 0, seed);
    for (uint64_t now = 0; now < 3600 * S; now += tick) {
        (void)spells_follow(&s, now);
        if (!s.on)
            continue;
        sum += (double)(tick * s.weight);
        if (now % (8 * S) < 4 * S)
            early += (double)(tick * s.weight);
    }
    *ret_early_share = early / sum;
    return sum / (3600.0 * (double)S);
}

static void weights_add_up_to_the_time(void **state)
{
    (void)state;
    double early;
    assert_near(weighted_hour(1, 10 * MS, &early), 1, 0.01);
    assert_near(early, 0.5, 0.03);
    /* Ticks that come late lengthen a spell, and shorten the next. */
    assert_near(weighted_hour(2, 73 * MS, &early), 1, 0.05);
}

/* A job that is suspended and goes on would otherwise be sampled whenever it does. */
static void whoever_was_stopped_is_not_sampled_at_once(void **state)
{
    (void)state;
    struct spells s;
    spells_init(&s, true, 0, 1);
    assert_true(spells_follow(&s, 10 * S)); /* off */
    unsigned at_once = 0;
    for (uint64_t now = 100 * S; now < 1100 * S; now += 100 * S) {
        at_once += spells_follow(&s, now);
        assert_false(s.on);
        assert_true(s.next_ns >= now);
        assert_true(s.next_ns < now + 4 * S);
    }
    assert_int_equal(at_once, 0);
}

static void spells_come_at_random(void **state)
{
    (void)state;
    struct spells s;
    uint64_t least = UINT64_MAX, most = 0;
    spells_init(&s, true, 0, 7);
    for (uint64_t now = 10 * S, block = 0; block < 100; now = s.next_ns)
        if (spells_follow(&s, now) && s.on) {
            const uint64_t at = (now - 10 * S) % (4 * S);
            least = at < least ? at : least;
            most = at > most ? at : most;
            block++;
        }
    assert_true(least < 300 * MS);
    assert_true(most > 3200 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_young_run_is_sampled_all_the_time),
        cmocka_unit_test(with_its_work_a_run_is_young_again),
        cmocka_unit_test(who_asked_for_a_rate_gets_it),
        cmocka_unit_test(weights_add_up_to_the_time),
        cmocka_unit_test(whoever_was_stopped_is_not_sampled_at_once),
        cmocka_unit_test(spells_come_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
