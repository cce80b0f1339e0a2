/* operation_test.c: operations are records that a program can read, with or without a
 * session; in a session they are zones that know their CPU time and memory. */
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "recorded.h"

enum { MIB = 1 << 20 };

/* Memory that is really there, and gone again afterwards whatever malloc thinks. */
static void *take(size_t mib)
{
    void *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
    assert_true(p != MAP_FAILED);
    memset(p, 1, mib * MIB);
    return p;
}

static void give(void *p, size_t mib)
{
    assert_int_equal(munmap(p, mib * MIB), 0);
}

/* ---- The record ------------------------------------------------------------------- */

static void an_operation_needs_no_session(void **state)
{
    (void)state;
    struct sonde_operation op;
    char name[] = "experiment", component[] = "evolution";
    assert_false(sonde_session_active());
    sonde_operation_begin(&op, name, SONDE_NO_PHASE, component, NULL);
    memset(name, 'x', sizeof name - 1); /* names are copied */
    memset(component, 'x', sizeof component - 1);
    assert_string_equal(op.name, "experiment");
    assert_string_equal(op.component, "evolution");
    assert_true(isnan(op.duration_s) && isnan(op.cpu_s) && isnan(op.mem_after_mb));
    const double early = sonde_operation_elapsed(&op);
    nap_ns(20000000);
    const double late = sonde_operation_elapsed(&op);
    assert_true(early >= 0 && late >= early + 0.02);
    sonde_operation_end(&op);
    assert_true(op.duration_s >= late);
    assert_true(op.cpu_s >= 0 && op.process_cpu_s >= op.cpu_s);
    assert_true(op.cpu_s < op.duration_s); /* it slept */
    assert_true(op.mem_before_mb > 0 && op.mem_peak_mb >= op.mem_after_mb);
    assert_true(sonde_operation_elapsed(&op) == op.duration_s);
}

static void it_began_when_the_clock_said(void **state)
{
    (void)state;
    struct sonde_operation op;
    struct timespec before, after;
    (void)clock_gettime(CLOCK_REALTIME, &before);
    sonde_operation_begin(&op, "when", SONDE_NO_PHASE, NULL, NULL);
    (void)clock_gettime(CLOCK_REALTIME, &after);
    sonde_operation_end(&op);
    /* A double of seconds since the epoch is good to a microsecond. */
    assert_true(op.start_s >=
                (double)before.tv_sec + (double)before.tv_nsec / 1e9 - 1e-6);
    assert_true(op.start_s <=
                (double)after.tv_sec + (double)after.tv_nsec / 1e9 + 1e-6);
    assert_null(op.component);
}

static void a_second_end_changes_nothing(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_operation op;
    recorded_start(&r, NULL);
    sonde_operation_begin(&op, "once", SONDE_NO_PHASE, NULL, NULL);
    sonde_operation_end(&op);
    const struct sonde_operation kept = op;
    nap_ns(1000000);
    sonde_operation_end(&op);
    assert_int_equal(sonde_operation_end_if_memory(&op, -1000), 0);
    assert_memory_equal(&op, &kept, sizeof op);
    recorded_stop(&r);
    assert_int_equal(recorded_node(&r, "once", NULL)->op_count, 1);
    assert_int_equal(trace_lane(r.trace, 0)->orphan_ends, 0);
    recorded_release(&r);
}

static void spin_cpu(void)
{
    volatile unsigned x = 0;
    while (x < 20000000)
        x++;
}

static void cpu_time_is_the_threads_own(void **state)
{
    (void)state;
    struct sonde_operation busy, idle;
    sonde_operation_begin(&busy, "busy", SONDE_NO_PHASE, NULL, NULL);
    spin_cpu();
    sonde_operation_end(&busy);
    sonde_operation_begin(&idle, "idle", SONDE_NO_PHASE, NULL, NULL);
    nap_ns(2000000);
    sonde_operation_end(&idle);
    assert_true(busy.cpu_s > 0);
    assert_true(idle.cpu_s < busy.cpu_s);
}

/* ---- Values ----------------------------------------------------------------------- */

