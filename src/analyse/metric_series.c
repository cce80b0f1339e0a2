/* metric_series.c: see metric_series.h. */
#include "analyse/metric_series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/phases.h"
#include "base/json.h"

enum {
    CAP_MOST = 2 * METRIC_POINTS - 4, /* then half of it stays, and room for the last */
    EVENTS_MAX = 64000000,            /* as elsewhere: a minute's reading */
};

/* ---- Thinning ----------------------------------------------------------------------- */

/* What is no number counts as the most: a loss that diverged must not be thinned away. */
static bool is_more(const struct metric_point *a, const struct metric_point *b)
{
    return isnan(a->value) ? !isnan(b->value) : a->value > b->value;
}

/* Of four neighbours the least and the most, in their order. */
static size_t thin_four(const struct metric_point four[4], struct metric_point *out)
{
    size_t least = 0, most = 0;
    for (size_t i = 1; i < 4; i++) {
        least = is_more(&four[least], &four[i]) ? i : least;
        most = is_more(&four[i], &four[most]) ? i : most;
    }
    if (least == most) /* all alike */
        most = 3;
    out[0] = four[least < most ? least : most];
    out[1] = four[least < most ? most : least];
    return 2;
}

static void thin(struct metric_series *s)
{
    size_t kept = 0, i = 0;
    for (; i + 4 <= s->count; i += 4) {
        struct metric_point four[4];
        memcpy(four, s->points + i, sizeof four);
        kept += thin_four(four, s->points + kept);
    }
    for (; i < s->count; i++)
        s->points[kept++] = s->points[i];
    s->count = kept;
}

static int append(struct metric_series *s, struct metric_point point)
{
    if (s->count == CAP_MOST)
        thin(s);
    if (s->count == s->cap) {
        const size_t cap = s->cap ? 2 * s->cap : 64;
        struct metric_point *points = realloc(s->points, cap * sizeof *points);
        if (!points)
            return -ENOMEM;
        s->points = points;
        s->cap = cap;
    }
    s->points[s->count++] = point;
    s->records++;
    if (s->records == 1 || point.time_ns >= s->last.time_ns)
        s->last = point;
    return 0;
}

/* ---- One process -------------------------------------------------------------------- */

struct walk {
    struct metric_list *list;
    const struct trace *trace;
    struct metric_series *
        *by_name; /* of each site; NULL: not looked up or not wanted */
    bool *unwanted;
    size_t sites;
    uint64_t steps[MAX_LANES]; /* begun so far */
    uint64_t events;
    int rc;
};

static bool is_taken(const struct metric_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return true;
    return false;
}

/* What the process that is being added tells by this name. */
static struct metric_series *find(struct metric_list *list, const char *told)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].process == list->processes &&
            strcmp(list->items[i].told, told) == 0)
            return &list->items[i];
    return NULL;
}

/* Owned; NULL: another process has the name, and this one has no rank to add to it. */
static char *shown_name(const struct metric_list *list, const char *told)
{
    struct buf name = BUF_INIT;
    if (!is_taken(list, told))
        return strdup(told);
    if (list->rank < 0)
        return NULL;
    buf_printf(&name, "%s@rank%d", told, list->rank);
    char *text = name.error || is_taken(list, name.data) ? NULL : buf_steal(&name);
    buf_release(&name);
    return text;
}

/* NULL: another process, or a metric, has the name; or there are too many. */
static struct metric_series *enter(struct metric_list *list, const char *told,
                                   enum value_kind kind)
{
    struct metric_series *s = find(list, told);
    if (s)
        return s->kind == kind ? s : NULL;
    char *name = shown_name(list, told), *copy = name ? strdup(told) : NULL;
    if (!copy || list->count == METRIC_SERIES) {
        list->left_out += copy != NULL;
        free(name);
        free(copy);
        return NULL;
    }
    s = &list->items[list->count++];
    *s = (struct metric_series){
        .name = name, .told = copy, .kind = kind, .process = list->processes
    };
    return s;
}

