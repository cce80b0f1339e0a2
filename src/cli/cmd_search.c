/* cmd_search.c: `sonde search`: experiments by what they are and what they resemble. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "cli/cli.h"
#include "cli/experiments_out.h"
#include "cli/keep.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/unknown_name.h"
#include "search/search.h"
#include "store/list.h"

enum { DEFAULT_LIMIT = 10, WHY_MOST = 64, WHY_SHOWN = 4, SAME_SHOWN = 4 };

struct search_options {
    const char *where, *where_document, *like, *sort, *min_efficiency, *output;
    uint64_t max_duration_ns, max_memory, limit, offset;
    bool ascending, json, all, explain, vectors;
    int format;
};

static const char *const formats[] = { [EXPERIMENTS_TABLE] = "table",
                                       [EXPERIMENTS_JSON] = "json",
                                       [EXPERIMENTS_CSV] = "csv",
                                       NULL };

#define FIELD(name) offsetof(struct search_options, name)

static const struct option options[] = {
    { "where", 'w', OPTION_TEXT, FIELD(where), .value = "FILTER",
      .help = "a condition, or Chroma's where as JSON" },
    { "where-document", 0, OPTION_TEXT, FIELD(where_document), .value = "JSON",
      .help = "Chroma's where_document: {\"$contains\": \"text\"}" },
    { "max-duration", 0, OPTION_SECONDS, FIELD(max_duration_ns), .value = "DURATION",
      .help = "that took no longer" },
    { "max-memory", 0, OPTION_SIZE, FIELD(max_memory), .value = "SIZE",
      .help = "that held no more memory" },
    { "min-efficiency", 0, OPTION_TEXT, FIELD(min_efficiency), .value = "NUMBER",
      .help = "with at least so much accuracy per second and MB" },
    { "like", 0, OPTION_TEXT, FIELD(like), .value = "RUN",
      .help = "most alike first; a RUN, an id, or JSON as for sonde log" },
    { "explain", 0, OPTION_FLAG, FIELD(explain),
      .help = "say what two experiments share and where they differ" },
    { "vectors", 0, OPTION_FLAG, FIELD(vectors),
      .help = "JSON: with the 256 numbers that likeness is measured by" },
    { "sort", 0, OPTION_TEXT, FIELD(sort), .value = "NAME",
      .help = "by a field, metric, parameter or tag, largest first" },
    { "ascending", 0, OPTION_FLAG, FIELD(ascending), .help = "smallest first" },
    { "limit", 'n', OPTION_COUNT, FIELD(limit), .value = "N",
      .help = "at most N (default 10)" },
    { "offset", 0, OPTION_COUNT, FIELD(offset), .value = "N", .help = "leave out N" },
    { "all", 'a', OPTION_FLAG, FIELD(all), .help = "all that match" },
    { "format", 0, OPTION_CHOICE, FIELD(format), .value = "FORMAT",
      .help = "table, json or csv", .choices = formats },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "the same as --format json" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write to FILE" },
};

static const struct command command = {
    .verb = "search",
    .usage = "[options] [FILTER]",
    .summary = "find experiments by what they are and what they resemble",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "FILTER compares names with values: = != < <= > >= in (…) contains ~, joined by\n"
        "and, or, not. Names: params.X, metrics.X, tags.X, duration_s, memory_peak_mb,\n"
        "efficiency, started, name, id, kind, command, document …\n\n"
        "  sonde search \"metrics.accuracy >= 0.9 and params.batch = 32\"\n"
        "  sonde search --like @last --max-duration 10m --explain\n"
        "  sonde search --where '{\"params.lr\": {\"$lt\": 0.01}}' --sort "
        "metrics.accuracy\n",
};

/* ---- The question ------------------------------------------------------------------- */

struct question {
    struct arena arena;
    struct filter *filter;
    struct search_query query;
    int8_t vector[EMBED_DIMS];
};

static void say_wrong(const char *option, const char *text,
                      const struct filter_error *error)
{
    cli_error("%s: %s (at character %zu of '%s')", option, error->message,
              error->position, text);
}

static bool add_filter(struct question *q, struct filter *more)
{
    q->filter = more ? filter_and(&q->arena, q->filter, more) : NULL;
    if (!q->filter)
        cli_error("not enough memory for the filter");
    return q->filter != NULL;
}

static bool add_where(struct question *q, const char *text)
{
    struct filter *f;
    struct filter_error error;
    const char *first = text + strspn(text, " \t\n");
    const int rc = *first == '{'
                       ? filter_parse_where(text, strlen(text), &q->arena, &f, &error)
                       : filter_parse(text, &q->arena, &f, &error);
    if (rc < 0) {
        say_wrong("where", text, &error);
        return false;
    }
    return add_filter(q, f);
}

static bool add_document(struct question *q, const char *text)
{
    struct filter *f;
    struct filter_error error;
    if (filter_parse_where_document(text, strlen(text), &q->arena, &f, &error) < 0) {
        say_wrong("where-document", text, &error);
        return false;
    }
    return add_filter(q, f);
}

