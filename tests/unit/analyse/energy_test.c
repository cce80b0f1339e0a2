/* Joules and grams: measured where measured, modelled where not, never invented. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyse/report.h"

static struct energy_inputs in;
static struct energy e;

static int set_up(void **state)
{
    (void)state;
    in = (struct energy_inputs){
        .duration_s = 100,
        .cpu_s = 300,
        .memory_mb = 2048,
        .cpu = "AMD EPYC 9B14",
        .gpus = -1,
        .grid_g_per_kwh = NAN,
    };
    return 0;
}

static void without_counters_it_is_a_model_and_says_so(void **state)
{
    (void)state;
    energy_from(&in, &e);
    assert_int_equal(e.part[ENERGY_CPU].status, ENERGY_MODELLED);
    assert_near(e.part[ENERGY_CPU].joules, 300 * 4.2, 1e-9);
    assert_near(e.part[ENERGY_DRAM].joules, 2 * 0.3725 * 100, 1e-9);
    assert_int_equal(e.part[ENERGY_GPU].status, ENERGY_UNAVAILABLE);
    assert_true(isnan(e.part[ENERGY_GPU].joules));
    assert_near(e.joules, 1334.5, 1e-9);
    assert_string_equal(e.source, "modelled");
}

static void the_class_of_the_processor_counts(void **state)
{
    (void)state;
    in.cpu = "Intel(R) Xeon(R) Platinum 8480C";
    energy_from(&in, &e);
    assert_near(e.part[ENERGY_CPU].joules, 300 * 7.5, 1e-9);
    in.cpu = "";
    energy_from(&in, &e);
    assert_near(e.part[ENERGY_CPU].joules, 300 * 12.0, 1e-9);
}

static void counters_win_over_the_model(void **state)
{
    (void)state;
    const struct energy_reading readings[] = {
        { ENERGY_CPU, 5000, 100, 50 },
        { ENERGY_CPU, 7000, 100, 70 }, /* the other socket */
        { ENERGY_DRAM, 600, 100, 6 },
        { ENERGY_GPU, 30000, 100, 300 },
        { ENERGY_MACHINE, 60000, 100, NAN },
    };
    in.readings = readings;
    in.reading_count = 5;
    energy_from(&in, &e);
    assert_near(e.part[ENERGY_CPU].joules, 12000, 1e-9);
    assert_near(e.joules, 42600, 1e-9); /* the meter around it is not added */
    assert_near(e.part[ENERGY_MACHINE].joules, 60000, 1e-9);
    assert_string_equal(e.source, "measured");
    in.reading_count = 2;
    energy_from(&in, &e);
    assert_string_equal(e.source, "mixed"); /* memory is modelled then */
}

static void what_the_slow_counter_missed_is_filled_with_its_power(void **state)
{
    (void)state;
    struct energy_reading reading = { ENERGY_GPU, 27000, 90, 300 };
    in.readings = &reading;
    in.reading_count = 1;
    energy_from(&in, &e);
    assert_near(e.part[ENERGY_GPU].joules, 30000, 1e-9);
    reading.joules = reading.counted_s = NAN; /* a card without a counter */
    energy_from(&in, &e);
    assert_near(e.part[ENERGY_GPU].joules, 30000, 1e-9);
    assert_int_equal(e.part[ENERGY_GPU].status, ENERGY_MEASURED);
    reading = (struct energy_reading){ ENERGY_GPU, 0, 0, NAN }; /* one sample */
    energy_from(&in, &e);
    assert_int_equal(e.part[ENERGY_GPU].status, ENERGY_UNAVAILABLE);
    reading = (struct energy_reading){ ENERGY_GPU, 50, 1, NAN }; /* a hundredth */
    energy_from(&in, &e);
    assert_int_equal(e.part[ENERGY_GPU].status, ENERGY_UNAVAILABLE);
}

static void grams_follow_the_grid(void **state)
{
    (void)state;
    const struct energy_reading reading = { ENERGY_GPU, 3.6e6, 100, 36000 };
    in.cpu_s = in.memory_mb = NAN;
    in.readings = &reading;
    in.reading_count = 1;
    energy_from(&in, &e);
    assert_near(e.co2e_g, 458, 1e-9);
    assert_true(e.grid_is_default);
    in.grid_g_per_kwh = 56;
    energy_from(&in, &e);
    assert_near(e.co2e_g, 56, 1e-9);
    assert_false(e.grid_is_default);
    in.grid_g_per_kwh = 0; /* own panels */
    energy_from(&in, &e);
    assert_near(e.co2e_g, 0, 0);
    assert_false(e.grid_is_default);
}

static void nothing_known_is_not_zero(void **state)
{
    (void)state;
    in.cpu_s = in.memory_mb = in.duration_s = NAN;
    in.gpus = 2;
    energy_from(&in, &e);
    assert_true(isnan(e.joules) && isnan(e.co2e_g));
    assert_string_equal(e.source, "");
    assert_non_null(strstr(e.part[ENERGY_GPU].method, "sonde doctor"));
}

static void switched_off_means_off(void **state)
{
    (void)state;
    in.off = true;
    energy_from(&in, &e);
    assert_true(isnan(e.joules));
    assert_string_equal(e.source, "off");
    assert_non_null(strstr(e.part[ENERGY_CPU].method, "--no-energy"));
}

static const struct energy_series series[] = {
    { "energy", "package-0", 500, 50, 10 }, { "power", "package-0", 51, 50, 10 },
    { "energy", "package-1", 300, 30, 10 }, { "energy", "dram-0", 40, 20, 10 },
    { "gpu_power", "gpu0", 300, 250, 10 },  { "gpu_energy", "gpu0", 2600, 900, 10 },
    { "gpu_power", "gpu1", 100, 110, 10 },  { "energy", "psys", 1, 1, 10 },
    { "power", "system", 990, 1000, 10 },   { "gpu_temp", "gpu0", 1e9, 1e9, 10 },
    { "cpu_time", "", 77, 1, 10 },          { "cpu_time", "4242", 5, 1, 10 },
};

static bool get(void *arg, size_t index, struct energy_series *ret_series)
{
    assert_ptr_equal(arg, &in);
    if (index >= sizeof series / sizeof *series)
        return false;
    *ret_series = series[index];
    return true;
}

static void a_run_is_read_by_the_names_of_the_monitors(void **state)
{
    (void)state;
    struct run run = { .meta = { .cpu = "", .gpus = -1, .grid_g_per_kwh = NAN } };
    struct report report = { .run = &run, .start_ns = 1, .end_ns = 10000000001 };
    const struct energy_source source = { get, &in };
    run.meta.cpu_user_s = run.meta.cpu_system_s = run.meta.max_rss_mb = NAN;
    energy_read(&report, &source);
    assert_near(report.energy.part[ENERGY_CPU].joules, 800, 1e-9);
    assert_near(report.energy.part[ENERGY_DRAM].joules, 40, 1e-9);
    assert_near(report.energy.part[ENERGY_GPU].joules, 2600 + 1100, 1e-9);
    assert_near(report.energy.part[ENERGY_MACHINE].joules, 10000, 1e-9); /* no psys */
    energy_read(&report, NULL);
    assert_true(isnan(report.energy.joules));
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_counters_it_is_a_model_and_says_so),
        TEST(the_class_of_the_processor_counts),
        TEST(counters_win_over_the_model),
        TEST(what_the_slow_counter_missed_is_filled_with_its_power),
        TEST(grams_follow_the_grid),
        TEST(nothing_known_is_not_zero),
        TEST(switched_off_means_off),
        TEST(a_run_is_read_by_the_names_of_the_monitors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
