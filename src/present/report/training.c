/* training.c: what is trained, in a line of the report. */
#include "present/report/sections.h"

#include "base/human.h"

enum { LAYERS_SHOWN = 4 };

static void put_layers(struct flow *flow, const struct py_model *m)
{
    for (size_t i = 0; i < m->layer_count && i < LAYERS_SHOWN; i++)
        flow_put(flow, "%llu %s", (unsigned long long)m->layers[i].count,
                 m->layers[i].type);
    if (m->layer_count > LAYERS_SHOWN)
        flow_put(flow, "%zu more kinds of layers", m->layer_count - LAYERS_SHOWN);
}

void section_training(struct page *page, const struct report *r)
{
    const struct py_layer *l = &r->layer;
    char count[HUMAN_LEN];
    struct flow flow;
    if (!l->model_count && !l->epoch_count)
        return;
    flow_begin(&flow, page, "MODEL");
    if (l->model_count) {
        flow_put(&flow, "%s", l->models[0].name);
        flow_put(&flow, "%s parameters", human_count(count, l->models[0].parameters));
        put_layers(&flow, &l->models[0]);
    }
    if (l->model_count > 1)
        flow_put(&flow, "%zu more model%s", l->model_count - 1,
                 l->model_count > 2 ? "s" : "");
    if (l->epoch_count)
        flow_put(&flow, "%zu epoch%s", l->epoch_count, l->epoch_count > 1 ? "s" : "");
    if (r->optimizer_steps)
        flow_put(&flow, "%s optimizer steps", human_count(count, r->optimizer_steps));
    flow_end(&flow);
    page_puts(page, PLAIN, "\n");
}
