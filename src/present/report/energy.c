/* energy.c: joules, grams and alerts in the reports. */
#include <math.h>
#include <string.h>

#include "base/human.h"
#include "present/report/jsonparts.h"
#include "present/report/sections.h"

static const char *const part_names[ENERGY_PARTS] = { "cpu", "dram", "gpu", "machine" };
static const char *const status_names[] = { "measured", "modelled", "unavailable" };

/* ---- JSON -------------------------------------------------------------------------- */

static void put_part(struct json_writer *w, const char *key, const struct energy_sum *s)
{
    json_key(w, key);
    json_object_begin(w);
    field_number(w, "joules", s->joules, 6);
    field_text(w, "status", status_names[s->status]);
    field_text(w, "method", s->method);
    json_object_end(w);
}

void fields_of_energy(struct json_writer *w, const struct report *r)
{
    const struct energy *e = &r->energy;
    json_key(w, "energy");
    json_object_begin(w);
    field_number(w, "joules", e->joules, 6);
    field_number(w, "co2e_g", e->co2e_g, 9);
    field_text(w, "source", e->source);
    for (int p = 0; p < ENERGY_PARTS; p++)
        put_part(w, part_names[p], &e->part[p]);
    field_number(w, "grid_g_per_kwh", e->grid_g_per_kwh, 3);
    field_text(w, "grid_source", e->grid_is_default ? energy_grid_source : "--grid");
    json_object_end(w);
}

static void put_event(struct json_writer *w, const struct report *r,
                      const struct alert_event *e)
{
    const struct alert_rule_state *rule = &r->alerts.rules[e->rule];
    json_object_begin(w);
    field_text(w, "expression", rule->expression);
    field_text(w, "metric", rule->metric);
    field_text(w, "subject", e->subject);
    field_text(w, "unit", rule->unit);
    field_text(w, "state", e->state);
    json_key(w, "threshold");
    json_put_double(w, rule->threshold);
    json_key(w, "value");
    json_put_double(w, e->value);
    json_key(w, "peak");
    json_put_double(w, e->peak);
    field_time(w, "since", e->since_ns);
    field_time(w, "fired", e->fired_ns);
    field_time(w, "cleared", e->cleared_ns);
    json_key(w, "count");
    if (e->count)
        json_put_uint(w, e->count);
    else
        json_put_null(w);
    json_object_end(w);
}

static void put_rule(struct json_writer *w, const struct alert_rule_state *rule)
{
    json_object_begin(w);
    field_text(w, "expression", rule->expression);
    field_uint(w, "compared", rule->compared);
    field_uint(w, "fired", rule->fired);
    field_number(w, "fired_s", rule->fired_s, 6);
    field_text(w, "unheard", rule->unheard);
    json_object_end(w);
}

void fields_of_alerts(struct json_writer *w, const struct report *r)
{
    const struct alert_summary *a = &r->alerts;
    json_key(w, "alerts");
    json_array_begin(w);
    for (size_t i = 0; i < a->event_count; i++)
        put_event(w, r, &a->events[i]);
    json_array_end(w);
    json_key(w, "alert_rules");
    json_array_begin(w);
    for (size_t i = 0; i < a->rule_count; i++)
        put_rule(w, &a->rules[i]);
    json_array_end(w);
}

/* ---- Text: energy -------------------------------------------------------------------- */

static const char *joules_text(char ret_text[HUMAN_LEN], double joules)
{
    static const struct {
        double joules;
        const char *unit;
    } units[] = { { 1e9, "GJ" }, { 1e6, "MJ" }, { 1e3, "kJ" }, { 1, "J" } };
    size_t i = 0;
    while (i < 3 && joules < units[i].joules)
        i++;
    (void)snprintf(ret_text, HUMAN_LEN, "%.3g %s", joules / units[i].joules,
                   units[i].unit);
    return ret_text;
}

static const char *grams_text(char ret_text[HUMAN_LEN], double grams)
{
    if (grams >= 1e6)
        (void)snprintf(ret_text, HUMAN_LEN, "%.3g t", grams / 1e6);
    else if (grams >= 1e3)
        (void)snprintf(ret_text, HUMAN_LEN, "%.3g kg", grams / 1e3);
    else if (grams >= 1)
        (void)snprintf(ret_text, HUMAN_LEN, "%.3g g", grams);
    else
        (void)snprintf(ret_text, HUMAN_LEN, "%.2g mg", grams * 1e3);
    return ret_text;
}

static void put_energy_part(struct flow *flow, const char *name, const char *counter,
                            const struct energy_sum *sum)
{
    char text[HUMAN_LEN];
    if (sum->status == ENERGY_UNAVAILABLE)
        return;
    flow_put(flow, "%s %s (%s)", name, joules_text(text, sum->joules),
             sum->status == ENERGY_MEASURED ? counter : "modelled");
}

/* Where lines are few, or the reader has a death to look into, a model is not worth
 * one. */