static void values_are_kept_and_the_last_of_a_name_holds(void **state)
{
    (void)state;
    struct sonde_operation op;
    sonde_operation_begin(&op, "values", SONDE_NO_PHASE, NULL, NULL);
    sonde_operation_value(&op, "accuracy", 0.5);
    sonde_operation_value(&op, "loss", 2);
    sonde_operation_value(&op, "accuracy", 0.93);
    sonde_operation_value(&op, NULL, 4); /* no name is the empty name */
    sonde_operation_end(&op);
    assert_int_equal(op.value_count, 3);
    assert_int_equal(op.values_dropped, 0);
    assert_string_equal(op.values[0].name, "accuracy");
    assert_near(op.values[0].value, 0.93, 0);
    assert_string_equal(op.values[1].name, "loss");
    assert_near(op.values[1].value, 2, 0);
    assert_string_equal(op.values[2].name, "");
}

static void values_past_the_limit_are_counted(void **state)
{
    (void)state;
    struct sonde_operation op;
    char name[16];
    sonde_operation_begin(&op, "many values", SONDE_NO_PHASE, NULL, NULL);
    for (int i = 0; i < SONDE_OPERATION_VALUES + 3; i++) {
        (void)snprintf(name, sizeof name, "v%d", i);
        sonde_operation_value(&op, name, i);
    }
    sonde_operation_value(&op, "v15", 99); /* known: there is room for it */
    sonde_operation_end(&op);
    assert_int_equal(op.value_count, SONDE_OPERATION_VALUES);
    assert_int_equal(op.values_dropped, 3);
    assert_string_equal(op.values[15].name, "v15");
    assert_near(op.values[15].value, 99, 0);
}

static void long_names_of_values_are_cut_and_still_found(void **state)
{
    (void)state;
    struct sonde_operation op;
    char name[100];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    sonde_operation_begin(&op, "long", SONDE_NO_PHASE, NULL, NULL);
    sonde_operation_value(&op, name, 1);
    sonde_operation_value(&op, name, 2);
    sonde_operation_end(&op);
    assert_int_equal(op.value_count, 1);
    assert_int_equal(strlen(op.values[0].name), sizeof op.values[0].name - 1);
    assert_near(op.values[0].value, 2, 0);
}

static void a_disabled_operation_keeps_values_and_measures_nothing(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_operation op;
    char name[] = "disabled";
    recorded_start(&r, NULL);
    sonde_operation_disabled(&op, name);
    memset(name, 'x', sizeof name - 1);
    assert_string_equal(op.name, "disabled");
    sonde_operation_value(&op, "accuracy", 0.93);
    assert_true(isnan(sonde_operation_elapsed(&op)));
    sonde_operation_end(&op);
    assert_int_equal(sonde_operation_end_if_memory(&op, -1000), 0);
    assert_int_equal(op.value_count, 1);
    assert_near(op.values[0].value, 0.93, 0);
    assert_true(isnan(op.duration_s) && isnan(op.cpu_s) && isnan(op.mem_peak_mb));
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "disabled"), 0);
    assert_null(recorded_value(&r, "accuracy"));
    recorded_release(&r);
}

/* ---- In the trace ----------------------------------------------------------------- */

static void the_trace_says_what_the_record_says(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_operation op;
    recorded_start(&r, NULL);
    SONDE_ZONE("outer", SONDE_FORWARD) {
        sonde_operation_begin(&op, "op", SONDE_EVALUATION, "evolution", "k=v");
        sonde_operation_value(&op, "accuracy", 0.93);
        spin_cpu();
        sonde_operation_end(&op);
    }
    recorded_stop(&r);
    const struct trace_node *n = recorded_node(&r, "outer", "op", NULL);
    assert_non_null(n);
    assert_int_equal(n->count, 1);
    assert_int_equal(n->op_count, 1);
    assert_near(n->op_cpu_ns, op.cpu_s * 1e9, 2);
    assert_near(n->mem_before_mb, op.mem_before_mb, 0.001);
    assert_near(n->mem_after_mb, op.mem_after_mb, 0.001);
    assert_near(n->mem_peak_mb, op.mem_peak_mb, 0.001);
    const struct trace_site *s = trace_site(r.trace, n->site);
    assert_string_equal(s->component, "evolution");
    assert_string_equal(s->category, "operation");
    assert_string_equal(s->tags, "k=v");
    assert_int_equal(s->phase, SONDE_EVALUATION);
    const struct trace_value *v = recorded_value(&r, "accuracy");
    assert_non_null(v);
    assert_near(v->last, 0.93, 0);
    assert_ptr_equal(trace_node(r.trace, v->node), n);
    recorded_release(&r);
}

