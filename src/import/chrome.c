/* chrome.c: Chrome's trace events, as they stream by.
 *
 * The document is an array of events or an object with "traceEvents". Keys come in any
 * order, so an event is collected field by field and judged at its closing brace.
 */
#include "import/chrome.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/jsonpull.h"
#include "import/torch.h"

enum { NAME_LEN = 512, WORD_LEN = 104, CARDS_MAX = 1024 };

struct fields {
    char ph;
    char name[NAME_LEN], cat[WORD_LEN], pid[WORD_LEN], tid[WORD_LEN];
    char arg_name[NAME_LEN]; /* args.name of metadata */
    double ts_us, dur_us;
    bool has_ts, has_dur;
    uint32_t correlation; /* of a launch and what it launched; 0 none */
    double value;         /* first number in args, of counters */
    char value_name[WORD_LEN];
};

struct chrome {
    struct events *e;
    struct jsonpull p;
    struct fields f;
    uint64_t odd; /* events that could not be used */
};

static void copy(char *to, size_t cap, const char *text, size_t len)
{
    if (len >= cap)
        len = cap - 1;
    memcpy(to, text, len);
    to[len] = '\0';
}

/* ---- One event ---------------------------------------------------------------------- */

static int read_args(struct chrome *c, enum json_token token)
{
    struct jsonpull *p = &c->p;
    if (token != JSON_OBJECT)
        return jsonpull_skip(p, token) ? 0 : p->error;
    const unsigned outside = p->depth - 1;
    while (jsonpull_next(p) == JSON_KEY) {
        char key[WORD_LEN];
        copy(key, sizeof key, p->text, p->text_len);
        token = jsonpull_next(p);
        if (token == JSON_STRING && strcmp(key, "name") == 0)
            copy(c->f.arg_name, sizeof c->f.arg_name, p->text, p->text_len);
        else if (token == JSON_NUMBER && strcmp(key, "correlation") == 0)
            c->f.correlation = (uint32_t)strtoul(p->text, NULL, 10);
        else if (token == JSON_NUMBER && isnan(c->f.value)) {
            c->f.value = jsonpull_number(p);
            copy(c->f.value_name, sizeof c->f.value_name, key, strlen(key));
        } else if (!jsonpull_skip(p, token))
            return p->error;
    }
    return p->depth == outside ? 0 : p->error ? p->error : SONDE_E_FORMAT;
}

static void take_text(struct chrome *c, char *to, size_t cap, enum json_token token)
{
    if (token == JSON_STRING || token == JSON_NUMBER)
        copy(to, cap, c->p.text, c->p.text_len);
}

static int read_field(struct chrome *c, const char *key, enum json_token token)
{
    struct fields *f = &c->f;
    struct jsonpull *p = &c->p;
    const bool number = token == JSON_NUMBER || token == JSON_STRING;
    if (strcmp(key, "args") == 0)
        return read_args(c, token);
    if (strcmp(key, "ph") == 0 && token == JSON_STRING)
        f->ph = p->text[0];
    else if (strcmp(key, "name") == 0)
        take_text(c, f->name, sizeof f->name, token);
    else if (strcmp(key, "cat") == 0)
        take_text(c, f->cat, sizeof f->cat, token);
    else if (strcmp(key, "pid") == 0)
        take_text(c, f->pid, sizeof f->pid, token);
    else if (strcmp(key, "tid") == 0)
        take_text(c, f->tid, sizeof f->tid, token);
    else if (strcmp(key, "ts") == 0 && number) {
        f->ts_us = jsonpull_number(p);
        f->has_ts = isfinite(f->ts_us);
    } else if (strcmp(key, "dur") == 0 && number) {
        f->dur_us = jsonpull_number(p);
        f->has_dur = isfinite(f->dur_us);
    } else if (!jsonpull_skip(p, token))
        return p->error;
    return 0;
}

static void take_metadata(struct chrome *c)
{
    struct events *e = c->e;
    const struct fields *f = &c->f;
    const long lane = events_lane(e, f->pid, f->tid);
    char *text = lane >= 0 ? arena_strdup(&e->arena, f->arg_name) : NULL;
    if (!text || !text[0])
        return;
    if (strcmp(f->name, "thread_name") == 0)
        e->lanes[lane].name = text;
    else if (strcmp(f->name, "process_name") == 0)
        e->processes[e->lanes[lane].process].name = text;
}

/* Microseconds of a double hold nanoseconds for 104 days of relative time; since the
 * epoch they hold a quarter of a microsecond, which is what such traces have. */
static int64_t to_ns(double us)
{
    return fabs(us) < 9e15 ? (int64_t)llround(us * 1000) : 0;
}

static int kind_of(const struct fields *f)
{
    switch (f->ph) {
    case 'X':
        return f->has_dur && f->dur_us >= 0 ? EVENT_ZONE : -1;
    case 'B':
        return EVENT_BEGIN;
    case 'E':
        return EVENT_END;
    case 'i':
    case 'I':
    case 'R':
        return EVENT_MARK;
    case 'C':
        return isnan(f->value) ? -1 : EVENT_COUNTER;
    default:
        return -1; /* flows, asynchronous ones, objects: not told yet */
    }
}

