/* report_test.c: the model of a run, on traces whose content is known. */
#include "fake_training.h"

#include <math.h>

#include "base/human.h"

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sum_of_children(const struct op_table *t, uint32_t parent)
{
    double sum = 0;
    for (size_t i = 1; i < t->count; i++)
        if (t->ops[i].parent == parent && t->ops[i].kind == OP_ZONE)
            sum += t->ops[i].total_ns;
    return sum;
}

static void check_sums(const struct op_table *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        const struct op *op = &t->ops[i];
        const double children = op->kind == OP_OTHER ? 0 : sum_of_children(t, i);
        assert_near(op->self_ns + children, op->total_ns, fabs(op->total_ns) * 1e-12);
    }
}

static void self_and_children_make_up_the_total_of_every_path(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    check_sums(&t.report->ops);
    assert_near(training_op(&t, "epoch")->self_ns, 0.3e9, 1);
    assert_near(training_op(&t, "forward")->self_ns, 1.6e9, 1);
    training_free(&t);
}

static void a_path_is_merged_over_threads_and_processes(void **state)
{
    (void)state;
    struct training t;
    double all[2 * WORKER_CALLS];
    double total = 0;
    training_make(&t, ENDS_WELL);
    const struct op *op = training_op(&t, "decode");
    memcpy(all, t.main_ns, sizeof(t.main_ns));
    memcpy(all + WORKER_CALLS, t.worker_ns, sizeof(t.worker_ns));
    qsort(all, 2 * WORKER_CALLS, sizeof(all[0]), ascending);
    for (int i = 0; i < 2 * WORKER_CALLS; i++)
        total += all[i];
    double squares = 0;
    for (int i = 0; i < 2 * WORKER_CALLS; i++)
        squares += pow(all[i] - total / (2 * WORKER_CALLS), 2);

    assert_int_equal(op->durations.count, 2 * WORKER_CALLS);
    assert_near(op->total_ns, total, total * 1e-12);
    assert_near(op->durations.mean, total / (2 * WORKER_CALLS), 1e-3);
    const double std = sqrt(squares / (2 * WORKER_CALLS - 1));
    assert_near(distribution_std(&op->durations), std, std * 1e-9);
    assert_near(op->durations.min, all[0], 0);
    assert_near(op->durations.max, all[2 * WORKER_CALLS - 1], 0);
    assert_near(distribution_quantile(&op->durations, 0.95), all[569], all[569] * 0.01);
    assert_string_equal(op->component, "loader");
    training_free(&t);
}

static void sites_that_differ_in_anything_stay_apart(void **state)
{
    (void)state;
    struct training t = { 0 };
    training_traces(&t);
    static const struct trace_site variants[] = {
        { .name = "z", .file = "a.c", .line = 1 },
        { .name = "z", .file = "a.c", .line = 2 },
        { .name = "z", .file = "b.c", .line = 1 },
        { .name = "z", .file = "a.c", .line = 1, .component = "c" },
        { .name = "z", .file = "a.c", .line = 1, .category = "c" },
        { .name = "z", .file = "a.c", .line = 1, .tags = "c" },
        { .name = "z", .file = "a.c", .line = 1, .phase = SONDE_SYNC },
    };
    for (size_t i = 0; i < 7; i++) {
        fake_calls(t.main, fake_node(t.main, 0, fake_site_full(t.main, variants[i])), 1,
                   10);
        fake_calls(t.worker,
                   fake_node(t.worker, 0, fake_site_full(t.worker, variants[i])), 1,
                   10);
    }
    training_open(&t, "{\"pid\":4242}");
    size_t found = 0;
    for (size_t i = 0; i < t.report->ops.count; i++) {
        const struct op *op = &t.report->ops.ops[i];
        if (strcmp(op->name, "z") != 0)
            continue;
        found++;
        assert_int_equal(op->durations.count, 2);
    }
    assert_int_equal(found, 7);
    training_free(&t);
}

