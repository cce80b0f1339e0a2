/* api.c: the public functions. Each goes to the recorder of the process, which may
 * live in another copy of this library (copies.h). */
#include <errno.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <sonde/sonde.h>
#include <sonde/tables.h>

#include "record/copies.h"

void sonde_begin_slow_(struct sonde_site *site)
{
    copies_table()->begin(site, &sonde_lane_);
}

void sonde_end_slow_(struct sonde_site *site)
{
    copies_table()->end(site, &sonde_lane_);
}

struct sonde_site *sonde_site_named(const char *name, int phase, const char *component,
                                    const char *category, const char *tags)
{
    struct site_spec spec = { .name = name ? name : "",
                              .component = component,
                              .category = category,
                              .tags = tags,
                              .phase = phase };
    return copies_table()->site_named(&spec);
}

void sonde_site_enable(struct sonde_site *site, int enabled)
{
    copies_table()->site_enable(site, enabled);
}

/* Values, marks and steps test the gate themselves: off must stay cheap. */
void sonde_value(const char *name, double value)
{
    if (sonde_on_())
        copies_table()->value(name, VALUE_ZONE, value);
}

void sonde_counter(const char *name, double value)
{
    if (sonde_on_())
        copies_table()->value(name, VALUE_COUNTER, value);
}

void sonde_metric(const char *name, double value)
{
    if (sonde_on_())
        copies_table()->value(name, VALUE_METRIC, value);
}

void sonde_mark(const char *name)
{
    if (sonde_on_())
        copies_table()->mark(name);
}

void sonde_step(void)
{
    sonde_step_samples(0);
}

void sonde_step_samples(uint64_t samples)
{
    /* Counted even while off: windows of steps. */
    copies_table()->step(samples & STEP_SAMPLES_MASK);
}

static void other_step(unsigned kind, uint64_t samples)
{
    copies_table()->step((uint64_t)kind << STEP_KIND_SHIFT |
                         (samples & STEP_SAMPLES_MASK));
}

void sonde_step_end(void)
{
    other_step(STEP_END, 0);
}

void sonde_step_ended(uint64_t ticks)
{
    const uint64_t now = sonde_ticks();
    const uint64_t ago = ticks < now ? (now - ticks) >> STEP_AGO_SHIFT : 0;
    other_step(STEP_END, ago < STEP_SAMPLES_MASK ? ago : STEP_SAMPLES_MASK);
}

void sonde_step_cancel(uint64_t samples)
{
    other_step(STEP_CANCEL, samples);
}

void sonde_step_add(uint64_t samples)
{
    other_step(STEP_SAMPLES, samples);
}

void sonde_tag(const char *key, const char *value)
{
    copies_table()->note(key, value, SITE_TAG);
}

void sonde_param(const char *key, const char *value)
{
    copies_table()->note(key, value, SITE_PARAM);
}

void sonde_thread_name(const char *name)
{
    copies_table()->thread_name(name);
}

void sonde_operation_begin(struct sonde_operation *op, const char *name, int phase,
                           const char *component, const char *tags)
{
    copies_table()->operation_begin(op, name, phase, component, tags);
}

void sonde_operation_disabled(struct sonde_operation *op, const char *name)
{
    memset(op, 0, sizeof *op);
    op->name = sonde_site_named(name, 0, NULL, "operation", NULL)->name; /* a copy */
    op->start_s = op->duration_s = op->cpu_s = op->process_cpu_s = NAN;
    op->mem_before_mb = op->mem_after_mb = op->mem_peak_mb = NAN;
}

void sonde_operation_end(struct sonde_operation *op)
{
    (void)copies_table()->operation_end(op, -INFINITY);
}

int sonde_operation_end_if_memory(struct sonde_operation *op, double threshold_mb)
{
    return copies_table()->operation_end(op, threshold_mb);
}

void sonde_span_begin(struct sonde_span *span, struct sonde_site *site)
{
    copies_table()->span_begin(span, site);
}

void sonde_span_suspend(struct sonde_span *span)
{
    copies_table()->span_change(span, SPAN_SUSPEND);
}

void sonde_span_resume(struct sonde_span *span)
{
    copies_table()->span_change(span, SPAN_RESUME);
}

void sonde_span_end(struct sonde_span *span)
{
    copies_table()->span_change(span, SPAN_END);
}

int sonde_session_start(const struct sonde_options *options)
{
    return copies_table()->session_start(options);
}

int sonde_session_stop(void)
{
    return copies_table()->session_stop();
}

int sonde_session_active(void)
{
    return copies_table()->session_active();
}

const char *sonde_session_directory(void)
{
    return copies_table()->session_directory();
}

const char *sonde_session_error(void)
{
    return copies_table()->session_error();
}

void sonde_pause(void)
{
    copies_table()->pause(1);
}

void sonde_resume(void)
{
    copies_table()->pause(0);
}

int sonde_recording(void)
{
    return copies_table()->recording();
}

uint64_t sonde_lost(void)
{
    return copies_table()->lost();
}

/* The recorder may live in an older copy, whose table ends earlier. */
static bool has_monitors(const struct table *t)
{
    return t->size >= offsetof(struct table, monitor_stats) + sizeof t->monitor_stats;
}

int sonde_monitor_start(uint64_t interval_ns)
{
    const struct table *t = copies_table();
    return has_monitors(t) ? t->monitor_start(interval_ns) : -EOPNOTSUPP;
}

int sonde_monitor_stop(void)
{
    const struct table *t = copies_table();
    return has_monitors(t) ? t->monitor_stop() : -ENOENT;
}

int sonde_monitor_stats(const char *metric, const char *subject,
                        struct sonde_monitor_summary *ret_stats)
{
    const struct table *t = copies_table();
    return has_monitors(t) ? t->monitor_stats(metric, subject, ret_stats) : -ENOENT;
}

static bool has_alerts(const struct table *t)
{
    return t->size >= offsetof(struct table, alert_error) + sizeof t->alert_error;
}

int sonde_alert_add(const char *expression,
                    void (*fn)(const struct sonde_alert *alert, void *arg), void *arg)
{
    const struct table *t = copies_table();
    return has_alerts(t) ? t->alert_add(expression, fn, arg) : -EOPNOTSUPP;
}

const char *sonde_alert_error(void)
{
    const struct table *t = copies_table();
    return has_alerts(t) ? t->alert_error() : "an older libsonde records here";
}

int sonde_monitor_current(const char *metric, const char *subject, double *ret_value)
{
    struct sonde_monitor_summary stats;
    const int rc = sonde_monitor_stats(metric, subject, &stats);
    if (rc == 0)
        *ret_value = stats.last;
    return rc;
}

/* Weak: a static program has none, and no preloaded library either. */
extern void *dlsym(void *, const char *) __attribute__((weak));

/* libsonde-preload.so has the heap; it is there under `sonde run`, before we are asked. */
void sonde_heap_snapshot(const char *name)
{
    static void (*take)(const char *);
    static int looked;
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        take = dlsym ? (void (*)(const char *))dlsym(RTLD_DEFAULT, "sonde_heap_take_")
                     : NULL;
        __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    }
    if (take)
        take(name);
}

const char *sonde_phase_name(int phase)
{
    static const char *const names[SONDE_PHASE_COUNT] = {
        "",           "data_loading", "preprocessing",  "augmentation",
        "collate",    "transfer",     "forward",        "backward",
        "gradient",   "optimizer",    "sync",           "communication",
        "evaluation", "checkpoint",   "model_creation", "other"
    };
    return phase >= 0 && phase < SONDE_PHASE_COUNT ? names[phase] : NULL;
}
