/* fake_training.h: a small training run made of stand-ins, the same every time.
 *
 * Process 4242 trains for 10 s on its main thread and decodes on a second one;
 * process 4243, a worker, decodes too. See training_make().
 */
#ifndef SONDE_TESTS_FAKE_TRAINING_H
#define SONDE_TESTS_FAKE_TRAINING_H

#include "fake_run.h"

#include "analyse/report.h"

#define TRAINING_START INT64_C(1700000000000000000)
#define AT(seconds)    (TRAINING_START + (int64_t)((seconds)*1e9))

enum { TRAINING_STEPS = 100, WORKER_CALLS = 300 };

struct training {
    struct trace *main, *worker;
    unsigned train, epoch, load, forward, attention, backward, optimizer, save;
    unsigned main_decode, worker_decode, request;
    double worker_ns[WORKER_CALLS];
    double main_ns[WORKER_CALLS];
    double step_ns[TRAINING_STEPS - 1];
    struct run *run;
    struct report *report;
};

static const char training_json[] =
    "{\"schema\":\"sonde.run/1\",\"id\":\"7f3a0001\",\"name\":\"base\","
    "\"command\":[\"./train\",\"--lr\",\"0.1\"],\"cwd\":\"/home/me\","
    "\"started_ns\":1700000000000000000,\"ended_ns\":1700000010000000000,"
    "\"exit\":{\"code\":%s,\"signal\":%s,\"cause\":\"%s\"},"
    "\"pid\":4242,\"supervisor\":{\"pid\":4241,\"proc_start\":1},\"host\":\"elsewhere\","
    "\"hardware\":{\"cpu\":\"EPYC\",\"cores\":16,\"memory_mb\":131072,\"gpus\":[]},"
    "\"environment\":{\"git\":{\"commit\":\"abc\",\"branch\":\"main\",\"dirty\":null},"
    "\"python\":null,\"torch\":null,\"cuda\":null,\"driver\":null},"
    "\"tags\":{\"team\":\"x\"},\"params\":{\"lr\":0.1},\"level\":\"detailed\","
    "\"rank\":0,\"world_size\":1,\"parent_run\":null,"
    "\"rusage\":{\"cpu_user_s\":14,\"cpu_system_s\":1,\"max_rss_mb\":512.5,"
    "\"minor_faults\":1,\"major_faults\":0},"
    "\"overhead\":{\"supervisor_cpu_s\":0.031,\"supervisor_rss_mb\":4.5},"
    "\"options\":{},\"notes\":[],\"sonde\":\"0.1.0\"}";

static inline void training_zones(struct training *t)
{
    struct trace *m = t->main;
    t->train = fake_node(m, 0, fake_site(m, "train", 0, "src/train.c", 10));
    t->epoch = fake_node(m, t->train, fake_site(m, "epoch", 0, "src/train.c", 12));
    t->load = fake_node(m, t->epoch,
                        fake_site(m, "load", SONDE_DATA_LOADING, "src/data.c", 20));
    t->forward = fake_node(m, t->epoch,
                           fake_site(m, "forward", SONDE_FORWARD, "src/model.c", 30));
    t->attention = fake_node(
        m, t->forward,
        fake_site_full(m, (struct trace_site){ .name = "attention",
                                               .file = "src/model.c",
                                               .line = 44,
                                               .component = "net",
                                               .category = "kernel",
                                               .tags = "heads=8,kind=flash" }));
    t->backward = fake_node(
        m, t->epoch, fake_site(m, "backward", SONDE_BACKWARD, "src/model.c", 60));
    t->optimizer = fake_node(m, t->epoch,
                             fake_site(m, "adamw", SONDE_OPTIMIZER, "src/optim.c", 7));
    t->save = fake_node(m, 0,
                        fake_site(m, "save", SONDE_CHECKPOINT, "src/train.c", 90));
    fake_durations(m, t->train, (double[]){ 9.5e9 }, 1);
    fake_durations(m, t->epoch, (double[]){ 4.6e9, 4.7e9 }, 2);
    fake_calls(m, t->load, 100, 20e6);
    fake_calls(m, t->forward, 100, 40e6);
    fake_calls(m, t->attention, 200, 12e6);
    fake_calls(m, t->backward, 100, 25e6);
    fake_calls(m, t->optimizer, 100, 5e6);
    fake_durations(m, t->save, (double[]){ 0.2e9 }, 1);
    m->nodes[t->save].op_count = 1;
    m->nodes[t->save].op_cpu_ns = 0.15e9;
    m->nodes[t->save].mem_before_mb = 100;
    m->nodes[t->save].mem_after_mb = 120;
    m->nodes[t->save].mem_peak_mb = 150.5;
    for (unsigned n = t->train; n <= t->save; n++) {
        m->nodes[n].first_ns = AT(0.2);
        m->nodes[n].last_ns = AT(9.7);
    }
}

static inline unsigned training_decode(struct trace *trace, unsigned root, double *ns,
                                       size_t count)
{
    const unsigned node = fake_node(
        trace, root,
        fake_site_full(trace, (struct trace_site){ .name = "decode",
                                                   .phase = SONDE_PREPROCESSING,
                                                   .file = "src/data.c",
                                                   .line = 33,
                                                   .component = "loader" }));
    fake_durations(trace, node, ns, count);
    trace->nodes[node].first_ns = AT(0.4);
    trace->nodes[node].last_ns = AT(9.0);
    return node;
}