static void while_paused_only_the_record_is_made(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_operation op;
    recorded_start(&r, NULL);
    SONDE_ZONE("outer", SONDE_FORWARD) {
        sonde_pause();
        sonde_operation_begin(&op, "unseen", SONDE_NO_PHASE, NULL, NULL);
        sonde_operation_value(&op, "unseen value", 1);
        sonde_operation_end(&op);
        sonde_resume();
    }
    recorded_stop(&r);
    assert_true(op.duration_s >= 0);
    assert_int_equal(op.value_count, 1);
    assert_int_equal(recorded_zones(&r, "unseen"), 0);
    assert_null(recorded_value(&r, "unseen value"));
    assert_int_equal(recorded_node(&r, "outer", NULL)->op_count, 0);
    recorded_release(&r);
}

static void operations_may_end_in_any_order(void **state)
{
    (void)state;
    struct sonde_operation ops[5];
    static const unsigned order[] = { 2, 0, 4, 1, 3 };
    for (unsigned i = 0; i < 5; i++)
        sonde_operation_begin(&ops[i], "any order", SONDE_NO_PHASE, NULL, NULL);
    for (unsigned i = 0; i < 5; i++)
        sonde_operation_end(&ops[order[i]]);
    for (unsigned i = 0; i < 5; i++)
        assert_true(ops[i].duration_s >= 0);
    /* Those that ended are forgotten: the memory sampler must not write to them. */
    memset(ops, 0xa5, sizeof ops);
    nap_ns(30000000);
    for (size_t i = 0; i < sizeof ops; i++)
        assert_int_equal(((const unsigned char *)ops)[i], 0xa5);
}

/* ---- Memory ----------------------------------------------------------------------- */

static void a_new_peak_is_the_kernels(void **state)
{
    (void)state;
    struct sonde_operation op;
    sonde_operation_begin(&op, "peak", SONDE_NO_PHASE, NULL, NULL);
    give(take(96), 96);
    sonde_operation_end(&op);
    assert_int_equal(op.mem_peak_exact, 1);
    assert_true(op.mem_peak_mb >= op.mem_before_mb + 90);
    assert_true(op.mem_after_mb < op.mem_peak_mb - 60); /* given back before the end */
}

static void a_lower_peak_is_sampled(void **state)
{
    (void)state;
    struct sonde_operation op = { 0 };
    give(take(160), 160); /* the kernel's mark is above all that follows */
    /* The sampler is a thread: a busy machine may keep it from looking in time. */
    for (unsigned tries = 0; tries < 50 && !(op.mem_peak_mb > op.mem_before_mb + 30);
         tries++) {
        sonde_operation_begin(&op, "sampled", SONDE_NO_PHASE, NULL, NULL);
        void *p = take(40);
        nap_ns(30000000);
        give(p, 40);
        sonde_operation_end(&op);
        assert_int_equal(op.mem_peak_exact, 0);
    }
    assert_true(op.mem_peak_mb > op.mem_before_mb + 30);
#ifndef SONDE_SANITIZED /* whose shadow memory is several times what it shadows */
    assert_true(op.mem_peak_mb < op.mem_before_mb + 100);
#endif
}

static void only_those_that_need_memory_count_as_operations(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_operation small, large;
    recorded_start(&r, NULL);
    sonde_operation_begin(&small, "small", SONDE_NO_PHASE, NULL, NULL);
    const int small_over = sonde_operation_end_if_memory(&small, 1000);
    sonde_operation_begin(&large, "large", SONDE_NO_PHASE, NULL, NULL);
    void *p = take(64);
    const int large_over = sonde_operation_end_if_memory(&large, 32);
    give(p, 64);
    recorded_stop(&r);
    assert_int_equal(small_over, 0);
    assert_int_equal(large_over, 1);
    assert_int_equal(recorded_node(&r, "small", NULL)->count, 1);
    assert_int_equal(recorded_node(&r, "small", NULL)->op_count, 0);
    assert_int_equal(recorded_node(&r, "large", NULL)->op_count, 1);
    recorded_release(&r);
}