static bool add_limits(struct question *q, const struct search_options *o)
{
    char *end = NULL;
    const double efficiency = o->min_efficiency ? strtod(o->min_efficiency, &end) : 0;
    if (o->min_efficiency && (*end || end == o->min_efficiency)) {
        cli_error("--min-efficiency wants a number, got '%s'", o->min_efficiency);
        return false;
    }
    return (!o->max_duration_ns ||
            add_filter(q, filter_number(&q->arena, "duration_s", FILTER_LE,
                                        (double)o->max_duration_ns / 1e9))) &&
           (!o->max_memory ||
            add_filter(q, filter_number(&q->arena, "memory_peak_mb", FILTER_LE,
                                        (double)o->max_memory / 1048576))) &&
           (!o->min_efficiency || add_filter(q, filter_number(&q->arena, "efficiency",
                                                              FILTER_GE, efficiency)));
}

/* ---- Likeness ----------------------------------------------------------------------- */

static int like_json(struct question *q, const struct index *index, const char *text)
{
    struct experiment e;
    struct buf message = BUF_INIT;
    int rc = experiment_parse(text, strlen(text), &q->arena, &e, &message);
    if (rc < 0)
        cli_error("--like: %s", message.len ? message.data : error_text(rc));
    else
        rc = search_vector_for(index, &e, q->vector);
    buf_release(&message);
    return rc;
}

static int like_run(struct question *q, struct store *store, const struct index *index,
                    const char *ref)
{
    struct experiment e;
    if (!cli_find_experiment(store, ref, &q->arena, &e))
        return SONDE_E_NOTFOUND;
    q->query.except_seq = e.seq;
    return search_vector_of(index, e.seq, q->vector);
}

static bool set_like(struct question *q, struct store *store, const struct index *index,
                     const char *ref)
{
    const int rc = ref[0] == '{' ? like_json(q, index, ref)
                                 : like_run(q, store, index, ref);
    q->query.like = q->vector;
    return rc == 0;
}

/* ---- Why ---------------------------------------------------------------------------- */

static void put_words(struct buf *out, const struct likeness *l)
{
    char a[64] = "–", b[64] = "–";
    const struct value *const values[] = { &l->a, &l->b };
    char *const texts[] = { a, b };
    for (int i = 0; i < 2; i++) {
        const struct value *v = values[i];
        if (v->type == VALUE_TEXT)
            (void)snprintf(texts[i], sizeof a, "%.*s", (int)(v->len < 60 ? v->len : 60),
                           v->text);
        else if (v->type == VALUE_BOOL)
            (void)snprintf(texts[i], sizeof a, "%s", v->integer ? "true" : "false");
        else if (v->type != VALUE_NONE)
            (void)snprintf(texts[i], sizeof a, "%.6g", v->number);
    }
    buf_printf(out, "%.*s %s", (int)l->name_len, l->name, a);
    if (l->state != LIKE_SAME)
        buf_printf(out, " → %s", b);
}

/* "same in 5 of 7: batch 32, optimizer adam … · differs: lr 0.001 → 0.01 (33.0 %)", the
 * share being that of the range. */
static void explain_words(struct buf *out, const struct likeness *all, size_t count)
{
    size_t same = 0, named = 0, shown = 0;
    for (size_t i = 0; i < count; i++)
        same += all[i].state == LIKE_SAME;
    buf_printf(out, "same in %zu of %zu", same, count);
    for (size_t i = 0; i < count && named < SAME_SHOWN; i++)
        if (all[i].state == LIKE_SAME) {
            buf_puts(out, named++ ? ", " : ": ");
            put_words(out, &all[i]);
        }
    buf_puts(out, same > named ? " …" : "");
    for (size_t i = 0; i < count && shown < WHY_SHOWN; i++) {
        const struct likeness *l = &all[i];
        if (l->state == LIKE_SAME || l->state == LIKE_MISSING)
            continue;
        buf_puts(out, shown++ ? ", " : " · differs: ");
        put_words(out, l);
        if (l->difference < 1)
            buf_printf(out, " (%.1f %%)", 100 * l->difference);
    }
}

