/* courses.c: how the program's own metrics went, step by step, for comparing runs.
 *
 *     "courses": [{"name": "loss", "partial": false, "steps": […], "values": […]}, …]
 *
 * Thinned to what a screen can show; least and most of each stretch stay.
 */
#include <errno.h>
#include <stdlib.h>

#include "analyse/metric_series.h"
#include "present/html/parts.h"

enum { COURSES_MOST = 24, POINTS_MOST = 400 };

static void put_one(struct json_writer *w, const struct metric_series *s)
{
    json_object_begin(w);
    json_key(w, "name");
    json_put_string(w, s->name);
    json_key(w, "partial");
    json_put_bool(w, s->partial);
    json_key(w, "steps");
    json_array_begin(w);
    for (size_t i = 0; i < s->count; i++)
        json_put_uint(w, s->points[i].step);
    json_array_end(w);
    json_key(w, "values");
    json_array_begin(w);
    for (size_t i = 0; i < s->count; i++)
        json_put_double(w, s->points[i].value);
    json_array_end(w);
    json_object_end(w);
}

static int read_list(const struct report *r, struct metric_list *ret_list)
{
    if (!r->metrics && !r->counters)
        return 0; /* no trace has any: none need be read */
    const int rc = metric_list_read(r, ret_list);
    if (rc == 0)
        metric_list_limit(ret_list, POINTS_MOST);
    return rc;
}

int html_courses(struct json_writer *w, const struct report *report)
{
    struct metric_list *list = calloc(1, sizeof *list);
    const int rc = list ? read_list(report, list) : -ENOMEM;
    size_t shown = 0;
    json_key(w, "courses");
    json_array_begin(w);
    for (size_t i = 0; rc == 0 && i < list->count && shown < COURSES_MOST; i++)
        if (list->items[i].count) {
            put_one(w, &list->items[i]);
            shown++;
        }
    json_array_end(w);
    if (list)
        metric_list_release(list);
    free(list);
    return rc;
}
