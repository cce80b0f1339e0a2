/* thresholds_yaml.c: the key `rules` of sonde.yaml. Hostile input, as every file. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analyse/thresholds.h"
#include "base/error.h"

#ifdef SONDE_HAVE_YAML

#include <yaml.h>

/* A configuration file is small; a bomb of aliases is not one. */
enum { EVENTS_MAX = 10000, DEPTH_MAX = 32 };
/* `off`, `set` and the thresholds. */
enum {
    SEEN_MAX = 2
#define THRESHOLD(name, value, reference, unit, text) +1
#include "analyse/threshold_list.h"
#undef THRESHOLD
};

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the last one; deleted before the next */
    bool has_event;
    unsigned events;
    bool seen[SEEN_MAX], seen_rules;
    struct thresholds *t;
    char *error;
    int rc;
};

static bool complain(struct reader *r, const char *what, const char *word)
{
    const yaml_mark_t *mark = r->has_event ? &r->event.start_mark
                                           : &r->parser.problem_mark;
    (void)snprintf(r->error, THRESHOLDS_ERROR_LEN, "line %zu: %s%s%.40s%s",
                   mark->line + 1, what, word ? " '" : "", word ? word : "",
                   word ? "'" : "");
    r->rc = SONDE_E_FORMAT;
    return false;
}

static bool next(struct reader *r)
{
    if (r->has_event)
        yaml_event_delete(&r->event);
    r->has_event = false;
    if (++r->events > EVENTS_MAX)
        return complain(r, "too long", NULL);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return complain(r, r->parser.problem ? r->parser.problem : "no YAML", NULL);
    r->has_event = true;
    return true;
}

static const char *scalar(const struct reader *r)
{
    return r->event.type == YAML_SCALAR_EVENT ? (const char *)r->event.data.scalar.value
                                              : NULL;
}

/* Passes over the value that begins with the event at hand. */
static bool skip_value(struct reader *r)
{
    int depth = 0;
    do {
        const yaml_event_type_t type = r->event.type;
        if (type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT)
            depth++;
        if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT)
            depth--;
        if (depth > DEPTH_MAX)
            return complain(r, "nested too deeply", NULL);
        if (type == YAML_STREAM_END_EVENT)
            return complain(r, "ends early", NULL);
    } while (depth > 0 && next(r));
    return r->rc == 0;
}

static bool to_number(const char *word, double *ret_value)
{
    char *end;
    errno = 0;
    *ret_value = strtod(word, &end);
    return end != word && *end == '\0' && errno == 0 && isfinite(*ret_value);
}

/* ---- rules: ----------------------------------------------------------------------- */

static bool read_off(struct reader *r)
{
    const char *word = scalar(r);
    if (word)
        return thresholds_rule_off(r->t, word) == 0 ||
               complain(r, "no such rule:", word);
    if (r->event.type != YAML_SEQUENCE_START_EVENT)
        return complain(r, "rules.off is a list of rules", NULL);
    while (next(r) && r->event.type != YAML_SEQUENCE_END_EVENT) {
        word = scalar(r);
        if (!word)
            return complain(r, "rules.off is a list of rules", NULL);
        if (thresholds_rule_off(r->t, word) < 0)
            return complain(r, "no such rule:", word);
    }
    return r->rc == 0;
}

static bool complain_range(struct reader *r, const char *key, const char *word)
{
    const struct threshold_info *info = threshold_by_name(key);
    char what[96];
    (void)snprintf(what, sizeof what, "%.40s must be %s, and cannot be", key,
                   isfinite(threshold_most(info)) ? "a share from 0 to 1"
                                                  : "0 or more");
    return complain(r, what, word);
}

static bool read_value(struct reader *r, const char *key)
{
    const char *word = scalar(r);
    double value;
    if (strcmp(key, "off") == 0)
        return read_off(r);
    if (!word)
        return complain(r, "not a number:", key);
    if (strcmp(key, "set") == 0)
        return thresholds_use_set(r->t, word) == 0 ||
               complain(r, "no such set (default, reference):", word);
    if (!to_number(word, &value))
        return complain(r, "not a number:", word);
    return thresholds_set(r->t, key, value) == 0 || complain_range(r, key, word);
}

/* YAML would let the last one win, and nobody would know which is meant. */
static bool is_new(struct reader *r, const char *key)
{
    const struct threshold_info *info = threshold_by_name(key);
    const size_t i = strcmp(key, "off") == 0   ? 0
                     : strcmp(key, "set") == 0 ? 1
                     : info                    ? 2 + (size_t)(info - threshold_infos)
                                               : SEEN_MAX;
    if (i >= SEEN_MAX)
        return complain(r, "no such threshold:", key);
    if (r->seen[i])
        return complain(r, "stands there twice:", key);
    return r->seen[i] = true;
}

static bool read_rules(struct reader *r)
{
    char key[64];
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return complain(r, "rules is a table of names and values", NULL);
    while (next(r) && r->event.type != YAML_MAPPING_END_EVENT) {
        const char *word = scalar(r);
        if (!word || strlen(word) >= sizeof key)
            return complain(r, "not a name", word);
        memcpy(key, word, strlen(word) + 1);
        if (!is_new(r, key) || !next(r) || !read_value(r, key))
            return false;
    }
    return r->rc == 0;
}

/* ---- The document ------------------------------------------------------------------ */

static bool read_document(struct reader *r)
{
    if (r->event.type == YAML_STREAM_END_EVENT)
        return true; /* empty */
    if (!next(r))
        return false;
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return skip_value(r); /* a comment, nothing: nobody's settings */
    while (next(r) && r->event.type != YAML_MAPPING_END_EVENT) {
        const char *key = scalar(r);
        const bool ours = key && strcmp(key, "rules") == 0;
        if (ours && r->seen_rules)
            return complain(r, "stands there twice:", key);
        if (key && !ours && strncasecmp(key, "rule", 4) == 0)
            return complain(r, "no such section (rules is meant?):", key);
        r->seen_rules |= ours;
        if (!key && !skip_value(r))
            return false;
        if (!next(r) || !(ours ? read_rules(r) : skip_value(r)))
            return false;
    }
    return r->rc == 0;
}

static int read_file(struct thresholds *t, FILE *file,
                     char ret_error[THRESHOLDS_ERROR_LEN])
{
    struct reader r = { .t = t, .error = ret_error };
    if (!yaml_parser_initialize(&r.parser))
        return -ENOMEM;
    yaml_parser_set_input_file(&r.parser, file);
    /* Stream, document, then what it is about. */
    const bool stream = next(&r);
    if (stream && next(&r))
        (void)read_document(&r);
    if (r.has_event)
        yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return r.rc;
}

int thresholds_read(struct thresholds *thresholds, const char *path,
                    char ret_error[THRESHOLDS_ERROR_LEN])
{
    struct thresholds t = *thresholds;
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    const int rc = read_file(&t, file, ret_error);
    (void)fclose(file);
    if (rc == 0)
        *thresholds = t;
    return rc;
}

#else

int thresholds_read(struct thresholds *thresholds, const char *path,
                    char ret_error[THRESHOLDS_ERROR_LEN])
{
    (void)thresholds, (void)path, (void)ret_error;
    return -ENOSYS;
}

#endif