/* Lengths that differ, from a formula anybody can repeat. */
static inline void training_lengths(struct training *t)
{
    for (int i = 0; i < WORKER_CALLS; i++) {
        t->main_ns[i] = 10e6 + (double)(i * 7919 % 1000) * 1e4;
        t->worker_ns[i] = 2e6 + (double)(i * 104729 % 5000) * 1e4;
    }
    for (int i = 0; i < TRAINING_STEPS - 1; i++)
        t->step_ns[i] = i == 49 ? 500e6 : 88e6 + (double)(i * 31 % 7) * 1e6;
}

static inline void training_steps(struct training *t)
{
    struct trace *m = t->main;
    int64_t now = AT(0.3);
    m->info.steps = TRAINING_STEPS;
    fake_durations(m, NODE_STEP, t->step_ns, TRAINING_STEPS - 1);
    m->lanes[0].steps = TRAINING_STEPS;
    m->lanes[0].samples = TRAINING_STEPS * 32;
    for (int i = 0; i < TRAINING_STEPS; i++) {
        fake_event(m, (struct trace_event){
                          .kind = TRACE_STEP, .time_ns = now, .number = 32 });
        now += i < TRAINING_STEPS - 1 ? (int64_t)t->step_ns[i] : 0;
    }
}

static inline void training_traces(struct training *t)
{
    t->main = fake_trace("0001-4242-a.sonde", 4242);
    t->worker = fake_trace("0002-4243-b.sonde", 4243);
    (void)snprintf(t->worker->info.role, sizeof(t->worker->info.role), "worker");
    t->main->info.start_ns = AT(0.1);
    t->main->info.last_ns = AT(9.9);
    t->main->info.events = 2002;
    t->main->info.exited = true;
    t->main->info.event_cost_ns = 25;
    t->main->info.wait_ns = 4.91e6;
    t->worker->info.start_ns = AT(0.5);
    t->worker->info.last_ns = AT(9.5);
    t->worker->info.events = 600;
    t->worker->info.clock_error_ns = 70;
    fake_lane(t->main, 0, 4242, "train")->last_time_ns = AT(9.9);
    t->main->lanes[0].events = 1600;
    fake_lane(t->main, 1, 4250, "loader")->last_time_ns = AT(9.8);
    fake_lane(t->worker, 0, 4243, "train")->last_time_ns = AT(9.5);
    training_lengths(t);
    training_zones(t);
    t->main_decode = training_decode(t->main, 1, t->main_ns, WORKER_CALLS);
    t->worker_decode = training_decode(t->worker, 0, t->worker_ns, WORKER_CALLS);
    t->request = fake_node(t->main, NODE_SPANS,
                           fake_site(t->main, "request", 0, "", 0));
    fake_calls(t->main, t->request, 4, 30e6);
    t->main->nodes[t->request].suspended_ns = 80e6;
    training_steps(t);
    fake_value(t->main, VALUE_METRIC, TRACE_NO_NODE, "loss", (double[]){ 2, 0.5 }, 2,
               AT(9.6));
    fake_value(t->worker, VALUE_METRIC, TRACE_NO_NODE, "loss", (double[]){ 7 }, 1,
               AT(3));
    fake_value(t->main, VALUE_COUNTER, TRACE_NO_NODE, "queue", (double[]){ 1, 4, 2 }, 3,
               AT(9));
    fake_value(t->main, VALUE_ZONE, t->load, "batch", (double[]){ 32, 32, 16 }, 3,
               AT(9));
    (void)fake_site_full(
        t->main, (struct trace_site){ .name = "team", .tags = "y", .flags = SITE_TAG });
    (void)fake_site_full(
        t->main,
        (struct trace_site){ .name = "depth", .tags = "12", .flags = SITE_PARAM });
}

/* SIGKILL at 10 s: train › epoch › forward open on the main thread, decode in the
 * worker; the reader has counted them as truncated. */
static inline void training_kill(struct training *t)
{
    struct trace *m = t->main;
    m->info.exited = false;
    fake_open(m, &m->lanes[0], t->train, AT(0.2));
    fake_open(m, &m->lanes[0], t->epoch, AT(5.1));
    fake_open(m, &m->lanes[0], t->forward, AT(9.875));
    fake_open(t->worker, &t->worker->lanes[0], t->worker_decode, AT(9.49));
    m->nodes[t->train].truncated = m->nodes[t->epoch].truncated = 1;
    m->nodes[t->forward].truncated = 1;
    t->worker->nodes[t->worker_decode].truncated = 1;
}

enum training_end { ENDS_WELL, IS_KILLED };

static inline void training_open(struct training *t, const char *json)
{
    const char *dir = fake_run_dir("7f3a0001", json);
    fake_run_files(dir);
    assert_int_equal(run_open(dir, &t->run), 0);
    t->run->note_count = 0; /* "no clock table": true of every stand-in */
    assert_int_equal(report_build(t->run, &t->report), 0);
}

static inline void training_make(struct training *t, enum training_end end)
{
    char json[4096];
    *t = (struct training){ 0 };
    training_traces(t);
    if (end == IS_KILLED)
        training_kill(t);
    (void)snprintf(json, sizeof(json), training_json, end == IS_KILLED ? "null" : "0",
                   end == IS_KILLED ? "\"SIGKILL\"" : "null",
                   end == IS_KILLED ? "oom_cgroup" : "ok");
    training_open(t, json);
}

static inline void training_free(struct training *t)
{
    report_free(t->report);
    run_free(t->run);
    assert_int_equal(fake_opened, fake_freed);
}

/* The operation of that name, by tree order; NULL without. */
static inline const struct op *training_op(const struct training *t, const char *name)
{
    for (size_t i = 0; i < t->report->ops.order_count; i++) {
        const struct op *op = &t->report->ops.ops[t->report->ops.order[i]];
        if (strcmp(op->name, name) == 0)
            return op;
    }
    return NULL;
}

#endif