/* Without a free descriptor /proc cannot be read. */
static void what_cannot_be_measured_is_missing_not_zero(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_operation ops[3];
    struct rlimit limit, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    recorded_start(&r, NULL);
    SONDE_ZONE("first", SONDE_FORWARD) {}
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (unsigned i = 0; i < 2; i++) {
        sonde_operation_begin(&ops[i], "unmeasured", SONDE_NO_PHASE, NULL, NULL);
        if (i == 0)
            sonde_operation_end(&ops[i]);
        else
            assert_int_equal(sonde_operation_end_if_memory(&ops[i], 0), 0);
        assert_true(isnan(ops[i].mem_before_mb) && isnan(ops[i].mem_after_mb));
    }
    sonde_operation_begin(&ops[2], "mixed", SONDE_NO_PHASE, NULL, NULL);
    sonde_operation_end(&ops[2]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    sonde_operation_begin(&ops[2], "mixed", SONDE_NO_PHASE, NULL, NULL);
    sonde_operation_end(&ops[2]);
    recorded_stop(&r);
    const struct trace_node *n = recorded_node(&r, "unmeasured", NULL);
    assert_int_equal(n->count, 2);
    assert_int_equal(n->op_count, 1);
    assert_true(isnan(n->mem_before_mb) && isnan(n->mem_after_mb));
    assert_true(isnan(n->mem_peak_mb));
    /* One that was measured is enough to know a peak. */
    assert_near(recorded_node(&r, "mixed", NULL)->mem_peak_mb, ops[2].mem_peak_mb,
                0.001);
    recorded_release(&r);
}

/* ---- Threads and children --------------------------------------------------------- */

enum { THREADS = 4, EACH = 50 };

static void *many_operations(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < EACH; i++) {
        struct sonde_operation outer, inner;
        sonde_operation_begin(&outer, "outer op", SONDE_NO_PHASE, NULL, NULL);
        sonde_operation_begin(&inner, "inner op", SONDE_NO_PHASE, NULL, NULL);
        sonde_operation_end(&inner);
        sonde_operation_end(&outer);
    }
    return NULL;
}

static void threads_have_their_own_operations(void **state)
{
    (void)state;
    struct recorded r;
    pthread_t threads[THREADS];
    uint64_t outer = 0, inner = 0;
    recorded_start(&r, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many_operations, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    recorded_stop(&r);
    for (unsigned i = FIRST_NODE; i < trace_node_count(r.trace); i++) {
        const struct trace_node *n = trace_node(r.trace, i);
        if (n && strcmp(recorded_name(&r, i), "outer op") == 0)
            outer += n->op_count;
        if (n && strcmp(recorded_name(&r, i), "inner op") == 0 && n->depth == 2)
            inner += n->op_count;
    }
    assert_int_equal(outer, THREADS * EACH);
    assert_int_equal(inner, THREADS * EACH);
    recorded_release(&r);
}

static struct sonde_operation across_fork;

static bool end_in_child(void)
{
    struct sonde_operation own;
    sonde_operation_begin(&own, "child's", SONDE_NO_PHASE, NULL, NULL);
    sonde_operation_end(&own);
    sonde_operation_end(&across_fork);
    return own.duration_s >= 0 && across_fork.duration_s >= own.duration_s;
}

static void a_forked_child_may_use_what_its_parent_began(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* TSan ends a child of many threads that starts one: our sampler */
#endif
    sonde_operation_begin(&across_fork, "across", SONDE_NO_PHASE, NULL, NULL);
    assert_true(in_child(end_in_child));
    assert_true(isnan(across_fork.duration_s)); /* ours goes on */
    sonde_operation_end(&across_fork);
    assert_true(across_fork.duration_s >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_needs_no_session),
        cmocka_unit_test(it_began_when_the_clock_said),
        cmocka_unit_test(a_second_end_changes_nothing),
        cmocka_unit_test(cpu_time_is_the_threads_own),
        cmocka_unit_test(values_are_kept_and_the_last_of_a_name_holds),
        cmocka_unit_test(values_past_the_limit_are_counted),
        cmocka_unit_test(long_names_of_values_are_cut_and_still_found),
        cmocka_unit_test(a_disabled_operation_keeps_values_and_measures_nothing),
        cmocka_unit_test(the_trace_says_what_the_record_says),
        cmocka_unit_test(while_paused_only_the_record_is_made),
        cmocka_unit_test(operations_may_end_in_any_order),
        cmocka_unit_test(a_new_peak_is_the_kernels),
        cmocka_unit_test(a_lower_peak_is_sampled),
        cmocka_unit_test(only_those_that_need_memory_count_as_operations),
        cmocka_unit_test(what_cannot_be_measured_is_missing_not_zero),
        cmocka_unit_test(threads_have_their_own_operations),
        cmocka_unit_test(a_forked_child_may_use_what_its_parent_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
