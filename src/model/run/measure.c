/* measure.c: see measure.h. */
#include "model/run/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "base/human.h"
#include "base/moment.h"
#include "base/scan.h"
#include "model/ref/blas.h"
#include "model/ref/data.h"
#include "model/ref/dataset.h"
#include "model/ref/encode.h"

enum { LEAST_RUNS = 3 };

const char *pass_name(enum pass pass)
{
    static const char *const names[PASS_COUNT] = { "inference", "forward", "backward",
                                                   "training_step" };
    return names[pass];
}

static clockid_t clock_of(const struct measure_options *o)
{
    return o->cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
}

static double ms_of(clockid_t clock)
{
    return (double)moment_ns(clock) / 1e6;
}

/* For budgets: those are wall time. */
static double now_ms(void)
{
    return ms_of(CLOCK_MONOTONIC);
}

/* ---- Memory ---------------------------------------------------------------------------- */

/* A line of /proc/self/status in bytes: "VmHWM:", "VmRSS:". NaN unknown. */
static double status_bytes(const char *key)
{
    struct buf text = BUF_INIT;
    double found = NAN;
    if (file_read_all("/proc/self/status", 1 << 16, &text) == 0) {
        struct scan s = { text.data, text.data + text.len };
        uint64_t kib;
        do
            if (scan_word(&s, key) && scan_u64(&s, &kib)) {
                found = (double)kib * 1024;
                break;
            }
        while (scan_next_line(&s));
    }
    buf_release(&text);
    return found;
}

/* From here on the high-water mark counts; where the kernel does not let us reset it, it
 * is not lower than what there is now anyway. */
static double memory_baseline(void)
{
    const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "5", 1);
        (void)close(fd);
    }
    return status_bytes("VmRSS:");
}

/* ---- Running ------------------------------------------------------------------------------ */

struct series {
    double *values[PASS_COUNT];
    size_t count, cap;
};

static int series_init(struct series *s, size_t cap)
{
    *s = (struct series){ .cap = cap };
    for (int p = 0; p < PASS_COUNT; p++)
        if (!(s->values[p] = calloc(cap, sizeof(double))))
            return -ENOMEM;
    return 0;
}

static void series_release(struct series *s)
{
    for (int p = 0; p < PASS_COUNT; p++)
        free(s->values[p]);
}

struct clocks {
    struct part_time parts[PART_COUNT], inner[INNER_COUNT];
};

static struct clocks clocks_read(const struct refnet *net)
{
    struct clocks c;
    memcpy(c.parts, net->times, sizeof c.parts);
    memcpy(c.inner, net->inner, sizeof c.inner);
    return c;
}

static void clocks_set(struct refnet *net, const struct clocks *c)
{
    memcpy(net->times, c->parts, sizeof c->parts);
    memcpy(net->inner, c->inner, sizeof c->inner);
}

static double ms_between(struct part_time before, struct part_time now)
{
    return (double)(now.forward_ns - before.forward_ns + now.backward_ns -
                    before.backward_ns) /
           1e6;
}

/* Times of parts since `before`, where a step has just ended; the least are kept. */
static void note_parts(const struct refnet *net, const struct clocks *before,
                       struct measurement *m)
{
    for (int p = 0; p < PART_COUNT; p++)
        m->best_parts[p] = fmin(m->best_parts[p],
                                ms_between(before->parts[p], net->times[p]));
    for (int i = 0; i < INNER_COUNT; i++)
        m->best_inner[i] = fmin(m->best_inner[i],
                                ms_between(before->inner[i], net->inner[i]));
}

/* One inference, whose parts are not counted, and one training step. */
static int run_once(struct refnet *net, const struct batch *batch,
                    double ret_ms[PASS_COUNT], struct measurement *m, double *ret_loss)
{
    double loss;
    const struct clocks before = clocks_read(net);
    net->training = false;
    const double start = ms_of(net->clock);
    int rc = refnet_forward(net, batch, &loss);
    ret_ms[PASS_INFERENCE] = ms_of(net->clock) - start;
    clocks_set(net, &before);
    net->training = true;
    sonde_step();
    const double begin = ms_of(net->clock);
    rc = rc < 0 ? rc : refnet_forward(net, batch, ret_loss);
    const double forward = ms_of(net->clock);
    rc = rc < 0 ? rc : refnet_backward(net);
    const double backward = ms_of(net->clock);
    if (rc == 0)
        refnet_update(net, 1e-3F);
    ret_ms[PASS_FORWARD] = forward - begin;
    ret_ms[PASS_BACKWARD] = backward - forward;
    ret_ms[PASS_STEP] = ms_of(net->clock) - begin;
    note_parts(net, &before, m);
    return rc;
}

