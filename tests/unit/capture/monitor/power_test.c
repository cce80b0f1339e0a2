/* RAPL and power meters, on machines laid out in a directory. */
#include "unit.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "capture/monitor/collect.h"
#include "capture/monitor/power_monitors.h"

static char root[64];
static struct collect got;
static void *state;
static uint64_t now_ns;
static const uint64_t SECOND = 1000000000;

static void put(const char *path, const char *text)
{
    char full[256];
    struct buf parent = BUF_INIT;
    (void)snprintf(full, sizeof full, "%s/%s", root, path);
    path_parent(&parent, full);
    assert_int_equal(dir_make(parent.data, 0755), 0);
    buf_release(&parent);
    FILE *f = fopen(full, "w"); /* in place: the monitor keeps it open */
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

static void zone(const char *entry, const char *name, const char *uj)
{
    char path[200];
    (void)snprintf(path, sizeof path, "class/powercap/%s/name", entry);
    put(path, name);
    (void)snprintf(path, sizeof path, "class/powercap/%s/energy_uj", entry);
    put(path, uj);
    (void)snprintf(path, sizeof path, "class/powercap/%s/max_energy_range_uj", entry);
    put(path, "262143328850\n");
}

static void two_sockets(void)
{
    zone("intel-rapl:0", "package-0\n", "1000000\n");
    zone("intel-rapl:0:0", "core\n", "5\n");
    zone("intel-rapl:0:1", "dram\n", "2000000\n");
    zone("intel-rapl:1", "package-1\n", "262143000000\n");
    zone("intel-rapl:1:0", "dram\n", "0\n");
    zone("intel-rapl:2", "psys\n", "7000000\n");
    zone("intel-rapl-mmio:0", "package-0\n", "9\n");
}

static int start(const char **ret_why)
{
    const struct monitor_roots roots = { .proc = "", .sys = root };
    collect_init(&got);
    now_ns = SECOND;
    return monitor_power.open(&roots, &state, ret_why);
}

static void sample_after(uint64_t ns)
{
    const struct monitor_round round = { .now_ns = now_ns += ns, .elapsed_ns = ns };
    got.count = 0;
    monitor_power.sample(state, &round, &got.sink);
}

static int set_up(void **unused)
{
    (void)unused;
    return unit_temp_dir(root) ? 0 : -1;
}

static int tear_down(void **unused)
{
    (void)unused;
    if (state)
        monitor_power.close(state);
    state = NULL;
    return file_remove_tree(root);
}

static void two_sockets_with_memory_and_board(void **unused)
{
    (void)unused;
    const char *why = "";
    two_sockets();
    assert_int_equal(start(&why), 0);
    sample_after(0);
    assert_near(collected(&got, "energy/package-0"), 0, 0);
    assert_true(isnan(collected(&got, "power/package-0"))); /* no rate yet */

    put("class/powercap/intel-rapl:0/energy_uj", "101000000\n");
    put("class/powercap/intel-rapl:0:1/energy_uj", "12000000\n");
    put("class/powercap/intel-rapl:2/energy_uj", "307000000\n");
    sample_after(2 * SECOND);
    assert_near(collected(&got, "power/package-0"), 50, 1e-9);
    assert_near(collected(&got, "energy/package-0"), 100, 1e-9);
    assert_near(collected(&got, "power/dram-0"), 5, 1e-9);
    assert_near(collected(&got, "energy/dram-1"), 0, 0);
    assert_near(collected(&got, "power/psys"), 150, 1e-9);
    assert_true(isnan(collected(&got, "power/core")));
    assert_int_equal(got.count, 10); /* five zones, two metrics: no parts, no mmio */
}

static void a_counter_that_goes_round_goes_on(void **unused)
{
    (void)unused;
    const char *why = "";
    two_sockets();
    assert_int_equal(start(&why), 0);
    sample_after(0);
    put("class/powercap/intel-rapl:1/energy_uj", "79671150\n"); /* 80 J later */
    sample_after(SECOND);
    assert_near(collected(&got, "power/package-1"), 80, 1e-6);
    put("class/powercap/intel-rapl:1/energy_uj", "99671150\n");
    sample_after(SECOND);
    assert_near(collected(&got, "energy/package-1"), 100, 1e-6);
    assert_int_equal(got.unavailable_count, 0);
}

static void after_a_long_sleep_energy_is_missing_not_wrong(void **unused)
{
    (void)unused;
    const char *why = "";
    two_sockets();
    assert_int_equal(start(&why), 0);
    sample_after(0);
    put("class/powercap/intel-rapl:0/energy_uj", "31000000\n");
    sample_after(SECOND);
    assert_near(collected(&got, "energy/package-0"), 30, 1e-9);
    put("class/powercap/intel-rapl:0/energy_uj", "5000000\n");
    sample_after(3600 * SECOND);
    assert_true(isnan(collected(&got, "power/package-0")));
    assert_true(isnan(collected(&got, "energy/package-0")));
    assert_int_equal(said_unavailable(&got, "energy/package-0"), 1);
    put("class/powercap/intel-rapl:0/energy_uj", "25000000\n");
    sample_after(SECOND);
    assert_near(collected(&got, "power/package-0"), 20, 1e-9);
    assert_near(collected(&got, "energy/package-0"), 50, 1e-9);
}

static void an_unreadable_moment_has_no_value(void **unused)
{
    (void)unused;
    const char *why = "";
    two_sockets();
    assert_int_equal(start(&why), 0);
    sample_after(0);
    put("class/powercap/intel-rapl:0/energy_uj", "");
    sample_after(SECOND);
    assert_true(isnan(collected(&got, "power/package-0")));
    put("class/powercap/intel-rapl:0/energy_uj", "41000000\n");
    sample_after(SECOND);
    assert_near(collected(&got, "power/package-0"), 20, 1e-9); /* 40 J in 2 s */
}

/* Root reads what it likes, so root becomes nobody for a moment. */
static int start_as_nobody(const char **ret_why)
{
    const bool is_root = geteuid() == 0;
    if (is_root)
        assert_int_equal(seteuid(65534), 0);
    const int rc = start(ret_why);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    return rc;
}

static void without_permission_the_reason_names_the_fix(void **unused)
{
    (void)unused;
    static const char *const entries[] = { "0", "0:1", "1", "1:0", "2" };
    const char *why = "";
    char path[200];
    two_sockets();
    assert_int_equal(chmod(root, 0755), 0);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        (void)snprintf(path, sizeof path, "%s/class/powercap/intel-rapl:%s/energy_uj",
                       root, entries[i]);
        assert_int_equal(chmod(path, 0), 0);
    }
    assert_int_equal(start_as_nobody(&why), SONDE_E_UNSUPPORTED);
    assert_non_null(strstr(why, "sudo chmod a+r"));
}

