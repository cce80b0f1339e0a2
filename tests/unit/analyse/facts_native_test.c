/* What names of functions tell, and how a short series grows. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/fact_series.h"
#include "analyse/report.h"

static struct report made; /* too large for a stack */
static struct step_account in_loop;
static double tight_share;

static struct teams teams; /* and processes that make steps */
static struct report_process *processes;
static size_t process_count;

static void sampled(struct facts *f, struct hot_function *list, size_t count)
{
    memset(&made, 0, sizeof made);
    made.processes = processes;
    made.process_count = process_count;
    made.hot = (struct hot_functions){ .sampled = true,
                                       .samples = 1000,
                                       .cpu_ns = 10e9,
                                       .coverage = 1,
                                       .tight_share = tight_share,
                                       .functions = list,
                                       .function_count = count,
                                       .teams = teams };
    made.end_ns = (int64_t)10e9;
    made.account = in_loop;
    facts_init(f);
    f->v[FACT_CPU_CORES] = 1.8;
    f->v[FACT_FREE_CORES] = 0.2;
    facts_of_native(&made, f);
    arena_release(&made.arena);
}

static struct hot_function function(const char *name, const char *module, double share)
{
    return (struct hot_function){ name, module, "", .share = share,
                                  .total_share = share };
}

static void threads_that_spin_leave_their_core_free(void **state)
{
    (void)state;
    struct facts f;
    struct hot_function list[] = {
        function("gomp_barrier_wait_end", "/usr/lib/libgomp.so.1", 0.4),
        function("_PyEval_EvalFrameDefault", "/usr/bin/python3.12", 0.6),
    };
    sampled(&f, list, 2);
    assert_near(f.v[FACT_FREE_CORES], 0.2 + 0.4 * 1.8, 1e-9);
    sampled(&f, list + 1, 1);
    assert_near(f.v[FACT_FREE_CORES], 0.2, 1e-9);
}

/* A barrier of a JIT: seen by its samples, which lie in one line. Who is in the middle of a
 * piece of work leaves no core to others. */
static void barriers_without_a_name_are_spinning_too(void **state)
{
    (void)state;
    struct facts f;
    struct hot_function list[] = {
        function("gomp_barrier_wait_end", "/usr/lib/libgomp.so.1", 0.1),
        function("[jit]", "", 0.8),
    };
    tight_share = 0.6;
    sampled(&f, list, 2);
    tight_share = 0;
    assert_near(f.v[FACT_SPIN_SHARE], 0.7, 1e-9);
    assert_near(f.v[FACT_FREE_CORES], 0.2 + 0.1 * 1.8, 1e-9);
}

static void doubles_of_numpys_fft_are_not_the_programs(void **state)
{
    (void)state;
    struct facts f;
    struct hot_function list[] = {
        function("void pocketfft::detail::rfftp<double>::exec<double>", "u.so", 0.3),
        function("dgemm_kernel_SKYLAKEX", "libopenblas.so", 0.2),
    };
    struct report_process trains = { .pid = 10, .steps = 100 };
    processes = &trains;
    process_count = 1;
    sampled(&f, list, 2);
    processes = NULL;
    process_count = 0;
    assert_near(f.v[FACT_DOUBLE_SHARE], 0.2, 1e-9);
}

/* A third of them in the process that trains, the rest in one that simulates. */
static void doubles_beside_the_training_are_not_its_precision(void **state)
{
    (void)state;
    struct facts f;
    struct hot_function list[] = { function("dgemm_kernel_ZEN", "libopenblas.so",
                                            0.6) };
    struct team list_of[] = { { .pid = 10, .doubles = 20 },
                              { .pid = 11, .doubles = 40 } };
    struct report_process both[] = { { .pid = 10, .steps = 100 }, { .pid = 11 } };
    teams = (struct teams){ list_of, 2 };
    processes = both;
    process_count = 2;
    sampled(&f, list, 1);
    assert_near(f.v[FACT_DOUBLE_SHARE], 0.2, 1e-9);
    both[1].steps = 100; /* both train */
    sampled(&f, list, 1);
    assert_near(f.v[FACT_DOUBLE_SHARE], 0.6, 1e-9);
    both[0].steps = both[1].steps = 0; /* nobody does: there is no model to tell of */
    sampled(&f, list, 1);
    assert_true(isnan(f.v[FACT_DOUBLE_SHARE]));
    both[0].steps = 100; /* processes are not told apart */
    teams.count = 0;
    sampled(&f, list, 1);
    assert_near(f.v[FACT_DOUBLE_SHARE], 0.6, 1e-9);
    processes = NULL;
    process_count = 0;
}

