/* details.c: what only the full text report shows. */
#include "present/report/sections.h"

#include <math.h>

#include "base/human.h"

static void title(struct page *page, const char *text)
{
    page_puts(page, PLAIN, " ");
    page_puts(page, BOLD, text);
    page_puts(page, PLAIN, "\n");
}

void section_processes(struct page *page, const struct report *r)
{
    char a[HUMAN_LEN];
    char b[HUMAN_LEN];
    char c[HUMAN_LEN];
    struct buf name = BUF_INIT;
    if (r->process_count == 0)
        return;
    title(page, "PROCESSES");
    for (size_t i = 0; i < r->process_count; i++) {
        const struct report_process *p = &r->processes[i];
        buf_clear(&name);
        buf_printf(&name, "%u ", p->pid);
        clean_text(&name, p->role, 16);
        buf_putc(&name, ' ');
        clean_text(&name, p->exe, 24);
        page_fill(page, 3);
        page_left(page, name.data, 32);
        page_printf(page, "  %s zone time, %s events, %s lost, %llu thread%s%s%s\n",
                    human_duration(a, p->zone_ns), human_count(b, p->events),
                    human_count(c, p->lost), (unsigned long long)p->threads,
                    p->threads == 1 ? "" : "s", p->is_main ? ", main" : "",
                    p->alive ? ", running" : "");
    }
    page_puts(page, PLAIN, "\n");
    buf_release(&name);
}

static void put_values(struct page *page, const char *label,
                       const struct op_value *list)
{
    struct buf name = BUF_INIT;
    char count[HUMAN_LEN];
    if (!list)
        return;
    title(page, label);
    for (const struct op_value *v = list; v; v = v->next) {
        buf_clear(&name);
        clean_text(&name, v->name, 28);
        page_fill(page, 3);
        page_left(page, name.data, 28);
        page_printf(page, "  last %.6g, mean %.6g, %.6g … %.6g, %s value%s\n", v->last,
                    v->sum / (double)v->count, v->min, v->max,
                    human_count(count, v->count), v->count == 1 ? "" : "s");
    }
    page_puts(page, PLAIN, "\n");
    buf_release(&name);
}

static void put_custom(struct page *page, const struct op_table *t)
{
    struct buf name = BUF_INIT;
    bool any = false;
    for (size_t i = 0; i < t->count; i++) {
        const struct op *op = &t->ops[i];
        for (const struct op_value *v = op->values; v; v = v->next) {
            if (!any)
                title(page, "VALUES");
            any = true;
            buf_clear(&name);
            clean_text(&name, op->kind == OP_ROOT ? "(outside zones)" : op->name, 24);
            buf_puts(&name, " › ");
            clean_text(&name, v->name, 24);
            page_fill(page, 3);
            page_left(page, name.data, 44);
            page_printf(page, "  mean %.6g, %.6g … %.6g, last %.6g\n",
                        v->sum / (double)v->count, v->min, v->max, v->last);
        }
    }
    if (any)
        page_puts(page, PLAIN, "\n");
    buf_release(&name);
}

static void put_resources(struct page *page, const struct op_table *t)
{
    struct buf name = BUF_INIT;
    char cpu[HUMAN_LEN];
    bool any = false;
    for (size_t i = 0; i < t->order_count; i++) {
        const struct op *op = &t->ops[t->order[i]];
        if (op->op_count == 0)
            continue;
        if (!any)
            title(page, "RESOURCES");
        any = true;
        buf_clear(&name);
        clean_text(&name, op->name, 28);
        page_fill(page, 3);
        page_left(page, name.data, 28);
        page_printf(page, "  CPU %s", human_duration(cpu, op->cpu_ns));
        if (isfinite(op->mem_peak_mb))
            page_printf(page, ", memory %.1f → %.1f MiB, peak %.1f", op->mem_before_mb,
                        op->mem_after_mb, op->mem_peak_mb);
        page_puts(page, PLAIN, "\n");
    }
    if (any)
        page_puts(page, PLAIN, "\n");
    buf_release(&name);
}

static void put_pairs(struct page *page, const char *label,
                      const struct run_pair *pairs, size_t count)
{
    struct buf piece = BUF_INIT;
    struct flow flow;
    if (count == 0)
        return;
    flow_begin(&flow, page, label);
    for (size_t i = 0; i < count; i++) {
        buf_clear(&piece);
        clean_text(&piece, pairs[i].key, 40);
        buf_puts(&piece, " = ");
        clean_text(&piece, pairs[i].value, 60);
        flow_put(&flow, "%s", piece.data);
    }
    flow_end(&flow);
    page_puts(page, PLAIN, "\n");
    buf_release(&piece);
}

static void put_components(struct page *page, const struct report *r)
{
    char total[HUMAN_LEN];
    char self[HUMAN_LEN];
    char calls[HUMAN_LEN];
    struct buf name = BUF_INIT;
    if (r->component_count)
        title(page, "COMPONENTS");
    for (size_t i = 0; i < r->component_count; i++) {
        const struct component_sum *c = &r->components[i];
        buf_clear(&name);
        clean_text(&name, c->name, 28);
        page_fill(page, 3);
        page_left(page, name.data, 28);
        page_printf(page, "  %s total, %s self time, %s calls\n",
                    human_duration(total, c->total_ns),
                    human_duration(self, c->self_ns), human_count(calls, c->calls));
    }
    if (r->component_count)
        page_puts(page, PLAIN, "\n");
    buf_release(&name);
}

void section_details(struct page *page, const struct report *r)
{
    put_components(page, r);
    put_resources(page, &r->ops);
    put_custom(page, &r->ops);
    put_values(page, "COUNTERS", r->counters);
    put_pairs(page, "TAGS", r->tags, r->tag_count);
    put_pairs(page, "PARAMS", r->params, r->param_count);
}

void section_provenance(struct page *page, const struct report *r)
{
    static const char *const status[] = {
        [MEASURED] = "measured", [MODELLED] = "modelled", [UNAVAILABLE] = "unavailable"
    };
    title(page, "PROVENANCE");
    for (size_t i = 0; i < r->provenance_count; i++) {
        const struct provenance *p = &r->provenance[i];
        page_fill(page, 3);
        page_left(page, p->metric, 24);
        page_left(page, status[p->status], 13);
        page_printf(page, "%s%s%s\n", p->method, p->resolution[0] ? "; " : "",
                    p->resolution);
    }
    page_puts(page, PLAIN, "\n");
}