static void one_readable_socket_is_better_than_none(void **unused)
{
    (void)unused;
    const char *why = "";
    char path[200];
    two_sockets();
    (void)snprintf(path, sizeof path, "%s/class/powercap/intel-rapl:0/energy_uj", root);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* opens, and then refuses to be read */
    assert_int_equal(start(&why), 0);
    sample_after(0);
    assert_true(isnan(collected(&got, "energy/package-0")));
    assert_near(collected(&got, "energy/package-1"), 0, 0);
}

static void a_power_meter_needs_nobodys_leave(void **unused)
{
    (void)unused;
    const char *why = "";
    put("class/hwmon/hwmon0/name", "coretemp\n");
    put("class/hwmon/hwmon3/name", "power_meter\n");
    put("class/hwmon/hwmon3/power1_average", "312000000\n");
    assert_int_equal(start(&why), 0);
    sample_after(0);
    assert_near(collected(&got, "power/system"), 312, 1e-9);
}

static void a_machine_without_meters_says_so(void **unused)
{
    (void)unused;
    const char *why = "";
    assert_int_equal(start(&why), SONDE_E_UNSUPPORTED);
    assert_non_null(strstr(why, "virtual machines"));
    assert_null(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_sockets_with_memory_and_board),
        TEST(a_counter_that_goes_round_goes_on),
        TEST(after_a_long_sleep_energy_is_missing_not_wrong),
        TEST(an_unreadable_moment_has_no_value),
        TEST(without_permission_the_reason_names_the_fix),
        TEST(one_readable_socket_is_better_than_none),
        TEST(a_power_meter_needs_nobodys_leave),
        TEST(a_machine_without_meters_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
