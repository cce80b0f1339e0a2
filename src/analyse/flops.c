/* flops.c: the floating-point operations a program told of. See flops.h. */
#include "analyse/flops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char key[] = "flops_per_step", total_key[] = "flops";

static double of_values(const struct op_value *list, const char *name)
{
    for (const struct op_value *v = list; v; v = v->next)
        if (strcmp(v->name, name) == 0 && v->last > 0)
            return v->last;
    return NAN;
}

static double of_params(const struct run_pair *params, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(params[i].key, key) != 0)
            continue;
        char *end;
        const double value = strtod(params[i].value, &end);
        return *end == '\0' && isfinite(value) && value > 0 ? value : NAN;
    }
    return NAN;
}

double report_flops_per_step(const struct report *report)
{
    double flops = of_values(report->metrics, key);
    if (isnan(flops))
        flops = of_values(report->counters, key);
    if (isnan(flops))
        flops = of_params(report->params, report->param_count);
    return flops;
}

double report_flops_per_s(const struct report *report)
{
    return report_flops_per_step(report) * step_rate_per_s(&report->steps);
}

double report_flops(const struct report *report)
{
    double flops = of_values(report->metrics, total_key);
    if (isnan(flops))
        flops = of_values(report->counters, total_key);
    if (isnan(flops) && report->steps.calls)
        flops = report_flops_per_step(report) * (double)report->steps.calls;
    return flops;
}