static void the_allocator_has_several_names(void **state)
{
    (void)state;
    struct facts f;
    struct hot_function list[] = {
        function("__GI___libc_malloc", "libc.so.6", 0.10),
        function("__libc_malloc", "libc.so.6", 0.20),
        function("cfree", "libc.so.6", 0.05),
        function("__munmap", "libc.so.6", 0.01),
        function("malloc_by_size", "own.so", 0.30),
    };
    sampled(&f, list, 5);
    assert_near(f.v[FACT_ALLOC_SHARE], 0.36, 1e-9);
}

/* Of a yield's 4 s the kernel has 3: no page fault's. */
static void a_yield_is_mostly_the_kernels(void **state)
{
    (void)state;
    struct facts f;
    struct hot_function list[] = {
        function("__sched_yield", "libc.so.6", 0.1),
        function("[kernel]", "[kernel]", 0.6),
    };
    list[0].total_share = 0.4;
    sampled(&f, list, 2);
    assert_near(native_yield_ns(&made.hot), 3e9, 1);
    assert_near(native_yield_ns(&(struct hot_functions){ .cpu_ns = 1e9 }), 0, 1e-9);
}

/* 10 s of CPU time, 4 of them before the first step and after the last, 6 s of steps. */
static void only_the_loop_works_for_its_steps(void **state)
{
    (void)state;
    struct facts f;
    struct hot_function list[] = {
        function("[libgomp.so.1]", "/usr/lib/libgomp.so.1", 0.3),
        function("_PyEval_EvalFrameDefault", "/usr/bin/python3.12", 0.45),
        function("sgemm_kernel", "/usr/lib/libopenblas.so.0", 0.25),
    };
    in_loop = (struct step_account){
        .known = true, .startup_ns = 3e9, .end_ns = 1e9, .wall_ns = 10e9
    };
    sampled(&f, list, 3);
    assert_near(f.v[FACT_WORK_CORES], (7 - 4) / 6.0, 1e-9);
    assert_near(f.v[FACT_SERIAL_CORES], (4.5 - 4) / 6.0, 1e-9);
    assert_near(f.v[FACT_ARITHMETIC_SHARE], 0.25 * 10 / 6, 1e-9);
    in_loop = (struct step_account){ .known = false };
    sampled(&f, list, 3);
    assert_true(isnan(f.v[FACT_WORK_CORES]));
}

/* oneDNN's kernels are code of a JIT; its own prepares and calls them. The dispatcher's
 * functions are called like their operators, and the interpreter converts. */
static void who_calls_a_kernel_computes_nothing(void **state)
{
    (void)state;
    struct facts f;
    struct hot_function list[] = {
        function("[jit]", "", 0.1),
        function("[libdnnl.so.2.6]", "/usr/lib/libdnnl.so.2.6", 0.15),
        function("dnnl::impl::cpu::x64::jit_avx512_core_conv_fwd_t::execute()",
                 "/usr/lib/libtorch_cpu.so", 0.05),
        function("at::_ops::convolution::call(at::Tensor const&)",
                 "/usr/lib/libtorch_cpu.so", 0.1),
        function("convertitem", "/usr/bin/python3.11", 0.1),
        function("Sleef_finz_tanhf8_u10avx2", "/usr/lib/libsleef.so.3.5.1", 0.05),
    };
    sampled(&f, list, 6);
    assert_near(f.v[FACT_ARITHMETIC_SHARE], 0.15, 1e-9);
    /* Where it made none its own code has to compute. */
    sampled(&f, list + 1, 5);
    assert_near(f.v[FACT_ARITHMETIC_SHARE], 0.25, 1e-9);
}

/* ---- Threads ---------------------------------------------------------------------------- */