static int keep_event(struct chrome *c)
{
    const struct fields *f = &c->f;
    struct events *e = c->e;
    if (f->ph == 'M') {
        take_metadata(c);
        return 0;
    }
    if (torch_is_bookkeeping(f->name, f->cat))
        return 0;
    const int kind = kind_of(f);
    const bool step = kind == EVENT_ZONE && torch_is_step(f->name);
    if (step)
        *strchr(c->f.name, '#') = '\0'; /* one operation, not one per step */
    const long lane = kind >= 0 && f->has_ts ? events_lane(e, f->pid, f->tid) : -1;
    const long name = lane >= 0 ? events_name(e, f->name, f->cat) : -1;
    if (name < 0) {
        c->odd += f->ph != 's' && f->ph != 'f' && f->ph != 't';
        return 0;
    }
    struct event event = { .ts_ns = to_ns(f->ts_us),
                           .name = (uint32_t)name,
                           .correlation = f->correlation,
                           .lane = (uint16_t)lane,
                           .kind = (uint8_t)kind };
    if (kind == EVENT_COUNTER)
        event.value = f->value;
    else
        event.dur_ns = kind == EVENT_ZONE ? to_ns(f->dur_us) : 0;
    if (step && !e->names[name].is_device) {
        event.kind = EVENT_STEP;
        e->lanes[lane].has_steps = true;
        e->is_torch = true;
    }
    if (e->names[name].is_device)
        e->lanes[lane].is_device = true;
    return events_add(e, &event);
}

static int read_event(struct chrome *c)
{
    struct jsonpull *p = &c->p;
    const unsigned outside = p->depth - 1;
    struct fields *f = &c->f;
    f->ph = 0;
    f->name[0] = f->cat[0] = f->pid[0] = f->tid[0] = f->arg_name[0] = '\0';
    f->has_ts = f->has_dur = false;
    f->correlation = 0;
    f->value = NAN;
    while (jsonpull_next(p) == JSON_KEY) {
        char key[WORD_LEN];
        copy(key, sizeof key, p->text, p->text_len);
        const int rc = read_field(c, key, jsonpull_next(p));
        if (rc < 0 || p->error)
            return rc < 0 ? rc : p->error;
    }
    if (p->depth != outside)
        return p->error ? p->error : SONDE_E_FORMAT;
    return keep_event(c);
}

static int read_events(struct chrome *c)
{
    struct jsonpull *p = &c->p;
    enum json_token token;
    int rc = 0;
    while (rc == 0 && (token = jsonpull_next(p)) > JSON_END &&
           token != JSON_ARRAY_END) {
        if (token == JSON_OBJECT)
            rc = read_event(c);
        else if (!jsonpull_skip(p, token))
            rc = p->error;
    }
    return rc < 0 ? rc : p->error;
}

/* ---- The document ------------------------------------------------------------------- */

/* "deviceProperties": [{"id": 0, "name": "NVIDIA H200", …}, …] */
static int read_devices(struct chrome *c, enum json_token token)
{
    struct jsonpull *p = &c->p;
    if (token != JSON_ARRAY)
        return jsonpull_skip(p, token) ? 0 : p->error;
    const unsigned outside = p->depth - 1;
    while (p->depth > outside && (token = jsonpull_next(p)) > JSON_END) {
        if (token == JSON_OBJECT && c->e->devices < CARDS_MAX)
            c->e->devices++;
        if (token != JSON_KEY || strcmp(p->text, "name") != 0)
            continue;
        if (jsonpull_next(p) == JSON_STRING && !c->e->device[0]) {
            char *name = arena_strdup(&c->e->arena, p->text);
            c->e->device = name ? name : "";
        }
    }
    return p->error;
}

static int read_document(struct chrome *c)
{
    struct jsonpull *p = &c->p;
    enum json_token token = jsonpull_next(p);
    int rc = 0;
    if (token == JSON_ARRAY)
        return read_events(c);
    if (token != JSON_OBJECT)
        return p->error ? p->error : SONDE_E_FORMAT;
    while (rc == 0 && (token = jsonpull_next(p)) == JSON_KEY) {
        char key[WORD_LEN];
        copy(key, sizeof key, p->text, p->text_len);
        token = jsonpull_next(p);
        if (strcmp(key, "traceEvents") == 0 && token == JSON_ARRAY)
            rc = read_events(c);
        else if (strcmp(key, "deviceProperties") == 0)
            rc = read_devices(c, token);
        else if (strcmp(key, "baseTimeNanoseconds") == 0 &&
                 (token == JSON_NUMBER || token == JSON_STRING))
            c->e->base_ns = strtoll(p->text, NULL, 10);
        else if (!jsonpull_skip(p, token))
            rc = p->error;
        if (strcmp(key, "schemaVersion") == 0)
            c->e->is_torch = true;
    }
    if (rc == 0 && token != JSON_OBJECT_END)
        rc = p->error ? p->error : SONDE_E_FORMAT;
    return rc;
}

/* A file that stops in the middle is what a tracer leaves that was killed. What is
 * there counts; that something is missing is told. */
static bool is_cut_short(const struct chrome *c, int rc)
{
    enum { LAST_EVENT = 1 << 16 };
    return rc == SONDE_E_FORMAT && c->p.ended && c->p.len - c->p.at < LAST_EVENT &&
           c->e->count > 0;
}

int chrome_read(struct import_source *source, struct events *e, char *ret_problem,
                size_t len)
{
    struct chrome *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->e = e;
    jsonpull_init(&c->p, import_source_read, source);
    int rc = read_document(c);
    if (is_cut_short(c, rc)) {
        c->odd++;
        rc = 0;
    }
    e->left_out += c->odd;
    if (rc < 0)
        (void)snprintf(ret_problem, len, "%s at byte %llu", error_text(rc),
                       (unsigned long long)jsonpull_offset(&c->p));
    else if (e->count == 0) {
        (void)snprintf(ret_problem, len, "there are no trace events in it");
        rc = SONDE_E_FORMAT;
    }
    jsonpull_release(&c->p);
    free(c);
    return rc;
}
