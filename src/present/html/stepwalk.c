/* stepwalk.c: steps in order, and which of them to show in full. */
#include "present/html/stepwalk.h"

#include <math.h>
#include <string.h>

void stepwalk_init(struct stepwalk *walk, int64_t start_ns, int64_t end_ns,
                   double typical_ns)
{
    *walk = (struct stepwalk){
        .per_point = 1, .start_ns = start_ns, .end_ns = end_ns, .typical_ns = typical_ns
    };
}

/* Two points become one. */
static void halve(struct stepwalk *s)
{
    for (size_t i = 0; i < s->count / 2; i++) {
        s->points[i].end_ns = s->points[2 * i + 1].end_ns;
        s->points[i].mean_ns = (s->points[2 * i].mean_ns +
                                s->points[2 * i + 1].mean_ns) /
                               2;
        s->points[i].max_ns = fmax(s->points[2 * i].max_ns,
                                   s->points[2 * i + 1].max_ns);
    }
    s->count /= 2;
    s->per_point *= 2;
}

static void add_point(struct stepwalk *s, int64_t end_ns, double ns)
{
    if (s->steps % s->per_point == 0 && s->count == STEPWALK_POINTS)
        halve(s); /* STEPWALK_POINTS is even: the next point starts here */
    const uint64_t place = s->steps % s->per_point;
    if (place == 0) {
        s->points[s->count].mean_ns = ns;
        s->points[s->count].max_ns = ns;
        s->count++;
    } else {
        double *mean = &s->points[s->count - 1].mean_ns;
        *mean += (ns - *mean) / (double)(place + 1);
        s->points[s->count - 1].max_ns = fmax(s->points[s->count - 1].max_ns, ns);
    }
    s->points[s->count - 1].end_ns = end_ns;
}

static double length(const struct step_seen *s)
{
    return s->end_ns ? (double)(s->end_ns - s->begin_ns) : -1;
}

static void keep_slow(struct stepwalk *s, const struct step_seen *step)
{
    int at = SLOW_STEPS;
    while (at > 0 && length(step) > length(&s->slow[at - 1]))
        at--;
    if (at == SLOW_STEPS)
        return;
    memmove(&s->slow[at + 1], &s->slow[at],
            (size_t)(SLOW_STEPS - 1 - at) * sizeof(s->slow[0]));
    s->slow[at] = *step;
}

static void keep_typical(struct stepwalk *s, const struct step_seen *step)
{
    const double run = (double)(s->end_ns - s->start_ns);
    const double place = run > 0 ? (double)(step->end_ns - s->start_ns) / run : 0;
    const int third = (int)fmin(fmax(place * TYPICAL_STEPS, 0), TYPICAL_STEPS - 1);
    struct step_seen *best = &s->typical[third];
    if (!best->end_ns ||
        fabs(length(step) - s->typical_ns) < fabs(length(best) - s->typical_ns))
        *best = *step;
}

void stepwalk_add(struct stepwalk *walk, int64_t begin_ns, int64_t end_ns)
{
    const struct step_seen step = { begin_ns, end_ns, walk->steps + 1 };
    add_point(walk, end_ns, (double)(end_ns - begin_ns));
    walk->steps++;
    keep_slow(walk, &step);
    keep_typical(walk, &step);
}

void stepwalk_put(struct json_writer *w, const struct stepwalk *walk)
{
    json_key(w, "steps");
    json_object_begin(w);
    json_key(w, "count");
    json_put_uint(w, walk->steps);
    json_key(w, "per_point");
    json_put_uint(w, walk->per_point);
    json_key(w, "points"); /* end in s, mean and longest in ms */
    json_array_begin(w);
    for (size_t i = 0; i < walk->count; i++) {
        json_array_begin(w);
        json_put_fixed(w, (double)(walk->points[i].end_ns - walk->start_ns) / 1e9, 6);
        json_put_fixed(w, walk->points[i].mean_ns / 1e6, 4);
        if (walk->per_point > 1)
            json_put_fixed(w, walk->points[i].max_ns / 1e6, 4);
        json_array_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}
