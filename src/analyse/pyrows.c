/* pyrows.c: provenance of what the Python layer saw. */
#include "analyse/parts.h"

#include "base/buf.h"

static const char *kept(struct report *r, struct buf *b)
{
    const char *text = b->error ? NULL : arena_strdup(&r->arena, b->data);
    buf_release(b);
    return text ? text : "";
}

static const char *missing_layer(struct report *r)
{
    const struct py_layer *l = &r->layer;
    struct buf b = BUF_INIT;
    buf_printf(&b, "the Python layer was not in process %u%s%s%s", l->without,
               l->why_without[0] ? ": " : "", l->why_without,
               l->why_without[0]
                   ? ""
                   : ": --no-python, -I, -E or -S, an emptied environment, or an "
                     "interpreter it was not built for");
    return kept(r, &b);
}

static const char *layer_method(struct report *r)
{
    const struct py_layer *l = &r->layer;
    struct buf b = BUF_INIT;
    buf_printf(&b, "sitecustomize in %zu interpreter%s", l->interpreter_count,
               l->interpreter_count == 1 ? "" : "s");
    if (l->problem_count)
        buf_printf(&b, "; %zu problem%s of the layer, the first: %s: %s",
                   l->problem_count, l->problem_count == 1 ? "" : "s",
                   l->problems[0].where, l->problems[0].text);
    return kept(r, &b);
}

static struct provenance device_row(struct report *r)
{
    const struct phase_split *s = &r->phases;
    struct buf b = BUF_INIT;
    if (s->has_busy)
        return (struct provenance){
            "phases.device_s", MEASURED,
            "kernels, copies and fills of the imported trace, each in the phase of the "
            "host's call that launched it",
            "the tool's"
        };
    if (!s->has_device)
        return (struct provenance){ "phases.device_s", UNAVAILABLE,
                                    "no phase of a torch program on a GPU was seen",
                                    "" };
    buf_puts(&b, "CUDA events recorded where phases begin and end, read later, never "
                 "waited for; idle time of the device within a phase included");
    if (phase_device_is_sampled(s))
        buf_printf(&b,
                   "; on %.0f of %.0f calls (1 of %.1f), drawn at random, each "
                   "extrapolated to its group",
                   s->device_timed, s->device_calls, s->device_calls / s->device_timed);
    return (struct provenance){ "phases.device_s", MEASURED, kept(r, &b), "0.5 µs" };
}

size_t python_provenance(struct report *r, struct provenance *ret_rows, size_t room)
{
    const struct py_layer *l = &r->layer;
    size_t n = 0;
    if (room < 6)
        return 0;
    if (l->present)
        ret_rows[n++] = (struct provenance){ "python.layer", MEASURED, layer_method(r),
                                             "" };
    if (l->without)
        ret_rows[n++] = (struct provenance){ l->present ? "python.layer.everywhere"
                                                        : "python.layer",
                                             UNAVAILABLE, missing_layer(r), "" };
    if (l->torch[0])
        ret_rows[n++] = (struct provenance){
            "phases.torch", MEASURED,
            "outermost calls of modules (type slot), the autograd engine, torch's own "
            "ranges (record_function)",
            ""
        };
    ret_rows[n++] = device_row(r);
    const bool counted = r->optimizer_steps > 0;
    ret_rows[n++] = (struct provenance){
        "optimizer_steps", counted ? MEASURED : UNAVAILABLE,
        counted ? "calls of Optimizer.step in the process that trains"
                : "no step of a torch optimizer was seen",
        counted ? "exact" : ""
    };
    ret_rows[n++] = (struct provenance){
        "epochs", l->epoch_count ? MEASURED : UNAVAILABLE,
        l->epoch_count ? "passes over the training loader"
                       : "no pass over a training loader was seen to end",
        ""
    };
    return n;
}