static void every_second_of_the_main_thread_is_in_one_phase(void **state)
{
    (void)state;
    struct training t;
    double sum = 0;
    training_make(&t, ENDS_WELL);
    const struct phase_split *s = &t.report->phases;
    for (int p = 0; p < SONDE_PHASE_COUNT; p++)
        sum += s->share[p];
    assert_near(sum, 1, 1e-9);
    /* From the start of the file, 0.1 s, to the end of the run, 10 s. */
    assert_near(s->wall_ns, 9.9e9, 1);
    assert_near(s->total_ns[SONDE_DATA_LOADING], 2e9, 1);
    assert_near(s->total_ns[SONDE_FORWARD], 4e9, 1); /* attention inherits it */
    assert_near(s->total_ns[SONDE_BACKWARD], 2.5e9, 1);
    assert_near(s->total_ns[SONDE_OPTIMIZER], 0.5e9, 1);
    assert_near(s->total_ns[SONDE_CHECKPOINT], 0.2e9, 1);
    /* train and epoch themselves, and what is outside of zones. */
    assert_near(s->total_ns[SONDE_OTHER], 0.7e9, 1);
    assert_near(s->total_ns[SONDE_PREPROCESSING], 0, 0); /* another thread's */
    assert_int_equal(s->count[SONDE_FORWARD], 100);      /* not 300 */
    training_free(&t);
}

static void the_worker_has_phases_of_its_own(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    const struct report_process *w = &t.report->processes[1];
    double zones = 0;
    for (int i = 0; i < WORKER_CALLS; i++)
        zones += t.worker_ns[i];
    assert_int_equal(w->pid, 4243);
    assert_string_equal(w->role, "worker");
    assert_false(w->is_main);
    /* It recorded for longer than it lived: zones are what counts. */
    assert_near(w->phases.wall_ns, fmax(zones, 9e9), 1);
    double sum = 0;
    for (int p = 0; p < SONDE_PHASE_COUNT; p++)
        sum += w->phases.share[p];
    assert_near(sum, 1, 1e-9);
    training_free(&t);
}

