/* Probes that read files, on machines laid out for them. */
#include "cli/doctor.h"

#include <string.h>

#include "fake_root.h"

static const struct doctor_check *find(const char *id)
{
    for (const struct doctor_group *g = doctor_groups; g->title; g++)
        for (const struct doctor_check *c = g->checks; c->id; c++)
            if (strcmp(c->id, id) == 0)
                return c;
    fail_msg("no check %s", id);
    return NULL;
}

static struct doctor_answer ask(const struct fake_root *r, const char *id)
{
    char proc[96], sys[96];
    struct doctor_answer a = { 0 };
    (void)snprintf(proc, sizeof proc, "%s/proc", r->path);
    (void)snprintf(sys, sizeof sys, "%s/sys", r->path);
    const struct doctor_roots roots = { proc, sys };
    find(id)->probe(&roots, &a);
    assert_true(a.found[0] != '\0');
    return a;
}

static void every_check_has_an_id_of_its_own_and_a_short_name(void **state)
{
    unsigned count = 0;
    (void)state;
    for (const struct doctor_group *g = doctor_groups; g->title; g++)
        for (const struct doctor_check *c = g->checks; c->id; c++) {
            assert_ptr_equal(find(c->id), c);
            assert_true(strlen(c->name) <= 15);
            assert_non_null(c->probe);
            count++;
        }
    assert_true(count >= 20);
}

static void pressure_is_there_or_not(void **state)
{
    struct fake_root r;
    (void)state;
    fake_root_make(&r);
    assert_int_equal(ask(&r, "pressure").state, DOCTOR_UNAVAILABLE);
    assert_string_equal(ask(&r, "pressure").fix, "boot with psi=1");
    fake_root_put(&r, "proc/pressure/memory", "some avg10=0.00\n");
    assert_int_equal(ask(&r, "pressure").state, DOCTOR_OK);
    fake_root_remove(&r);
}

static void meters_and_sensors_are_counted(void **state)
{
    struct fake_root r;
    (void)state;
    fake_root_make(&r);
    assert_int_equal(ask(&r, "energy").state, DOCTOR_UNAVAILABLE);
    assert_int_equal(ask(&r, "heat").state, DOCTOR_UNAVAILABLE);
    fake_root_put(&r, "sys/class/powercap/intel-rapl:0/energy_uj", "12345\n");
    fake_root_put(&r, "sys/class/powercap/intel-rapl:1/energy_uj", "12345\n");
    fake_root_put(&r, "sys/class/hwmon/hwmon0/temp1_input", "45000\n");
    assert_string_equal(ask(&r, "energy").found, "2 RAPL zones");
    assert_string_equal(ask(&r, "heat").found, "1 sensors, 0 thermal zones");
    fake_root_put(&r, "sys/class/powercap/intel-rapl:0/energy_uj", "");
    fake_root_put(&r, "sys/class/powercap/intel-rapl:1/energy_uj", "");
    assert_int_equal(ask(&r, "energy").state, DOCTOR_LIMITED);
    assert_non_null(strstr(ask(&r, "energy").fix, "chmod"));
    fake_root_remove(&r);
}

static void hidden_processes_are_noticed(void **state)
{
    struct fake_root r;
    (void)state;
    fake_root_make(&r);
    assert_int_equal(ask(&r, "processes").state, DOCTOR_UNAVAILABLE);
    fake_root_put(&r, "proc/self/mountinfo", "1 1 0:1 / /proc rw - proc proc rw\n");
    assert_int_equal(ask(&r, "processes").state, DOCTOR_OK);
    fake_root_put(&r, "proc/self/mountinfo",
                  "1 1 0:1 / /proc rw - proc proc rw,hidepid=invisible\n");
    assert_int_equal(ask(&r, "processes").state, DOCTOR_LIMITED);
    fake_root_put(&r, "proc/1/stat", "1 (init)"); /* we may see them all the same */
    assert_int_equal(ask(&r, "processes").state, DOCTOR_OK);
    fake_root_remove(&r);
}

static void the_machine_is_named(void **state)
{
    struct fake_root r;
    (void)state;
    fake_root_make(&r);
    fake_root_put(&r, "proc/cpuinfo", "flags : fpu vme hypervisor lahf_lm\n");
    fake_root_put(&r, "sys/class/dmi/id/sys_vendor", "QEMU\n");
    fake_root_put(&r, "sys/class/dmi/id/product_name", "Standard PC\n");
    const struct doctor_answer a = ask(&r, "machine");
    assert_memory_equal(a.found, "virtual machine", 15);
    assert_non_null(strstr(a.found, "(QEMU Standard PC)"));
    fake_root_remove(&r);
}

static void commands_are_run_and_given_up(void **state)
{
    char text[64];
    char sh[] = "sh", flag[] = "-c", good[] = "echo hi; echo err >&2; exit 3";
    char *argv[] = { sh, flag, good, NULL };
    (void)state;
    assert_int_equal(doctor_run(argv, false, text, sizeof text), 3);
    assert_string_equal(text, "hi\n");
    assert_int_equal(doctor_run(argv, true, text, sizeof text), 3);
    assert_string_equal(text, "hi\nerr\n");
    char none[] = "/no/such/program";
    char *missing[] = { none, NULL };
    assert_int_equal(doctor_run(missing, false, text, sizeof text), 127);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_check_has_an_id_of_its_own_and_a_short_name),
        cmocka_unit_test(pressure_is_there_or_not),
        cmocka_unit_test(meters_and_sensors_are_counted),
        cmocka_unit_test(hidden_processes_are_noticed),
        cmocka_unit_test(the_machine_is_named),
        cmocka_unit_test(commands_are_run_and_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
