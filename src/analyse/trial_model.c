/* trial_model.c: see trial_model.h. */
#include "analyse/trial_model.h"

#include <math.h>
#include <string.h>

static const struct report_forecast *forecast_of(const struct report *r,
                                                 const struct trial_entry *t)
{
    const struct report_forecast *f = r->forecasts;
    while (f && (t->finding[0] || strcmp(f->text, t->asked) != 0))
        f = f->next;
    return f;
}

static const struct finding *finding_of(const struct report *r,
                                        const struct trial_entry *t)
{
    return t->finding[0] ? finding_by_id(&r->diagnosis, t->finding) : NULL;
}

bool trial_is_of_loop(const struct report *r, const struct trial_entry *t)
{
    const struct finding *one = finding_of(r, t);
    const bool asked = strstr(t->asked, "evaluation=") ||
                       strstr(t->asked, "checkpoint=") || strstr(t->asked, "batch=");
    return !isnan(t->loop_ns) && (asked || (one && one->gain_of == GAIN_OF_LOOP));
}

double trial_modelled_ns(const struct report *r, const struct trial_entry *t, bool loop)
{
    const struct report_forecast *f = forecast_of(r, t);
    const double now = loop ? account_loop_ns(&r->account) : r->account.mean_ns;
    if (f)
        return loop ? f->loop.loop_ns : f->forecast.step_ns;
    const struct finding *one = finding_of(r, t);
    return one && (one->gain_of == GAIN_OF_LOOP) == loop ? now * (1 - one->gain.mid)
                                                         : NAN;
}
