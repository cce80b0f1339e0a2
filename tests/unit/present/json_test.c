/* json_test.c: report.json against the contract of DESIGN §8, read by jansson. */
#include "fake_training.h"

#include <math.h>

#include "present/report/report.h"

/* Last: its macros meet base/json.h. */
#include <jansson.h>

static json_t *print(const struct training *t, const struct report_style *style)
{
    struct report_style json = *style;
    json_error_t error;
    json.format = REPORT_JSON;
    FILE *f = tmpfile();
    assert_int_equal(report_print(t->report, &json, f), 0);
    rewind(f);
    json_t *root = json_loadf(f, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        fail_msg("line %d: %s", error.line, error.text);
    (void)fclose(f);
    return root;
}

static const struct report_style plain;

/* The keys of the contract, by the object they stand in. */
static const struct {
    const char *object, *keys;
} contract[] = {
    { "", "run hardware environment summary phases processes ranks epochs operations "
          "functions lines allocations io gpu energy cost monitors bottlenecks "
          "recommendations provenance schema" },
    { "run", "id name command started duration_s exit tags params metrics rank "
             "world_size" },
    { "run/exit", "code signal cause" },
    { "environment", "git argv python torch cuda driver" },
    { "summary", "verdict bound_by step_ms optimizer_steps steps_per_s samples_per_s "
                 "data_wait_share gpu_busy_share cpu_percent_avg peak_rss_mb "
                 "overhead_percent overhead_mb events lost" },
    { "summary/step_ms", "count mean std min max p50 p95 p99" },
    { "phases/0", "phase total_s share count device_s mem_peak_mb gpu_mem_peak_mb" },
    { "processes/0", "pid role rank phases cpu_s peak_rss_mb" },
    { "processes/1/phases/0", "phase total_s share count" },
    { "operations/0",
      "name path component category phase file line tags count calls_per_s total_s "
      "self_s mean_ms std_ms min_ms max_ms p50_ms p95_ms p99_ms start_s end_s cpu_s "
      "mem_before_mb mem_after_mb mem_peak_mb gpu_mem_before_mb gpu_mem_after_mb "
      "gpu_mem_peak_mb gpu_util_percent custom" },
    { "allocations", "count bytes peak_bytes sites" },
    { "io", "files coverage" },
    { "energy", "joules co2e_g source" },
    { "provenance/0", "metric status method resolution" },
};

/* "summary/step_ms", "phases/0" */
static const json_t *at(const json_t *root, const char *path)
{
    char part[64];
    while (*path) {
        const size_t len = strcspn(path, "/");
        (void)snprintf(part, sizeof(part), "%.*s", (int)len, path);
        root = json_is_array(root) ? json_array_get(root, (size_t)atoi(part))
                                   : json_object_get(root, part);
        path += len + (path[len] == '/');
    }
    return root;
}

static void every_key_of_the_contract_is_there(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    json_t *root = print(&t, &plain);
    for (size_t i = 0; i < sizeof(contract) / sizeof(contract[0]); i++) {
        const json_t *object = at(root, contract[i].object);
        char keys[1024];
        (void)snprintf(keys, sizeof(keys), "%s", contract[i].keys);
        assert_true(json_is_object(object));
        for (char *key = strtok(keys, " "); key; key = strtok(NULL, " "))
            if (!json_object_get(object, key))
                fail_msg("no key '%s' in '%s'", key, contract[i].object);
    }
    json_decref(root);
    training_free(&t);
}

static void an_empty_run_has_the_same_keys_and_nulls(void **state)
{
    (void)state;
    struct training t = { 0 };
    training_open(&t, "{}");
    json_t *root = print(&t, &plain);
    for (size_t i = 0; i < sizeof(contract) / sizeof(contract[0]); i++) {
        char keys[1024];
        if (strchr(contract[i].object, '0') || strchr(contract[i].object, '1'))
            continue;
        (void)snprintf(keys, sizeof(keys), "%s", contract[i].keys);
        for (char *key = strtok(keys, " "); key; key = strtok(NULL, " "))
            assert_non_null(json_object_get(at(root, contract[i].object), key));
    }
    assert_true(json_is_null(at(root, "summary/step_ms/mean")));
    assert_true(json_is_null(at(root, "summary/peak_rss_mb")));
    assert_true(json_is_null(at(root, "summary/overhead_percent")));
    assert_true(json_is_null(at(root, "run/duration_s")));
    assert_true(json_is_null(at(root, "run/exit/code")));
    assert_true(json_is_null(at(root, "run/rank")));
    json_decref(root);
    training_free(&t);
}

static double number(const json_t *root, const char *path)
{
    const json_t *value = at(root, path);
    if (!json_is_number(value))
        fail_msg("%s is no number", path);
    return json_number_value(value);
}

static void numbers_have_the_units_of_the_contract(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    json_t *root = print(&t, &plain);
    assert_string_equal(json_string_value(at(root, "schema")), "sonde.report/1");
    assert_string_equal(json_string_value(at(root, "run/started")),
                        "2023-11-14T22:13:20.000Z");
    assert_near(number(root, "run/duration_s"), 10, 1e-9);
    assert_near(number(root, "summary/cpu_percent_avg"), 150, 1e-9);
    assert_near(number(root, "summary/peak_rss_mb"), 512.5, 0);
    assert_near(number(root, "summary/overhead_mb"), 4.5, 0);
    assert_near(number(root, "summary/data_wait_share"), 2 / 9.9, 1e-9);
    assert_near(number(root, "summary/step_ms/max"), 500, 1e-9);
    assert_near(number(root, "summary/events"), 2602, 0);
    assert_near(number(root, "steps/count"), 99, 0);
    assert_near(number(root, "steps/points/0/0"), 0.388, 1e-9); /* end of the first */
    assert_near(number(root, "steps/points/0/1"), 88, 1e-9);
    assert_near(number(root, "summary/overhead_percent"), 0.05, 1e-9);
    assert_string_equal(json_string_value(at(root, "summary/bound_by")), "compute");
    assert_near(number(root, "run/metrics/loss"), 0.5, 0);
    assert_string_equal(json_string_value(at(root, "run/tags/team")), "y");
    assert_string_equal(json_string_value(at(root, "environment/git/branch")), "main");
    assert_near(number(root, "hardware/cores"), 16, 0);
    json_decref(root);
    training_free(&t);
}

static const json_t *operation(const json_t *root, const char *name)
{
    const json_t *list = json_object_get(root, "operations");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *op = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(op, "name")), name) == 0)
            return op;
    }
    fail_msg("no operation '%s'", name);
    return NULL;
}

