/* NVML: what cards say, and that none of them can spoil the others. */
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "capture/monitor/collect.h"
#include "capture/monitor/power_monitors.h"

static char proc_root[64];
static struct collect got;
static void *state;
static const struct monitor_ops *ops;
static uint64_t now_ns;
static const struct monitor_process processes[] = { { 4242, 1 }, { 4243, 2 } };

/* The stand-in is built beside us: <build>/progs, we are <build>/unit/capture/monitor. */
static const char *library = "fake_nvml.so";

static void use_library(const char *script)
{
    char path[600], exe[512];
    const ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
    assert_true(len > 0);
    exe[len] = '\0';
    *strrchr(exe, '/') = '\0';
    (void)snprintf(path, sizeof path, "%s/../../../progs/%s", exe, library);
    (void)setenv("SONDE_NVML", path, 1);
    (void)setenv("FAKE_NVML", script, 1);
}

static void lay_out(const char *namespace_link)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/self/ns", proc_root);
    assert_int_equal(dir_make(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/self/ns/pid", proc_root);
    (void)unlink(path);
    assert_int_equal(symlink(namespace_link, path), 0);
}

static int open_monitor(const struct monitor_ops *which, const char *script,
                        const char **ret_why)
{
    const struct monitor_roots roots = { .proc = proc_root, .sys = "" };
    ops = which;
    now_ns = 1000000000;
    use_library(script);
    return which->open(&roots, &state, ret_why);
}

static void start(const char *script)
{
    const char *why = "";
    assert_int_equal(open_monitor(&monitor_nvml, script, &why), 0);
    collect_init(&got);
}

static void sample_after(uint64_t ns)
{
    struct monitor_round round = { .now_ns = now_ns += ns,
                                   .elapsed_ns = ns,
                                   .processes = processes,
                                   .process_count = 2 };
    got.count = 0;
    ops->sample(state, &round, &got.sink);
}

static int set_up(void **unused)
{
    (void)unused;
    assert_non_null(unit_temp_dir(proc_root));
    lay_out("pid:[4026531836]");
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    if (state)
        ops->close(state);
    state = NULL;
    (void)unsetenv("SONDE_NVML");
    library = "fake_nvml.so";
    return file_remove_tree(proc_root);
}

static void two_cards_say_everything(void **unused)
{
    (void)unused;
    start("cards=2 pid=4242");
    sample_after(1000000000);
    assert_near(collected(&got, "gpu/gpu0"), 40, 0);
    assert_near(collected(&got, "gpu/gpu1"), 50, 0);
    assert_near(collected(&got, "gpu_memory/gpu1"), 21 * 1024, 0);
    assert_near(collected(&got, "gpu_memory_percent/gpu0"), 25, 0);
    assert_near(collected(&got, "gpu_temp/gpu1"), 61, 0);
    assert_near(collected(&got, "gpu_power/gpu0"), 250, 0);
    assert_near(collected(&got, "gpu_clock/gpu1"), 1501, 0);
    assert_near(collected(&got, "gpu_memory_clock/gpu1"), 2600, 0);
    assert_near(collected(&got, "gpu_throttled_power/gpu0"), 0, 0);
    assert_near(collected(&got, "gpu_throttled_power/gpu1"), 1, 0);
    assert_near(collected(&got, "gpu_throttled_heat/gpu1"), 1, 0);
    assert_near(collected(&got, "gpu_throttled_hardware/gpu1"), 0, 0);
    assert_int_equal(got.unavailable_count, 0);
}

static void processes_of_the_run_are_told_from_foreign_ones(void **unused)
{
    (void)unused;
    start("cards=2 pid=4242");
    sample_after(1000000000);
    assert_near(collected(&got, "gpu_process_memory/4242"), 1500, 0); /* both cards */
    assert_near(collected(&got, "gpu_run_memory/gpu0"), 1000, 0);
    assert_near(collected(&got, "gpu_foreign/gpu0"), 1, 0);
    assert_near(collected(&got, "gpu_foreign_memory/gpu0"), 300, 0);
    assert_near(collected(&got, "gpu_foreign/gpu1"), 0, 0);
    assert_true(isnan(collected(&got, "gpu_process_memory/77")));
    sample_after(1000000000);
    assert_near(collected(&got, "gpu_process_memory/4242"), 1500, 0); /* not 3000 */
}

static void in_a_container_nobody_is_called_foreign(void **unused)
{
    (void)unused;
    lay_out("pid:[4026532800]");
    start("cards=1 pid=4242");
    sample_after(1000000000);
    sample_after(1000000000);
    assert_true(isnan(collected(&got, "gpu_foreign/gpu0")));
    assert_int_equal(said_unavailable(&got, "--pid=host"), 1);
    assert_near(collected(&got, "gpu_process_memory/4242"), 1000, 0);
}

static void fast_rounds_leave_out_what_is_slow(void **unused)
{
    (void)unused;
    start("cards=1");
    sample_after(10000000);
    assert_false(isnan(collected(&got, "gpu_clock/gpu0")));
    sample_after(10000000);
    assert_true(isnan(collected(&got, "gpu_clock/gpu0")));
    assert_false(isnan(collected(&got, "gpu/gpu0")));
    assert_false(isnan(collected(&got, "gpu_power/gpu0")));
    sample_after(1000000000);
    assert_false(isnan(collected(&got, "gpu_clock/gpu0")));
}

static void a_card_in_parts_has_no_use_but_memory(void **unused)
{
    (void)unused;
    start("cards=2 mig=1 pid=4242");
    sample_after(1000000000);
    sample_after(1000000000);
    assert_true(isnan(collected(&got, "gpu/gpu1")));
    assert_int_equal(said_unavailable(&got, "gpu/gpu1: this card does not have it"), 1);
    assert_near(collected(&got, "gpu/gpu0"), 40, 0);
    assert_near(collected(&got, "gpu_memory/gpu1"), 21 * 1024, 0);
    assert_near(collected(&got, "gpu_memory/gpu1-mig0"), 1024, 0);
    assert_near(collected(&got, "gpu_memory/gpu1-mig2"), 3 * 1024, 0);
    assert_true(isnan(collected(&got, "gpu_memory/gpu1-mig1")));
    assert_near(collected(&got, "gpu_power/gpu1"), 250, 0);
    assert_near(collected(&got, "gpu_process_memory/4242"), 1500, 0); /* once */
    assert_int_equal(got.unavailable_count, 1);
}

static void a_lost_card_is_left_alone(void **unused)
{
    (void)unused;
    start("cards=2 lost=1@3");
    for (int i = 0; i < 6; i++)
        sample_after(1000000000);
    assert_true(isnan(collected(&got, "gpu/gpu1")));
    assert_true(isnan(collected(&got, "gpu_temp/gpu1")));
    assert_near(collected(&got, "gpu/gpu0"), 40, 0);
    assert_int_equal(said_unavailable(&got, "gpu/gpu1: the card has fallen off"), 1);
    assert_int_equal(got.unavailable_count, 1);
}

static void a_broken_card_does_not_hide_the_other(void **unused)
{
    (void)unused;
    start("cards=2 broken=0");
    sample_after(1000000000);
    assert_true(isnan(collected(&got, "gpu/gpu0")));
    assert_near(collected(&got, "gpu/gpu1"), 50, 0);
}

static void a_question_that_times_out_now_and_then_is_asked_again(void **unused)
{
    (void)unused;
    unsigned answers = 0;
    start("cards=1 shaky=0");
    for (int i = 0; i < 40; i++) {
        sample_after(1000000000);
        answers += !isnan(collected(&got, "gpu_temp/gpu0"));
    }
    assert_int_equal(answers, 20);
    assert_int_equal(got.unavailable_count, 0);
}

static void no_driver_no_card_and_old_module_have_reasons(void **unused)
{
    (void)unused;
    const char *why = "";
    assert_int_equal(open_monitor(&monitor_nvml, "cards=0", &why), SONDE_E_UNSUPPORTED);
    assert_non_null(strstr(why, "--gpus all"));
    assert_int_equal(open_monitor(&monitor_nvml, "init=9", &why), SONDE_E_UNSUPPORTED);
    assert_non_null(strstr(why, "modprobe"));
    assert_int_equal(open_monitor(&monitor_nvml, "init=18", &why), SONDE_E_UNSUPPORTED);
    assert_non_null(strstr(why, "reboot"));
    (void)setenv("SONDE_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
    const struct monitor_roots roots = { .proc = "", .sys = "" };
    assert_int_equal(monitor_nvml.open(&roots, &state, &why), SONDE_E_UNSUPPORTED);
    assert_non_null(strstr(why, "no NVIDIA driver"));
    assert_null(state);
}

static void an_old_driver_says_what_it_can(void **unused)
{
    (void)unused;
    const char *why = "";
    library = "fake_nvml_old.so";
    start("");
    sample_after(1000000000);
    sample_after(1000000000);
    assert_near(collected(&got, "gpu_memory/gpu0"), 2048, 0);
    assert_near(collected(&got, "gpu_memory_percent/gpu0"), 25, 0);
    assert_near(collected(&got, "gpu_temp/gpu0"), 50, 0);
    assert_int_equal(got.count, 3);
    assert_int_equal(said_unavailable(&got, "a newer driver does"), 6); /* once each */
    assert_int_equal(got.unavailable_count, 6);
    ops->close(state);
    state = NULL;
    assert_int_equal(open_monitor(&monitor_nvml_energy, "", &why), SONDE_E_UNSUPPORTED);
    assert_non_null(strstr(why, "a newer driver does"));
}

static void energy_counts_from_the_first_reading(void **unused)
{
    (void)unused;
    const char *why = "";
    collect_init(&got);
    assert_int_equal(open_monitor(&monitor_nvml_energy, "cards=2 watts=1000", &why), 0);
    assert_true(ops->slowest_ns >= 10000000000); /* it costs 3.4 ms */
    sample_after(1);
    assert_near(collected(&got, "gpu_energy/gpu0"), 0, 0);
    (void)usleep(20000);
    sample_after(1);
    assert_true(collected(&got, "gpu_energy/gpu1") >= 19);
}

static void a_card_without_a_counter_says_so_once(void **unused)
{
    (void)unused;
    const char *why = "";
    collect_init(&got);
    assert_int_equal(open_monitor(&monitor_nvml_energy, "cards=1 noenergy", &why), 0);
    sample_after(1);
    sample_after(1);
    assert_int_equal(said_unavailable(&got, "gpu_energy/gpu0"), 1);
    assert_int_equal(got.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_cards_say_everything),
        TEST(processes_of_the_run_are_told_from_foreign_ones),
        TEST(in_a_container_nobody_is_called_foreign),
        TEST(fast_rounds_leave_out_what_is_slow),
        TEST(a_card_in_parts_has_no_use_but_memory),
        TEST(a_lost_card_is_left_alone),
        TEST(a_broken_card_does_not_hide_the_other),
        TEST(a_question_that_times_out_now_and_then_is_asked_again),
        TEST(no_driver_no_card_and_old_module_have_reasons),
        TEST(an_old_driver_says_what_it_can),
        TEST(energy_counts_from_the_first_reading),
        TEST(a_card_without_a_counter_says_so_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