/* Metrics first: they are what people ask for when there are too many. */
static bool enter_names(struct metric_list *list, const struct trace *trace)
{
    static const enum value_kind kinds[] = { VALUE_METRIC, VALUE_COUNTER };
    bool any = false;
    for (size_t k = 0; k < 2; k++)
        for (unsigned i = 0; i < trace_value_count(trace); i++) {
            const struct trace_value *v = trace_value(trace, i);
            if (v && v->kind == kinds[k] && !phase_is_device_counter(v->name))
                any |= enter(list, v->name, v->kind) != NULL;
        }
    return any;
}

static struct metric_series *series_of(struct walk *w, const struct trace_event *e)
{
    if (e->site >= w->sites || w->unwanted[e->site])
        return NULL;
    if (!w->by_name[e->site]) {
        w->by_name[e->site] = find(w->list, trace_site(w->trace, e->site)->name);
        w->unwanted[e->site] = !w->by_name[e->site];
    }
    struct metric_series *s = w->by_name[e->site];
    return s && s->kind == (enum value_kind)e->sub ? s : NULL;
}

static void count_step(struct walk *w, const struct trace_event *e)
{
    uint64_t *steps = &w->steps[e->lane];
    if (e->sub == STEP_NEXT)
        ++*steps;
    else if (e->sub == STEP_CANCEL && *steps)
        --*steps;
}

static int take_event(void *arg, const struct trace_event *e)
{
    struct walk *w = arg;
    if (++w->events > EVENTS_MAX || e->lane >= MAX_LANES)
        return w->events > EVENTS_MAX;
    if (e->kind == TRACE_STEP)
        count_step(w, e);
    if (e->kind != TRACE_VALUE || e->sub == VALUE_ZONE)
        return 0;
    struct metric_series *s = series_of(w, e);
    if (s)
        w->rc = append(s, (struct metric_point){ .time_ns = e->time_ns,
                                                 .step = w->steps[e->lane],
                                                 .lane = e->lane,
                                                 .value = e->value });
    return w->rc;
}

static int by_time(const void *a, const void *b)
{
    const struct metric_point *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
    return (x->step > y->step) - (x->step < y->step);
}

static uint64_t recorded(const struct trace *trace, const struct metric_series *s)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < trace_value_count(trace); i++) {
        const struct trace_value *v = trace_value(trace, i);
        if (v && v->kind == s->kind && strcmp(v->name, s->told) == 0)
            count += v->count;
    }
    return count;
}

/* Steps that began before the retained events. */
static void add_earlier_steps(struct walk *w)
{
    uint64_t earlier[MAX_LANES] = { 0 };
    for (unsigned i = 0; i < trace_lane_count(w->trace); i++) {
        const struct trace_lane *lane = trace_lane(w->trace, i);
        if (lane && lane->number < MAX_LANES && lane->steps > w->steps[lane->number])
            earlier[lane->number] = lane->steps - w->steps[lane->number];
    }
    for (size_t i = 0; i < w->list->count; i++) {
        struct metric_series *s = &w->list->items[i];
        for (size_t k = 0; s->process == w->list->processes && k < s->count; k++)
            s->points[k].step += earlier[s->points[k].lane];
        if (s->process == w->list->processes && s->count)
            s->last.step += earlier[s->last.lane];
    }
}

static bool has_steps(const struct walk *w, const struct metric_series *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->points[i].step > 0)
            return true;
    return w->steps[s->last.lane] > 0;
}

/* Without steps the points are numbered; thinned ones keep their place only roughly. */
static void number_points(const struct trace *trace, struct metric_series *s)
{
    const uint64_t all = recorded(trace, s);
    const uint64_t before = all > s->records ? all - s->records : 0;
    for (size_t i = 0; i < s->count; i++)
        s->points[i].step = before +
                            (s->count > 1 ? i * (s->records - 1) / (s->count - 1) : 0);
    s->last.step = before + s->records - 1;
}