static void the_main_process_is_who_steps_then_the_program_then_who_works(void **state)
{
    (void)state;
    static const struct {
        unsigned program, steps_of;
        uint32_t main;
    } cases[] = {
        { 4242, 0, 4242 },  { 4243, 0, 4243 },  { 4243, 4242, 4242 },
        { 77, 4242, 4242 }, { 77, 4243, 4243 }, { 77, 0, 4242 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct training t = { 0 };
        char json[64];
        training_traces(&t);
        t.main->info.steps = cases[i].steps_of == 4242 ? 5 : 0;
        t.worker->info.steps = cases[i].steps_of == 4243 ? 5 : 0;
        (void)snprintf(json, sizeof(json), "{\"pid\":%u}", cases[i].program);
        training_open(&t, json);
        assert_int_equal(t.report->processes[t.report->main_process].pid,
                         cases[i].main);
        training_free(&t);
        fake_forget();
    }
}

static void a_program_that_called_exec_ends_with_its_last_file(void **state)
{
    (void)state;
    struct training t = { 0 };
    training_traces(&t);
    t.worker->info.pid = 4242;
    t.worker->lanes[0].tid = 4242;
    training_open(&t, "{\"pid\":4242,\"started_ns\":1700000000000000000,"
                      "\"ended_ns\":1700000020000000000,"
                      "\"exit\":{\"code\":0,\"signal\":null,\"cause\":\"ok\"}}");
    assert_near((double)t.report->processes[0].end_ns, (double)AT(9.9), 0);
    assert_near((double)t.report->processes[1].end_ns, (double)AT(20), 0);
    training_free(&t);
}

static void steps_are_counted_and_drawn(void **state)
{
    (void)state;
    struct training t;
    double total = 0;
    training_make(&t, ENDS_WELL);
    const struct step_stats *s = &t.report->steps;
    for (int i = 0; i < TRAINING_STEPS - 1; i++)
        total += t.step_ns[i];
    assert_int_equal(s->durations.count, 99);
    assert_int_equal(s->calls, 100);
    assert_near(s->durations.max, 500e6, 0);
    assert_near(step_rate_per_s(s), 99 / (total / 1e9), 1e-9);
    assert_near(step_samples_per_s(s), 32 * 99 / (total / 1e9), 1e-6);
    assert_int_equal(t.report->series.count, 99);
    assert_near(t.report->series.points[49].mean_ns, 500e6, 1);
    assert_int_equal(t.report->last_step, 100);
    training_free(&t);
}

static void many_steps_share_points_and_keep_their_mean(void **state)
{
    (void)state;
    struct training t = { 0 };
    training_traces(&t);
    t.main->event_count = 0;
    int64_t now = AT(1);
    for (int i = 0; i <= 2000; i++) {
        fake_event(t.main, (struct trace_event){ .kind = TRACE_STEP, .time_ns = now });
        now += 1000 + i;
    }
    struct step_series s;
    assert_int_equal(step_series_read(t.main, &s), 0);
    assert_int_equal(s.steps, 2000);
    assert_int_equal(s.per_point, 8);
    assert_int_equal(s.count, 250);
    assert_near(s.points[0].mean_ns, 1000 + 3.5, 1e-6);
    assert_near(s.points[249].mean_ns, 1000 + 1992 + 3.5, 1e-6);
    assert_false(s.partial);
}

static void metrics_counters_and_values_find_their_place(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    assert_string_equal(t.report->metrics->name, "loss");
    assert_near(t.report->metrics->last, 0.5, 0); /* the newest, not the last read */
    assert_int_equal(t.report->metrics->count, 3);
    assert_near(t.report->metrics->max, 7, 0);
    assert_string_equal(t.report->counters->name, "queue");
    const struct op_value *batch = training_op(&t, "load")->values;
    assert_string_equal(batch->name, "batch");
    assert_near(batch->sum, 80, 0);
    assert_near(batch->min, 16, 0);
    training_free(&t);
}

static void tags_of_the_program_win_over_those_of_the_command_line(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    assert_int_equal(t.report->tag_count, 1);
    assert_string_equal(t.report->tags[0].key, "team");
    assert_string_equal(t.report->tags[0].value, "y");
    assert_int_equal(t.report->param_count, 2);
    assert_string_equal(t.report->params[1].value, "12");
    training_free(&t);
}

static void operations_keep_cpu_and_memory_and_plain_zones_do_not(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    const struct op *save = training_op(&t, "save");
    assert_int_equal(save->op_count, 1);
    assert_near(save->cpu_ns, 0.15e9, 0);
    assert_near(save->mem_peak_mb, 150.5, 0);
    assert_true(isnan(training_op(&t, "load")->mem_peak_mb));
    assert_int_equal(training_op(&t, "load")->op_count, 0);
    training_free(&t);
}

static void components_are_summed_without_counting_twice(void **state)
{
    (void)state;
    struct training t = { 0 };
    training_traces(&t);
    const struct trace_site inner = { .name = "inner", .component = "loader" };
    const unsigned node = fake_node(t.main, t.main_decode,
                                    fake_site_full(t.main, inner));
    fake_calls(t.main, node, 10, 1e6);
    training_open(&t, "{\"pid\":4242}");
    double decode = 0;
    for (int i = 0; i < WORKER_CALLS; i++)
        decode += t.main_ns[i] + t.worker_ns[i];
    assert_int_equal(t.report->component_count, 2);
    assert_string_equal(t.report->components[0].name, "loader");
    assert_near(t.report->components[0].total_ns, decode, 1);
    assert_near(t.report->components[0].self_ns, decode, 1);
    assert_int_equal(t.report->components[0].calls, 2 * WORKER_CALLS + 10);
    training_free(&t);
}

static void a_killed_run_tells_what_every_thread_was_doing(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, IS_KILLED);
    const struct report *r = t.report;
    assert_int_equal(r->state, RUN_KILLED);
    assert_int_equal(r->thread_count, 2);
    assert_int_equal(r->threads[0].zone_count, 3);
    assert_string_equal(r->threads[0].zones[2].name, "forward");
    assert_true(r->threads[0].is_main);
    assert_int_equal(r->threads[1].process, 1);
    assert_int_equal(r->truncated, 4);
    assert_non_null(strstr(r->verdict, "KILLED by SIGKILL (oom_cgroup) after 10.0 s"));
    assert_non_null(strstr(r->verdict, "in forward"));
    training_free(&t);
}