static void keep(struct measurement *m, const struct series *s)
{
    m->runs = s->count;
    m->kept_count = s->count < MEASURE_KEPT ? s->count : MEASURE_KEPT;
    for (int p = 0; p < PASS_COUNT; p++) {
        memcpy(m->kept[p], s->values[p], m->kept_count * sizeof(double));
        if (summary_compute(s->values[p], s->count, 42, &m->passes[p]) < 0)
            m->passes[p] = (struct summary){ .n = 0, .mean = NAN, .std = NAN };
    }
}

static void keep_parts(struct measurement *m, const struct refnet *net, size_t steps)
{
    for (int p = 0; p < PART_COUNT; p++) {
        m->parts[p][0] = (double)net->times[p].forward_ns / 1e6 / (double)steps;
        m->parts[p][1] = (double)net->times[p].backward_ns / 1e6 / (double)steps;
    }
}

static bool enough(const struct measure_options *o, const struct series *s,
                   double start)
{
    return s->count >= LEAST_RUNS && o->budget_s > 0 &&
           now_ms() - start > o->budget_s * 1e3;
}

static int run_series(struct refnet *net, const struct batch *batch,
                      const struct measure_options *o, struct series *s,
                      struct measurement *m)
{
    const double start = now_ms();
    double ms[PASS_COUNT], loss = NAN;
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < o->warmup; i++) {
        rc = run_once(net, batch, ms, m, &loss);
        if (i == 0)
            m->first_loss = loss;
        if (o->budget_s > 0 && now_ms() - start > o->budget_s * 250)
            break; /* a quarter of the budget is enough to get warm */
    }
    clocks_set(net, &(struct clocks){ 0 });
    for (int p = 0; p < PART_COUNT; p++)
        m->best_parts[p] = INFINITY;
    for (int i = 0; i < INNER_COUNT; i++)
        m->best_inner[i] = INFINITY;
    while (rc == 0 && s->count < s->cap && !(m->stopped = enough(o, s, start))) {
        rc = run_once(net, batch, ms, m, &loss);
        for (int p = 0; p < PASS_COUNT; p++)
            s->values[p][s->count] = ms[p];
        s->count++;
    }
    m->last_loss = loss;
    return rc;
}

static int prepare_data(const struct model_config *c, const struct measure_options *o,
                        struct data *data, struct measurement *m)
{
    struct model_config plain = *c;
    plain.encoding = SONDE_NO_ENCODING; /* timed apart */
    plain.encoding_dim = 0;
    int rc = o->dataset ? dataset_batch(o->dataset, c->batch, c->seed, data)
                        : data_synthetic(data, &plain, c->seed);
    if (rc < 0 || c->encoding == SONDE_NO_ENCODING)
        return rc;
    const double start = now_ms();
    rc = encode_graphs(&data->graphs, c->encoding, c->encoding_dim);
    m->encode_ms = now_ms() - start;
    return rc;
}

int measure_here(const struct model_config *config,
                 const struct measure_options *options,
                 struct measurement *ret_measurement)
{
    struct measurement m = { .encode_ms = NAN, .first_loss = NAN };
    struct refnet net = { .family = NULL };
    struct series series = { .count = 0 };
    struct data data = { .tokens = NULL };
    m.threads = blas_threads(options->threads);
    (void)snprintf(m.blas, sizeof m.blas, "%s", blas_name());
    int rc = prepare_data(config, options, &data, &m);
    const double before = memory_baseline();
    rc = rc < 0 ? rc : refnet_init(&net, config);
    net.clock = clock_of(options);
    rc = rc < 0 ? rc : series_init(&series, options->runs ? options->runs : 1);
    rc = rc < 0 ? rc : run_series(&net, &data.batch, options, &series, &m);
    if (rc == 0) {
        m.peak_bytes = status_bytes("VmHWM:") - before;
        m.tape_bytes = (double)net.tape.bytes;
        m.parameter_bytes = 4.0 * (double)net.count * sizeof(float);
        keep(&m, &series);
        keep_parts(&m, &net, series.count);
    }
    series_release(&series);
    if (net.family)
        refnet_release(&net);
    data_release(&data);
    if (rc == 0 && options->peaks_s > 0)
        rc = peaks_measure(options->peaks_s, &m.peaks);
    if (rc == 0)
        *ret_measurement = m;
    return rc;
}