static void operations_carry_everything_known_about_them(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    json_t *root = print(&t, &plain);
    const json_t *op = operation(root, "attention");
    assert_string_equal(json_string_value(at(op, "path/0")), "train");
    assert_string_equal(json_string_value(at(op, "path/3")), "attention");
    assert_string_equal(json_string_value(at(op, "component")), "net");
    assert_string_equal(json_string_value(at(op, "category")), "kernel");
    assert_true(json_is_null(at(op, "phase")));
    assert_string_equal(json_string_value(at(op, "tags/kind")), "flash");
    assert_near(number(op, "count"), 200, 0);
    assert_near(number(op, "calls_per_s"), 20, 1e-6);
    assert_near(number(op, "total_s"), 2.4, 1e-9);
    assert_near(number(op, "mean_ms"), 12, 1e-9);
    assert_near(number(op, "p99_ms"), 12, 0.12);
    assert_near(number(op, "start_s"), 0.2, 1e-9);
    assert_true(json_is_null(at(op, "cpu_s")));
    op = operation(root, "save");
    assert_near(number(op, "cpu_s"), 0.15, 1e-9);
    assert_near(number(op, "mem_peak_mb"), 150.5, 0);
    assert_near(number(operation(root, "load"), "custom/batch/sum"), 80, 0);
    assert_near(number(operation(root, "request"), "suspended_s"), 0.08, 1e-9);
    json_decref(root);
    training_free(&t);
}