static void a_live_process_counts_the_time_of_its_open_zones(void **state)
{
    (void)state;
    struct training t = { 0 };
    training_traces(&t);
    t.main->info.alive = true;
    t.main->info.exited = false;
    /* As the reader has it: 1.5 s so far, none ended, its child has 1 s. */
    const unsigned outer = fake_node(
        t.main, 2, fake_site(t.main, "outer", SONDE_EVALUATION, "", 0));
    const unsigned inner = fake_node(t.main, outer,
                                     fake_site(t.main, "inner", 0, "", 0));
    t.main->nodes[outer].total_ns = 1.5e9;
    t.main->nodes[outer].open = 1;
    fake_calls(t.main, inner, 10, 1e8);
    struct trace_lane *lane = fake_lane(t.main, 2, 4260, "eval");
    lane->last_time_ns = AT(5);
    fake_open(t.main, lane, outer, AT(3.5));
    training_open(&t, "{\"pid\":4242}");
    const struct op *op = training_op(&t, "outer");
    check_sums(&t.report->ops);
    assert_int_equal(t.report->state, RUN_LIVE);
    assert_int_equal(op->durations.count, 0);
    assert_int_equal(op->open, 1);
    assert_near(op->total_ns, 1.5e9, 0);
    assert_near(op->open_ns, 1.5e9, 0);
    assert_near(op->self_ns, 0.5e9, 1);
    training_free(&t);
}

static void the_state_of_a_run_is_told_honestly(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum report_state state;
        const char *words;
    } cases[] = {
        { "{\"exit\":{\"code\":0,\"signal\":null,\"cause\":\"ok\"}}", RUN_GOOD,
          "exit 0" },
        { "{\"exit\":{\"code\":3,\"signal\":null,\"cause\":\"error\"}}", RUN_FAILED,
          "exit 3" },
        { "{\"exit\":{\"code\":null,\"signal\":\"SIGSEGV\",\"cause\":\"signal\"}}",
          RUN_KILLED, "killed by SIGSEGV" },
        { "{\"exit\":{\"code\":null,\"signal\":null,\"cause\":\"unknown\"},"
          "\"ended_ns\":1700000010000000000}",
          RUN_UNKNOWN, "exit unknown" },
        { "{}", RUN_UNKNOWN, "exit unknown" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct training t = { 0 };
        char words[96];
        training_traces(&t);
        training_open(&t, cases[i].json);
        assert_int_equal(t.report->state, cases[i].state);
        assert_string_equal(report_state_words(t.report, words, sizeof(words)),
                            cases[i].words);
        training_free(&t);
        fake_forget();
    }
}

static void damaged_and_unreadable_traces_are_noted_never_fatal(void **state)
{
    (void)state;
    struct training t = { 0 };
    training_traces(&t);
    t.worker->open_error = SONDE_E_VERSION;
    t.main->damage = "3 blocks left out";
    t.main->info.lost = 17;
    t.main->info.lost_reason = LOST_DISK_FULL | LOST_LANES;
    training_open(&t, "{\"pid\":4242}");
    assert_int_equal(t.report->process_count, 1);
    assert_int_equal(t.report->files_left_out, 1);
    assert_int_equal(t.report->note_count, 3);
    assert_non_null(strstr(t.report->notes[0], "3 blocks left out"));
    assert_non_null(strstr(t.report->notes[1], "0002-4243-b.sonde"));
    assert_non_null(strstr(t.report->notes[2], "17 events"));
    assert_non_null(strstr(t.report->notes[2], "disk full, too many threads"));
    training_free(&t);
}

static void a_run_without_traces_says_so(void **state)
{
    (void)state;
    struct training t = { 0 };
    training_open(&t, "{\"exit\":{\"code\":0,\"signal\":null,\"cause\":\"ok\"}}");
    assert_int_equal(t.report->process_count, 0);
    assert_int_equal(t.report->main_process, SIZE_MAX);
    assert_non_null(strstr(t.report->verdict, "Nothing was recorded"));
    training_free(&t);
}

static void nodes_in_a_circle_do_not_hang_the_report(void **state)
{
    (void)state;
    struct training t = { 0 };
    training_traces(&t);
    t.main->nodes[t.train].parent = t.attention;
    t.worker->nodes[t.worker_decode].parent = 60000;
    training_open(&t, "{\"pid\":4242}");
    check_sums(&t.report->ops);
    training_free(&t);
}

static void other_paths_and_spans_do_not_count_as_thread_time(void **state)
{
    (void)state;
    struct training t = { 0 };
    training_traces(&t);
    fake_calls(t.main, NODE_OTHER, 5, 1e9);
    t.main->info.paths_lost = 5;
    training_open(&t, "{\"pid\":4242}");
    const struct op *other = training_op(&t, "(other paths)");
    const struct op *span = training_op(&t, "request");
    assert_int_equal(other->durations.count, 5);
    assert_int_equal(other->kind, OP_OTHER);
    assert_int_equal(span->kind, OP_SPAN);
    assert_near(span->total_ns, 120e6, 1);
    assert_near(span->suspended_ns, 80e6, 0);
    double zones = 9.7e9;
    for (int i = 0; i < WORKER_CALLS; i++)
        zones += t.main_ns[i] + t.worker_ns[i];
    assert_near(t.report->ops.ops[0].total_ns, zones, 10);
    check_sums(&t.report->ops);
    training_free(&t);
}