void section_energy(struct page *page, const struct report *r,
                    const struct limits *limits)
{
    const struct energy *e = &r->energy;
    char text[HUMAN_LEN];
    struct flow flow;
    const bool is_welcome = limits->metrics > 0 &&
                            (report_ended_well(r) || limits->metrics == SIZE_MAX);
    if (isnan(e->joules) || (!is_welcome && strcmp(e->source, "modelled") == 0))
        return;
    flow_begin(&flow, page, "ENERGY");
    put_energy_part(&flow, "GPU", "NVML", &e->part[ENERGY_GPU]);
    if (e->part[ENERGY_GPU].status == ENERGY_UNAVAILABLE && r->run->meta.gpus > 0)
        flow_put(&flow, "GPU not measured (sonde doctor)");
    put_energy_part(&flow, "CPU", "RAPL", &e->part[ENERGY_CPU]);
    put_energy_part(&flow, "memory", "RAPL", &e->part[ENERGY_DRAM]);
    put_energy_part(&flow, "whole machine", "meter", &e->part[ENERGY_MACHINE]);
    flow_put(&flow, "%s CO2e at %.3g g/kWh%s", grams_text(text, e->co2e_g),
             e->grid_g_per_kwh, e->grid_is_default ? " (world)" : "");
    flow_end(&flow);
    page_puts(page, PLAIN, "\n");
}

/* ---- Text: alerts ----------------------------------------------------------------------- */

/* As people write them. The file may hold any text as a unit: only known ones show. */
static const char *value_text(char ret_text[HUMAN_LEN], const char *unit, double value)
{
    static const char *const plain[] = { "C", "W", "J", "MHz", "MiB/s", "1/s" };
    if (isnan(value))
        return "–";
    if (strcmp(unit, "MiB") == 0)
        return human_bytes(ret_text, value * 0x1p20);
    if (strcmp(unit, "s") == 0)
        return human_duration(ret_text, value * 1e9);
    if (strcmp(unit, "percent") == 0) {
        (void)snprintf(ret_text, HUMAN_LEN, "%.3g %%", value);
        return ret_text;
    }
    (void)snprintf(ret_text, HUMAN_LEN, "%.4g", value);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(unit, plain[i]) == 0)
            (void)snprintf(ret_text, HUMAN_LEN, "%.4g %s", value, unit);
    return ret_text;
}

/* The subject of the rule's worst alert. */
static const char *worst_subject(const struct alert_summary *a, size_t rule)
{
    for (size_t i = 0; i < a->event_count; i++)
        if (a->events[i].rule == rule && a->events[i].peak == a->rules[rule].peak)
            return a->events[i].subject;
    return "";
}

static bool is_open(const struct alert_summary *a, size_t rule)
{
    for (size_t i = 0; i < a->event_count; i++)
        if (a->events[i].rule == rule && strcmp(a->events[i].state, "open") == 0)
            return true;
    return false;
}

static void put_fired(struct page *page, const struct report *r, size_t index,
                      const char *label)
{
    const struct alert_summary *a = &r->alerts;
    const struct alert_rule_state *rule = &a->rules[index];
    char text[HUMAN_LEN];
    struct buf clean = BUF_INIT;
    struct flow flow;
    flow_begin(&flow, page, label);
    clean_text(&clean, rule->expression, 40);
    flow_put(&flow, "%s", clean.data);
    if (rule->from_trace)
        flow_put(&flow, "%s %s", is_open(a, index) ? "open" : "worst",
                 value_text(text, rule->unit, rule->peak));
    else
        flow_put(&flow, "fired %s×, %s %s", human_count(text, rule->fired),
                 rule->op[0] == '>' ? "peak" : "lowest",
                 value_text((char[HUMAN_LEN]){ 0 }, rule->unit, rule->peak));
    buf_clear(&clean);
    clean_text(&clean, worst_subject(a, index), 40);
    if (clean.len)
        flow_put(&flow, "%s", clean.data);
    if (!isnan(rule->fired_s))
        flow_put(&flow, "%s in all%s", human_duration(text, rule->fired_s * 1e9),
                 is_open(a, index) ? ", to the end" : "");
    flow_end(&flow);
    buf_release(&clean);
}

/* Whether an earlier rule on the same metric is unheard for the same reason. */
static bool is_told(const struct alert_summary *a, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(a->rules[i].metric, a->rules[index].metric) == 0 &&
            strcmp(a->rules[i].unheard, a->rules[index].unheard) == 0)
            return true;
    return false;
}

static void put_silent(struct page *page, const struct report *r, const char *label)
{
    const struct alert_summary *a = &r->alerts;
    struct buf clean = BUF_INIT;
    struct flow flow;
    size_t quiet = 0, unheard = 0;
    flow_begin(&flow, page, label);
    for (size_t i = 0; i < a->rule_count; i++) {
        quiet += !a->rules[i].fired && !a->rules[i].unheard[0];
        unheard += a->rules[i].unheard[0] != '\0';
    }
    if (quiet)
        flow_put(&flow, "%zu quiet", quiet);
    if (unheard)
        flow_put(&flow, "%zu could not fire", unheard);
    for (size_t i = 0; i < a->rule_count; i++) {
        if (!a->rules[i].unheard[0] || is_told(a, i))
            continue;
        buf_clear(&clean);
        clean_text(&clean, a->rules[i].unheard, 60);
        flow_put(&flow, "%s", clean.data);
    }
    flow_end(&flow);
    buf_release(&clean);
}

void section_alerts(struct page *page, const struct report *r)
{
    const struct alert_summary *a = &r->alerts;
    const char *label = "ALERTS";
    size_t fired = 0;
    if (a->rule_count == 0)
        return;
    for (size_t i = 0; i < a->rule_count; i++) {
        if (!a->rules[i].fired)
            continue;
        put_fired(page, r, i, label);
        label = "";
        fired++;
    }
    if (fired < a->rule_count)
        put_silent(page, r, label);
    page_puts(page, PLAIN, "\n");
}