static void sums_hold_in_the_output_too(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, IS_KILLED);
    json_t *root = print(&t, &plain);
    double shares = 0;
    const json_t *phases = json_object_get(root, "phases");
    for (size_t i = 0; i < json_array_size(phases); i++)
        shares += number(json_array_get(phases, i), "share");
    assert_near(shares, 1, 1e-9);
    const json_t *ops = json_object_get(root, "operations");
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *op = json_array_get(ops, i);
        const json_t *path = json_object_get(op, "path");
        double children = 0;
        for (size_t k = 0; k < json_array_size(ops); k++) {
            const json_t *other = json_object_get(json_array_get(ops, k), "path");
            if (json_array_size(other) != json_array_size(path) + 1)
                continue;
            size_t same = 0;
            while (same < json_array_size(path) &&
                   json_equal(json_array_get(path, same), json_array_get(other, same)))
                same++;
            if (same == json_array_size(path))
                children += number(json_array_get(ops, k), "total_s");
        }
        assert_near(number(op, "self_s") + children, number(op, "total_s"), 1e-9);
    }
    json_decref(root);
    training_free(&t);
}

static void death_is_explained(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, IS_KILLED);
    json_t *root = print(&t, &plain);
    assert_string_equal(json_string_value(at(root, "run/exit/signal")), "SIGKILL");
    assert_string_equal(json_string_value(at(root, "run/exit/cause")), "oom_cgroup");
    assert_int_equal(json_array_size(at(root, "open_zones")), 2);
    assert_string_equal(json_string_value(at(root, "open_zones/0/zones/2/name")),
                        "forward");
    assert_near(number(root, "open_zones/0/zones/2/open_s"), 0.125, 1e-9);
    assert_near(number(root, "open_zones/0/silent_s"), 0.1, 1e-9);
    assert_near(number(operation(root, "forward"), "truncated"), 1, 0);
    json_decref(root);
    training_free(&t);
}

static void thresholds_leave_out_and_sum_up(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    const struct report_style style = { .min_time_ns = 3000000000, .depth = 2 };
    json_t *all = print(&t, &plain);
    json_t *root = print(&t, &style);
    /* train, epoch, decode */
    assert_int_equal(json_array_size(at(root, "operations")), 3);
    assert_near(number(root, "operations_left_out/count"),
                (double)json_array_size(at(all, "operations")) - 3, 0);
    double self = 0;
    const json_t *ops = json_object_get(all, "operations");
    for (size_t i = 0; i < json_array_size(ops); i++)
        if (strcmp(json_string_value(at(json_array_get(ops, i), "kind")), "zone") == 0)
            self += number(json_array_get(ops, i), "self_s");
    for (size_t i = 0; i < 3; i++)
        self -= number(json_array_get(at(root, "operations"), i), "self_s");
    assert_near(number(root, "operations_left_out/self_s"), self, 1e-6);
    json_decref(root);
    json_decref(all);
    training_free(&t);
}

static void hostile_names_come_back_as_they_were(void **state)
{
    (void)state;
    static const char name[] = "a\"b\\c\033[2J\n\t\x01 äö </script>";
    struct training t = { 0 };
    training_traces(&t);
    const struct trace_site site = { .name = name, .tags = "=,a,a=1,=b,\"=\033,x=y=z" };
    const unsigned node = fake_node(t.main, 0, fake_site_full(t.main, site));
    fake_calls(t.main, node, 1, 1e9);
    fake_value(t.main, VALUE_ZONE, node, name, (double[]){ NAN }, 1, AT(1));
    struct buf nested = BUF_INIT;
    buf_puts(&nested, "{\"hardware\":{\"x\":");
    for (int i = 0; i < 200; i++)
        buf_putc(&nested, '[');
    for (int i = 0; i < 200; i++)
        buf_putc(&nested, ']');
    buf_puts(&nested, "},\"environment\":7}");
    training_open(&t, nested.data);
    buf_release(&nested);
    json_t *root = print(&t, &plain);
    const json_t *op = operation(root, name);
    assert_non_null(op);
    assert_string_equal(json_string_value(at(op, "tags/x")), "y=z");
    assert_string_equal(json_string_value(at(op, "tags/a")), "");
    assert_true(json_is_null(at(root, "environment/git")));
    json_decref(root);
    training_free(&t);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_key_of_the_contract_is_there),
        TEST(an_empty_run_has_the_same_keys_and_nulls),
        TEST(numbers_have_the_units_of_the_contract),
        TEST(operations_carry_everything_known_about_them),
        TEST(sums_hold_in_the_output_too),
        TEST(death_is_explained),
        TEST(thresholds_leave_out_and_sum_up),
        TEST(hostile_names_come_back_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