static void what_runs_on_the_main_thread_is_told_apart(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    assert_near(training_op(&t, "train")->main_ns, 9.5e9, 1);
    assert_near(training_op(&t, "forward")->main_self_ns, 1.6e9, 1);
    assert_near(training_op(&t, "decode")->main_ns, 0, 0);
    assert_non_null(strstr(t.report->verdict, "40 % of the main thread's time is in "
                                              "forward."));
    assert_non_null(strstr(t.report->why, "60 % of that is attention, model.c:44"));
    training_free(&t);
}

static void the_verdict_does_not_blame_another_thread(void **state)
{
    (void)state;
    struct training t = { 0 };
    training_traces(&t);
    const unsigned node = fake_node(
        t.main, 1, fake_site(t.main, "elsewhere", SONDE_FORWARD, "x.c", 1));
    fake_calls(t.main, node, 10, 1e9);
    training_open(&t, "{\"pid\":4242}");
    assert_null(strstr(t.report->why, "elsewhere"));
    assert_non_null(strstr(t.report->why, "attention"));
    training_free(&t);
}

static void overhead_is_what_events_and_waits_cost_the_main_thread(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    /* 1,600 events of 25 ns and 4.91 ms of waiting in 9.9 s. */
    assert_near(report_overhead_percent(t.report), 0.05, 1e-9);
    /* What samples saw of our code is more; of a handful of them nothing is known. */
    t.report->hot.own_share = 0.02;
    t.report->hot.samples = 99;
    assert_near(report_overhead_percent(t.report), 0.05, 1e-9);
    t.report->hot.samples = 100;
    assert_near(report_overhead_percent(t.report), 2, 1e-9);
    training_free(&t);
    t.main->info.event_cost_ns = NAN;
    training_open(&t, "{\"pid\":4242}");
    assert_true(isnan(report_overhead_percent(t.report)));
    training_free(&t);
}

static void provenance_names_every_group_once(void **state)
{
    (void)state;
    struct training t;
    training_make(&t, ENDS_WELL);
    const struct report *r = t.report;
    assert_true(r->provenance_count > 15);
    for (size_t i = 0; i < r->provenance_count; i++) {
        assert_true(r->provenance[i].method[0] != '\0');
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(r->provenance[i].metric, r->provenance[k].metric);
    }
    assert_string_equal(r->provenance[0].metric, "operations.durations");
    assert_string_equal(r->provenance[0].resolution,
                        "0.4 ns; between processes ±70.0 ns");
    training_free(&t);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(self_and_children_make_up_the_total_of_every_path),
        TEST(a_path_is_merged_over_threads_and_processes),
        TEST(sites_that_differ_in_anything_stay_apart),
        TEST(every_second_of_the_main_thread_is_in_one_phase),
        TEST(the_worker_has_phases_of_its_own),
        TEST(the_main_process_is_who_steps_then_the_program_then_who_works),
        TEST(a_program_that_called_exec_ends_with_its_last_file),
        TEST(steps_are_counted_and_drawn),
        TEST(many_steps_share_points_and_keep_their_mean),
        TEST(metrics_counters_and_values_find_their_place),
        TEST(tags_of_the_program_win_over_those_of_the_command_line),
        TEST(operations_keep_cpu_and_memory_and_plain_zones_do_not),
        TEST(components_are_summed_without_counting_twice),
        TEST(a_killed_run_tells_what_every_thread_was_doing),
        TEST(a_live_process_counts_the_time_of_its_open_zones),
        TEST(the_state_of_a_run_is_told_honestly),
        TEST(damaged_and_unreadable_traces_are_noted_never_fatal),
        TEST(a_run_without_traces_says_so),
        TEST(nodes_in_a_circle_do_not_hang_the_report),
        TEST(other_paths_and_spans_do_not_count_as_thread_time),
        TEST(what_runs_on_the_main_thread_is_told_apart),
        TEST(the_verdict_does_not_blame_another_thread),
        TEST(overhead_is_what_events_and_waits_cost_the_main_thread),
        TEST(provenance_names_every_group_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