int measure_product(size_t n, const struct measure_options *o,
                    struct measurement *ret_measurement)
{
    struct measurement m = { .threads = blas_threads(o->threads), .encode_ms = NAN };
    struct series series;
    float *a = calloc(3 * n * n, sizeof *a);
    int rc = a ? series_init(&series, o->runs ? o->runs : 1) : -ENOMEM;
    const double start = now_ms();
    (void)snprintf(m.blas, sizeof m.blas, "%s", blas_name());
    for (uint64_t i = 0; rc == 0 && i < o->warmup + series.cap; i++) {
        const double begin = ms_of(clock_of(o));
        blas_multiply(n, n, n, 1, (struct mat){ a, n, false },
                      (struct mat){ a + n * n, n, false }, 0, a + 2 * n * n, n);
        if (i < o->warmup)
            continue;
        for (int p = 0; p < PASS_COUNT; p++)
            series.values[p][series.count] = ms_of(clock_of(o)) - begin;
        series.count++;
        if ((m.stopped = enough(o, &series, start)))
            break;
    }
    if (rc == 0) {
        m.peak_bytes = 3.0 * (double)n * (double)n * sizeof *a;
        keep(&m, &series);
        series_release(&series);
        *ret_measurement = m;
    }
    free(a);
    return rc;
}

/* ---- In a child ----------------------------------------------------------------------------- */

struct answer {
    int rc;
    struct measurement measurement;
};

static void child(int fd, const struct model_config *config,
                  const struct measure_options *options)
{
    struct answer a = { 0 };
    a.rc = measure_here(config, options, &a.measurement);
    (void)fd_write_full(fd, &a, sizeof a);
    _exit(0);
}

static int explain(int status, const struct answer *a, ssize_t got,
                   char error[MEASURE_ERROR_LEN])
{
    if (got == sizeof *a && a->rc == 0)
        return 0;
    if (got == sizeof *a)
        (void)snprintf(error, MEASURE_ERROR_LEN, "%s",
                       a->rc == -ENOMEM ? "memory ran out"
                       : a->rc == SONDE_E_UNSUPPORTED
                           ? "encodings by eigenvectors need OpenBLAS (install "
                             "libopenblas0-pthread, or use --pe rwse)"
                           : error_text(a->rc));
    else if (WIFSIGNALED(status))
        (void)snprintf(
            error, MEASURE_ERROR_LEN, "the measuring process was killed by signal %d%s",
            WTERMSIG(status), WTERMSIG(status) == SIGKILL ? " (memory ran out?)" : "");
    else
        (void)snprintf(error, MEASURE_ERROR_LEN, "the measuring process ended early");
    return got == sizeof *a ? a->rc : -EIO;
}

int measure_in_child(const struct model_config *config,
                     const struct measure_options *options,
                     struct measurement *ret_measurement,
                     char ret_error[MEASURE_ERROR_LEN])
{
    int ends[2], status = 0;
    struct answer *a = calloc(1, sizeof *a);
    if (!a || pipe2(ends, O_CLOEXEC) < 0) {
        (void)snprintf(ret_error, MEASURE_ERROR_LEN, "%s", strerror(errno));
        free(a);
        return -EIO;
    }
    (void)fflush(NULL); /* what is buffered must not be written twice */
    const pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        child(ends[1], config, options);
    }
    (void)close(ends[1]);
    const ssize_t got = pid > 0 ? fd_read_full(ends[0], a, sizeof *a) : -1;
    (void)close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    const int rc = explain(status, a, got, ret_error);
    if (rc == 0)
        *ret_measurement = a->measurement;
    free(a);
    return rc;
}