/* The other thread lived for 12 s, 8 of them in the loop: so did the waiting. */
static void waits_for_the_lock_before_the_loop_are_no_steps(void **state)
{
    (void)state;
    struct py_thread threads[] = {
        { .pid = 7, .tid = 7, .wall_ns = 14e9, .gil_wait_ns = 9e9 },
        { .pid = 7, .tid = 8, .wall_ns = 12e9 },
        { .pid = 9, .tid = 9, .wall_ns = 100e9 }, /* a worker has a lock of its own */
    };
    struct py_profile p = {
        .present = true, .main_pid = 7, .threads = threads, .thread_count = 3
    };
    assert_near(python_gil_wait_ns(&p, 8e9), 6e9, 1);
    assert_near(python_gil_wait_ns(&p, 13e9), 9e9, 1);
    p.thread_count = 1;
    assert_near(python_gil_wait_ns(&p, 8e9), 9e9, 1);
    p.thread_count = 0;
    assert_true(isnan(python_gil_wait_ns(&p, 8e9)));
}

/* 5 s of CPU time in 10 s, of which 2 were before the loop and behind it; there it had a core
 * for half of the time. */
static void cpu_time_of_the_main_thread_is_the_loops(void **state)
{
    (void)state;
    struct py_thread threads[] = {
        { .pid = 7, .tid = 8, .wall_ns = 9e9, .cpu_ns = 9e9 },
        { .pid = 7, .tid = 7, .wall_ns = 10e9, .cpu_ns = 5e9 },
    };
    struct py_profile p = {
        .present = true, .main_pid = 7, .threads = threads, .thread_count = 2
    };
    struct step_account a = { .known = true,
                              .steps = 10,
                              .wall_ns = 10e9,
                              .startup_ns = 1.5e9,
                              .end_ns = 0.5e9 };
    assert_near(python_main_cpu_share(&p, &a, 0.5), 4.0 / 8, 1e-9);
    assert_near(python_main_cpu_share(&p, &a, 1), 3.0 / 8, 1e-9);
    p.thread_count = 1; /* nobody looked at the main one */
    assert_true(isnan(python_main_cpu_share(&p, &a, 1)));
    p.thread_count = 2;
    a.known = false;
    assert_true(isnan(python_main_cpu_share(&p, &a, 1)));
}

/* ---- Processes and shapes ------------------------------------------------------------ */

static struct facts of_two_processes(double in_phases, double workers)
{
    struct hot_function one = function("f", "/usr/lib/libtorch_cpu.so", 0);
    static struct team list[] = {
        { .pid = 7, .waits = 300, .alone = 100, .pieces = 100 },
        { .pid = 8, .waits = 300, .alone = 50, .pieces = 150 },
    };
    struct facts f;
    memset(&made, 0, sizeof made);
    made.hot = (struct hot_functions){ .sampled = true,
                                       .samples = 1000,
                                       .cpu_ns = 20e9,
                                       .coverage = 1,
                                       .functions = &one,
                                       .function_count = 1,
                                       .teams = { list, 2 } };
    made.account = (struct step_account){ .known = true, .steps = 10, .wall_ns = 10e9 };
    made.end_ns = (int64_t)10e9;
    made.python.main_pid = 7;
    facts_init(&f);
    f.v[FACT_FORWARD_SHARE] = in_phases;
    f.v[FACT_BACKWARD_SHARE] = f.v[FACT_OPTIMIZER_SHARE] = 0;
    f.v[FACT_WORKERS] = workers;
    facts_of_native(&made, &f);
    arena_release(&made.arena);
    return f;
}

/* One process that computes as much as the main one, and no loader's: its work is not the
 * main one's. */
static void another_member_works_for_itself(void **state)
{
    (void)state;
    struct facts f = of_two_processes(0.9, NAN);
    assert_near(f.v[FACT_CHILDREN_AT_WORK], 1, 1e-9);
    assert_near(f.v[FACT_CHILD_CORES], 0.4, 1e-9);
    assert_near(f.v[FACT_WORK_CORES], 0.8, 1e-9);
    f = of_two_processes(0.3, NAN); /* the main one may wait for it */
    assert_true(isnan(f.v[FACT_CHILDREN_AT_WORK]));
    f = of_two_processes(0.9, 1);
    assert_true(isnan(f.v[FACT_CHILDREN_AT_WORK]));
}

/* Half of what the main process computes is for all of its threads, whatever the other one
 * does; where samples tell little, nothing is known of it. */
