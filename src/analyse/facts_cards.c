/* facts_cards.c: facts about cards, from NVML; kernels come with CUPTI. */
#include <math.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/fact_series.h"
#include "analyse/report.h"

/* Mean over all cards of a metric; NaN without any. */
static double over_cards(const struct report *r, const char *metric, bool highest)
{
    double sum = 0;
    double most = NAN;
    size_t n = 0;
    for (size_t i = 0; i < r->monitors.series_count; i++) {
        const struct report_series *s = &r->monitors.series[i];
        if (strcmp(s->metric, metric) != 0 || !s->subject[0])
            continue;
        sum += s->avg;
        most = fmax(most, s->max);
        n++;
    }
    return !n ? NAN : highest ? most : sum / (double)n;
}

static const struct report_series *largest(const struct report *r, const char *metric)
{
    const struct report_series *best = NULL;
    for (size_t i = 0; i < r->monitors.series_count; i++) {
        const struct report_series *s = &r->monitors.series[i];
        if (strcmp(s->metric, metric) == 0 && (!best || s->max > best->max))
            best = s;
    }
    return best;
}

static void set_memory(struct report *r, struct facts *f)
{
    const struct report_series *used = largest(r, "gpu_run_memory");
    const struct growth g = series_growth(r, used);
    f->v[FACT_GPU_MEMORY_MB] = over_cards(r, "gpu_memory", true);
    f->v[FACT_GPU_MEMORY_SHARE] = over_cards(r, "gpu_memory_percent", true) / 100;
    f->v[FACT_GPU_GROWTH_MB] = g.low_per_s > 0 ? g.total : isnan(g.total) ? NAN : 0;
    f->v[FACT_GPU_GROWTH_LATE] = g.late;
    if (used)
        f->v[FACT_GPU_OWN] = used->max > 0;
}

void facts_of_cards(struct report *r, struct facts *f)
{
    if (r->run->meta.gpus >= 0)
        f->v[FACT_GPUS] = r->run->meta.gpus;
    if (!(f->v[FACT_GPUS] > 0))
        return;
    f->v[FACT_GPU_BUSY] = report_gpu_busy_share(r);
    if (r->phases.has_launch)
        f->v[FACT_LAUNCH_SHARE] = r->phases.launch_share;
    f->v[FACT_GPU_FOREIGN] = over_cards(r, "gpu_foreign", true);
    const double power = over_cards(r, "gpu_throttled_power", false);
    const double heat = over_cards(r, "gpu_throttled_heat", false);
    const double hardware = over_cards(r, "gpu_throttled_hardware", false);
    /* A card at its power limit works as it should; heat and hardware do not. */
    f->v[FACT_GPU_THROTTLED_SHARE] = fmax(heat, hardware) / 100;
    (void)power;
    set_memory(r, f);
}