static void explain_json(struct buf *out, const struct likeness *all, size_t count)
{
    static const char *const words[] = { "same", "near", "far", "missing" };
    buf_putc(out, '[');
    for (size_t i = 0; i < count; i++) {
        const struct likeness *l = &all[i];
        const struct value name = { .type = VALUE_TEXT,
                                    .text = l->name,
                                    .len = l->name_len };
        buf_puts(out, i ? ",{\"name\":" : "{\"name\":");
        value_write(out, &name);
        buf_printf(out, ",\"state\":\"%s\",\"query\":", words[l->state]);
        value_write(out, &l->a);
        buf_puts(out, ",\"value\":");
        value_write(out, &l->b);
        if (isfinite(l->difference))
            buf_printf(out, ",\"difference\":%.6f", l->difference);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

static int explain(struct question *q, const struct index *index, bool json,
                   struct experiments_row *row)
{
    struct likeness all[WHY_MOST];
    struct buf text = BUF_INIT;
    const size_t count = search_explain(index, q->query.except_seq, row->seq, all,
                                        WHY_MOST);
    if (json)
        explain_json(&text, all, count);
    else
        explain_words(&text, all, count);
    const char *copy = arena_strndup(&q->arena, text.data, text.len);
    if (json)
        row->why = copy;
    else
        row->words = copy;
    buf_release(&text);
    return copy ? 0 : -ENOMEM;
}

static int keep_vector(struct question *q, const struct index *index,
                       struct experiments_row *row)
{
    int8_t *vector = arena_alloc(&q->arena, EMBED_DIMS);
    if (!vector)
        return -ENOMEM;
    row->vector = vector;
    return search_vector_of(index, row->seq, vector);
}

/* ---- The answer --------------------------------------------------------------------- */

static int print(struct question *q, struct store *store, const struct index *index,
                 const struct search_result *result, const struct search_options *o)
{
    const int format = o->json ? EXPERIMENTS_JSON : o->format;
    struct output out;
    int rc = 0;
    struct experiments_row *rows = calloc(result->count ? result->count : 1,
                                          sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; rc == 0 && i < result->count; i++) {
        rows[i] = (struct experiments_row){ .seq = result->hits[i].seq,
                                            .similarity = result->hits[i].similarity };
        if (o->explain && q->query.except_seq)
            rc = explain(q, index, format == EXPERIMENTS_JSON, &rows[i]);
        if (rc == 0 && o->vectors)
            rc = keep_vector(q, index, &rows[i]);
    }
    const struct experiments_list list = { .store = store,
                                           .rows = rows,
                                           .count = result->count,
                                           .matched = result->matched,
                                           .total = result->total };
    if (rc == 0 && !output_open(&out, o->output)) {
        rc = -EIO; /* told */
    } else if (rc == 0) {
        rc = experiments_print(&list, (enum experiments_format)format, out.file);
        if (!output_close(&out, rc, "the experiments"))
            rc = rc < 0 ? rc : -EIO;
    }
    free(rows);
    return rc;
}

/* What a large store takes long for: reading what was added, comparing everything. */
static int open_index(struct store *store, struct index **ret_index)
{
    struct progress progress;
    progress_begin(&progress, "reading the store", false);
    const int rc = index_open(store, ret_index);
    progress_end(&progress);
    if (rc < 0)
        cli_error("cannot build the search index: %s", error_text(rc));
    return rc;
}

static int search_shown(struct index *index, const struct search_query *query,
                        struct search_result *ret_result)
{
    struct progress progress;
    progress_begin(&progress, "searching", false);
    const int rc = search_run(index, query, ret_result);
    progress_end(&progress);
    if (rc < 0)
        cli_error("cannot search: %s", error_text(rc));
    return rc;
}

static int answer(struct question *q, struct store *store,
                  const struct search_options *o)
{
    struct index *index = NULL;
    struct search_result result = { .hits = NULL };
    int rc = open_index(store, &index);
    if (rc == 0 && o->like && !set_like(q, store, index, o->like))
        rc = SONDE_E_NOTFOUND;
    else if (rc == 0)
        rc = search_shown(index, &q->query, &result);
    if (rc == 0 && result.matched == 0)
        cli_tell_unknown_names(index, q->filter);
    if (rc == 0 && o->sort)
        (void)cli_name_is_unknown(index, o->sort, strlen(o->sort));
    if (rc == 0)
        rc = print(q, store, index, &result, o);
    const bool found = result.matched > 0;
    search_result_release(&result);
    index_free(index);
    return rc < 0 ? CLI_FAILED : found ? CLI_GOOD : CLI_NO;
}

static bool check_options(const struct search_options *o, int argc, char **argv,
                          int *ret_status)
{
    *ret_status = 0;
    if (argc > 2)
        *ret_status = options_fail(&command, "one FILTER, in quotes; got '%s' and '%s'",
                                   argv[1], argv[2]);
    else if (o->explain && (!o->like || o->like[0] == '{'))
        *ret_status = options_fail(&command, "--explain goes with --like RUN");
    else if (o->like && !*o->like)
        *ret_status = options_fail(&command, "--like wants a RUN");
    return *ret_status == 0;
}

int cmd_search(int argc, char **argv)
{
    struct search_options o = { .limit = 0 };
    struct question q = { .arena = ARENA_INIT };
    struct store *store = NULL;
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status) ||
        !check_options(&o, argc, argv, &status))
        return status;
    q.query.limit = o.all ? 0 : o.limit ? o.limit : DEFAULT_LIMIT;
    q.query.offset = o.offset;
    q.query.sort = o.sort;
    q.query.ascending = o.ascending;
    status = CLI_FAILED;
    if ((!o.where || add_where(&q, o.where)) && (argc < 2 || add_where(&q, argv[1])) &&
        (!o.where_document || add_document(&q, o.where_document)) &&
        add_limits(&q, &o) && cli_store_ready(&store)) {
        q.query.filter = q.filter;
        status = answer(&q, store, &o);
    }
    store_close(store);
    filter_release(q.filter);
    arena_release(&q.arena);
    return status;
}