static void finish_process(struct walk *w)
{
    add_earlier_steps(w);
    for (size_t i = 0; i < w->list->count; i++) {
        struct metric_series *s = &w->list->items[i];
        if (s->process != w->list->processes || !s->count)
            continue;
        s->partial = recorded(w->trace, s) > s->records;
        qsort(s->points, s->count, sizeof *s->points, by_time);
        if (!has_steps(w, s))
            number_points(w->trace, s);
    }
}

int metric_list_add(struct metric_list *list, const struct trace *trace, int rank)
{
    list->processes++;
    list->rank = rank;
    if (!enter_names(list, trace))
        return 0;
    struct walk *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    *w = (struct walk){ .list = list,
                        .trace = trace,
                        .sites = trace_site_count(trace) };
    w->by_name = calloc(w->sites + 1, sizeof(struct metric_series *));
    w->unwanted = calloc(w->sites + 1, sizeof *w->unwanted);
    int rc = w->by_name && w->unwanted ? 0 : -ENOMEM;
    if (rc == 0)
        rc = trace_events(trace, take_event, w);
    if (rc >= 0) /* 1: enough events were seen */
        finish_process(w);
    free((void *)w->by_name);
    free(w->unwanted);
    free(w);
    return rc < 0 ? rc : 0;
}

/* ---- All of them -------------------------------------------------------------------- */

void metric_list_limit(struct metric_list *list, size_t points)
{
    for (size_t i = 0; i < list->count; i++) {
        struct metric_series *s = &list->items[i];
        while (s->count >= points && s->count >= 4)
            thin(s);
        if (s->count && by_time(&s->points[s->count - 1], &s->last) < 0)
            (void)append(s, s->last);
    }
}

void metric_list_finish(struct metric_list *list)
{
    metric_list_limit(list, METRIC_POINTS);
}

/* Ranks first, the lowest before the others; then the oldest. */
struct place {
    int rank;
    size_t file;
};

static int by_rank(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const unsigned p = (unsigned)x->rank, q = (unsigned)y->rank; /* −1 is the last */
    return p != q ? (p > q) - (p < q) : (x->file > y->file) - (x->file < y->file);
}

static int add_file(const struct run *run, const struct place *place,
                    struct metric_list *list)
{
    struct trace *trace = NULL;
    int rc = run_trace_open(run, place->file, &trace);
    if (rc == 0)
        rc = metric_list_add(list, trace, place->rank);
    trace_free(trace);
    return rc == -ENOMEM ? rc : 0;
}

static int rank_of(const struct report *r, const char *file)
{
    for (size_t i = 0; i < r->process_count; i++)
        if (strcmp(r->processes[i].file, file) == 0)
            return r->processes[i].rank;
    return -1;
}

int metric_list_read(const struct report *report, struct metric_list *ret_list)
{
    const struct run *run = report->run;
    const size_t count = run->file_count;
    struct place *places = calloc(count ? count : 1, sizeof *places);
    int rc = places ? 0 : -ENOMEM;
    *ret_list = (struct metric_list){ 0 };
    for (size_t i = 0; rc == 0 && i < count; i++)
        places[i] = (struct place){ rank_of(report, run->files[i]), i };
    if (rc == 0)
        qsort(places, count, sizeof *places, by_rank);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = add_file(run, &places[i], ret_list);
    free(places);
    metric_list_finish(ret_list);
    if (rc < 0)
        metric_list_release(ret_list);
    return rc;
}

void metric_list_release(struct metric_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].told);
        free(list->items[i].points);
    }
    *list = (struct metric_list){ 0 };
}

int metric_list_write(const struct metric_list *list, struct buf *out)
{
    struct json_writer w;
    json_init_buf(&w, out, JSON_STYLE_COMPACT);
    json_object_begin(&w);
    for (size_t i = 0; i < list->count; i++) {
        const struct metric_series *s = &list->items[i];
        if (!s->count)
            continue;
        json_key(&w, s->name);
        json_array_begin(&w);
        for (size_t k = 0; k < s->count; k++) {
            json_array_begin(&w);
            json_put_uint(&w, s->points[k].step);
            json_put_double(&w, s->points[k].value);
            json_array_end(&w);
        }
        json_array_end(&w);
    }
    json_object_end(&w);
    return json_finish(&w);
}