static void pieces_of_the_main_process_are_its_own(void **state)
{
    (void)state;
    (void)of_two_processes(0.9, NAN);
    assert_near(native_pieces_share(&made), 0.5, 1e-9);
    made.hot.coverage = 0.6;
    assert_near(native_pieces_share(&made), 0, 1e-9);
}

static double positions_of(const char *layer)
{
    struct py_layers_of_type layers[] = { { .type = layer, .count = 3 } };
    struct py_model model = { .layers = layers, .layer_count = 1 };
    struct facts f;
    memset(&made, 0, sizeof made);
    made.layer = (struct py_layer){ .models = &model, .model_count = 1 };
    facts_init(&f);
    facts_of_shapes(&made, &f);
    return f.v[FACT_POSITIONS];
}

static void a_recurrence_has_the_rows_of_its_samples(void **state)
{
    (void)state;
    assert_near(positions_of("Conv1d"), 3, 1e-9);
    assert_near(positions_of("MultiheadAttention"), 3, 1e-9);
    assert_near(positions_of("GRU"), 0, 1e-9);
    assert_near(positions_of("LSTM"), 0, 1e-9);
}

/* ---- Series -------------------------------------------------------------------------- */

/* Steps from second 2 on, one value a second. */
static struct growth growth_of(const double *values, size_t count)
{
    static struct series_point points[16];
    memset(&made, 0, sizeof made);
    for (size_t i = 0; i < count; i++)
        points[i] = (struct series_point){ 2 + (double)i, values[i], values[i] };
    const struct report_series s = {
        .metric = "rss", .subject = "", .points = points, .point_count = count
    };
    made.account = (struct step_account){ .known = true,
                                          .steps = 100,
                                          .startup_ns = 2e9,
                                          .wall_ns = 2e9 + 1e9 * (double)count };
    return series_growth(&made, &s);
}

static void a_few_points_in_a_row_are_growth(void **state)
{
    (void)state;
    const double five[] = { 600, 800, 1010, 1200, 1400 };
    struct growth g = growth_of(five, 5);
    assert_true(g.low_per_s > 0 && g.few);
    assert_near(g.late, 0.95, 0.01);
    assert_near(g.total, 800, 10);
    assert_true(isnan(growth_of(five, 3).total));
    /* One that goes down, and nobody is sure. */
    const double noisy[] = { 600, 800, 790, 1000 };
    assert_false(growth_of(noisy, 4).low_per_s > 0);
}

static void a_cache_is_told_from_a_leak_by_few_points_too(void **state)
{
    (void)state;
    const double fills[] = { 600, 900, 1000, 1020, 1030 };
    assert_true(growth_of(fills, 5).late < 0.1);
    const double leaks[] = { 600, 700, 800, 900, 1000, 1100 };
    const struct growth g = growth_of(leaks, 6);
    assert_false(g.few);
    assert_near(g.late, 1, 1e-9);
}

/* The odd point of each quarter is its median: 380 MiB in the first half, 190 in the other. */
static void four_odd_points_do_not_stop_a_leak(void **state)
{
    (void)state;
    const double leaks[] = { 500,  560,  700,  800,  940,  1000,
                             1100, 1250, 1300, 1400, 1440, 1600 };
    assert_near(growth_of(leaks, 12).late, 1, 0.15);
    const double fills[] = { 500,  760,  900,  1000, 1140, 1200,
                             1210, 1222, 1226, 1229, 1241, 1240 };
    assert_true(growth_of(fills, 12).late < 0.2);
}

/* The first steps took five of seven seconds. */
static void slow_first_steps_are_looked_at_where_few_others_are(void **state)
{
    (void)state;
    static struct series_point points[8];
    const struct report_series s = {
        .metric = "rss", .subject = "", .points = points, .point_count = 8
    };
    const double leaks[] = { 300, 600, 700, 800, 900, 1000, 1100, 1200 };
    const double fills[] = { 300, 600, 900, 1100, 1190, 1195, 1198, 1200 };
    memset(&made, 0, sizeof made);
    made.account = (struct step_account){
        .known = true, .startup_ns = 1e9, .warmup_ns = 4.5e9, .wall_ns = 7e9
    };
    for (size_t i = 0; i < 8; i++)
        points[i] = (struct series_point){ (double)i, leaks[i], leaks[i] };
    assert_near(series_growth(&made, &s).total, 600, 1e-6);
    assert_near(series_growth(&made, &s).late, 1, 1e-6);
    made.account.warmup_ns = 2.5e9; /* enough of the others: 4, 5, 6 and 7 s */
    assert_near(series_growth(&made, &s).total, 300, 1e-6);
    made.account.warmup_ns = 4.5e9;
    for (size_t i = 0; i < 8; i++)
        points[i].mean = fills[i];
    assert_true(series_growth(&made, &s).late < 0.1);
    made.account.startup_ns = 5e9; /* nobody looked at three moments of the loop */
    made.account.warmup_ns = 0;
    assert_true(isnan(series_growth(&made, &s).total));
}

/* 20 steps a second at first, 5 from the fourth second on: so does what it keeps. */
static void a_program_that_others_slow_down_leaks_as_before(void **state)
{
    (void)state;
    const double slows[] = { 600, 800, 1000, 1050, 1100, 1150, 1200 };
    assert_true(growth_of(slows, 7).late < 0.3);
    static struct series_point points[7];
    const struct report_series s = {
        .metric = "rss", .subject = "", .points = points, .point_count = 7
    };
    for (size_t i = 0; i < 7; i++)
        points[i] = (struct series_point){ 2 + (double)i, slows[i], slows[i] };
    double at_s = 2;
    made.series.per_point = 1;
    for (size_t i = 0; i < 64; i++) {
        made.series.points[i].time_ns = (int64_t)(at_s * 1e9);
        at_s += at_s < 4 ? 0.05 : 0.2;
    }
    made.series.count = 64;
    assert_near(series_growth(&made, &s).late, 1, 0.1);
    assert_near(series_growth(&made, &s).total, 600, 10);
    made.series.partial = true; /* then nobody knows */
    assert_true(series_growth(&made, &s).late < 0.3);
}

/* 100 MiB a second, looked at `count` times in steps of 5 s; the heap was highest, with so
 * many MiB, at `peak_s`. */
static double growth_with_peak(int count, double peak_s, uint64_t peak_mb)
{
    static struct series_point points[32];
    static struct report_series series;
    static struct run run;
    struct facts f;
    memset(&made, 0, sizeof made);
    memset(&run, 0, sizeof run);
    for (int i = 0; i < count; i++) {
        const double at_s = 4.0 * i / (count - 1);
        points[i] = (struct series_point){ 2 + at_s, 600 + 100 * at_s,
                                           600 + 100 * at_s };
    }
    series = (struct report_series){
        .metric = "rss", .subject = "", .points = points, .point_count = (size_t)count
    };
    made.run = &run;
    made.monitors.series = &series;
    made.monitors.series_count = 1;
    made.start_ns = 1000;
    made.account = (struct step_account){
        .known = true, .steps = 100, .startup_ns = 2e9, .wall_ns = 7e9
    };
    made.allocations.known = true;
    made.allocations.peak_ns = 1000 + (int64_t)(peak_s * 1e9);
    made.allocations.peak_bytes = peak_mb << 20;
    facts_init(&f);
    facts_of_memory(&made, &f);
    arena_release(&made.arena);
    return f.v[FACT_GROWTH_MB];
}

/* A run of `s` seconds without steps that grew all the time; one site's blocks are left
 * from all of it, or were let go of. */
static double growth_without_steps(double s, bool leaves)
{
    static struct series_point points[100];
    static struct report_series series;
    static struct alloc_site site;
    static struct run run;
    struct facts f;
    memset(&made, 0, sizeof made);
    memset(&run, 0, sizeof run);
    for (int i = 0; i < 100; i++)
        points[i] = (struct series_point){ s * i / 100, 100 + 5 * i, 100 + 5 * i };
    series = (struct report_series){
        .metric = "rss", .subject = "", .points = points, .point_count = 100
    };
    site = (struct alloc_site){ .at = { "keep", "", 0, "", 0 },
                                .zone = "",
                                .leak = leaves,
                                .live_bytes = leaves ? 400 << 20 : 0 };
    made.run = &run;
    made.monitors.series = &series;
    made.monitors.series_count = 1;
    made.start_ns = 1000;
    made.end_ns = 1000 + (int64_t)(s * 1e9);
    made.allocations.known = true;
    made.allocations.sites = &site;
    made.allocations.site_count = 1;
    made.allocations.peak_bytes = 500u << 20;
    made.allocations.live_bytes = site.live_bytes;
    facts_init(&f);
    facts_of_memory(&made, &f);
    arena_release(&made.arena);
    /* What was let go of is not known to have been nothing. */
    assert_int_equal(isnan(f.v[FACT_LEAK_MB]), !leaves);
    return f.v[FACT_GROWTH_MB];
}

/* A program that needs its data grows too. */
static void growth_without_steps_takes_more_to_be_a_leak(void **state)
{
    (void)state;
    assert_true(isnan(growth_without_steps(3, true)));
    assert_true(isnan(growth_without_steps(59, true)));
    assert_true(isnan(growth_without_steps(600, false)));
    assert_near(growth_without_steps(600, true), 295, 10);
}

static void few_points_count_when_the_heap_agrees(void **state)
{
    (void)state;
    assert_near(growth_with_peak(5, 6.1, 400), 400, 1);
    assert_near(growth_with_peak(5, 5.9, 400), 0, 0);
}

/* Batches of many sizes: the heap swung by more than memory grew, and was highest in the
 * middle. */
static void a_slope_through_swings_is_no_growth(void **state)
{
    (void)state;
    assert_near(growth_with_peak(32, 4, 1000), 0, 0);
    assert_near(growth_with_peak(32, 6.1, 1000), 400, 1);
    assert_near(growth_with_peak(32, 4, 700), 400, 1);
}

static void what_imports_allocate_is_no_steps(void **state)
{
    (void)state;
    struct facts f;
    struct run run;
    struct alloc_zone zones[] = { { "backward", 400, 200 << 20, 0, 0 },
                                  { "import torch", 1000000, 100 << 20, 0, 0 },
                                  { "", 100, 0, 0, 0 } };
    memset(&made, 0, sizeof made);
    memset(&run, 0, sizeof run);
    made.run = &run;
    made.account = (struct step_account){ .known = true, .steps = 100 };
    made.allocations = (struct allocations){ .known = true,
                                             .count = 1000500,
                                             .bytes = 300 << 20,
                                             .zones = zones,
                                             .zone_count = 3 };
    facts_init(&f);
    facts_of_memory(&made, &f);
    arena_release(&made.arena);
    assert_near(f.v[FACT_ALLOCS_PER_STEP], 5, 1e-9);
    assert_near(f.v[FACT_ALLOC_MB_PER_STEP], 2, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_spin_leave_their_core_free),
        cmocka_unit_test(barriers_without_a_name_are_spinning_too),
        cmocka_unit_test(doubles_of_numpys_fft_are_not_the_programs),
        cmocka_unit_test(doubles_beside_the_training_are_not_its_precision),
        cmocka_unit_test(the_allocator_has_several_names),
        cmocka_unit_test(a_yield_is_mostly_the_kernels),
        cmocka_unit_test(only_the_loop_works_for_its_steps),
        cmocka_unit_test(who_calls_a_kernel_computes_nothing),
        cmocka_unit_test(a_few_points_in_a_row_are_growth),
        cmocka_unit_test(a_cache_is_told_from_a_leak_by_few_points_too),
        cmocka_unit_test(four_odd_points_do_not_stop_a_leak),
        cmocka_unit_test(a_program_that_others_slow_down_leaks_as_before),
        cmocka_unit_test(slow_first_steps_are_looked_at_where_few_others_are),
        cmocka_unit_test(what_imports_allocate_is_no_steps),
        cmocka_unit_test(waits_for_the_lock_before_the_loop_are_no_steps),
        cmocka_unit_test(cpu_time_of_the_main_thread_is_the_loops),
        cmocka_unit_test(another_member_works_for_itself),
        cmocka_unit_test(pieces_of_the_main_process_are_its_own),
        cmocka_unit_test(a_recurrence_has_the_rows_of_its_samples),
        cmocka_unit_test(growth_without_steps_takes_more_to_be_a_leak),
        cmocka_unit_test(few_points_count_when_the_heap_agrees),
        cmocka_unit_test(a_slope_through_swings_is_no_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
