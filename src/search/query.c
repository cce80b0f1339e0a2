/* query.c: <sonde/query.h> over the store and the search. */
#include <sonde/query.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/moment.h"
#include "search/search.h"
#include "store/list.h"
#include "store/store.h"

#define PUBLIC __attribute__((visibility("default")))

struct sonde_store {
    struct store *store;
    struct buf message;
};

static int fail(struct sonde_store *s, int rc, const char *what)
{
    buf_clear(&s->message);
    buf_printf(&s->message, "%s%s%s", what ? what : "", what && what[0] ? ": " : "",
               error_text(rc));
    return rc;
}

PUBLIC int sonde_store_open(const char *dir, struct sonde_store **ret_store)
{
    struct sonde_store *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    buf_init(&s->message);
    const int rc = store_open(dir ? dir : store_directory(), STORE_WRITE, &s->store,
                              &s->message);
    if (rc < 0) {
        sonde_store_close(s);
        return rc;
    }
    *ret_store = s;
    return 0;
}

PUBLIC void sonde_store_close(struct sonde_store *store)
{
    if (!store)
        return;
    store_close(store->store);
    buf_release(&store->message);
    free(store);
}

PUBLIC const char *sonde_store_message(const struct sonde_store *store)
{
    return store->message.data;
}

/* ---- Logging ------------------------------------------------------------------------ */

PUBLIC int sonde_store_log(struct sonde_store *store, const char *json,
                           char ret_id[SONDE_EXPERIMENT_ID])
{
    struct arena arena = ARENA_INIT;
    struct experiment e;
    char id[EXPERIMENT_ID_LEN];
    buf_clear(&store->message);
    int rc = experiment_parse(json, strlen(json), &arena, &e, &store->message);
    if (rc == 0 && !e.id && (rc = experiment_new_id(id)) == 0)
        e.id = id;
    if (rc == 0 && (rc = store_put(store->store, &e, 0)) < 0)
        (void)fail(store, rc, e.id);
    if (rc == 0 && ret_id)
        memcpy(ret_id, e.id, strlen(e.id) + 1); /* at most 128: experiment_parse */
    arena_release(&arena);
    return rc;
}

static void put_facts(struct buf *json, const char *kind,
                      const struct sonde_fact *facts, size_t count)
{
    buf_printf(json, ",\"%s\":{", kind);
    for (size_t i = 0; i < count; i++) {
        const char *text = facts[i].text;
        const struct value v = text ? (struct value){ .type = VALUE_TEXT,
                                                      .text = text,
                                                      .len = strlen(text) }
                                    : (struct value){ .type = VALUE_FLOAT,
                                                      .number = facts[i].number };
        fact_write(json, facts[i].name, &v);
    }
    buf_putc(json, '}');
}

PUBLIC int sonde_store_log_facts(struct sonde_store *store, const char *name,
                                 const struct sonde_fact *params, size_t param_count,
                                 const struct sonde_fact *metrics, size_t metric_count,
                                 double duration_s, char ret_id[SONDE_EXPERIMENT_ID])
{
    struct buf json = BUF_INIT;
    buf_puts(&json, "{\"kind\":null");
    if (name)
        fact_write(
            &json, "name",
            &(struct value){ .type = VALUE_TEXT, .text = name, .len = strlen(name) });
    if (isfinite(duration_s) && duration_s > 0)
        fact_write(&json, "duration_s",
                   &(struct value){ .type = VALUE_FLOAT, .number = duration_s });
    put_facts(&json, "params", params, param_count);
    put_facts(&json, "metrics", metrics, metric_count);
    buf_putc(&json, '}');
    const int rc = json.error ? fail(store, json.error, NULL)
                              : sonde_store_log(store, json.data, ret_id);
    buf_release(&json);
    return rc;
}

PUBLIC int sonde_store_begin(struct sonde_store *store)
{
    const int rc = store_begin(store->store);
    return rc < 0 ? fail(store, rc, "begin") : 0;
}

PUBLIC int sonde_store_commit(struct sonde_store *store)
{
    const int rc = store_commit(store->store);
    return rc < 0 ? fail(store, rc, "commit") : 0;
}

/* ---- Searching ---------------------------------------------------------------------- */

struct asking {
    struct sonde_store *store;
    struct arena arena;
    struct filter *filter;
    struct index *index;
    int8_t vector[EMBED_DIMS];
    struct search_query query;
};

static int wrong_filter(struct asking *a, int rc, const struct filter_error *error)
{
    buf_clear(&a->store->message);
    buf_printf(&a->store->message, "%s (at character %zu)", error->message,
               error->position);
    return rc;
}

static int add(struct asking *a, struct filter *more)
{
    a->filter = more ? filter_and(&a->arena, a->filter, more) : NULL;
    return a->filter ? 0 : -ENOMEM;
}

static int set_filter(struct asking *a, const struct sonde_search *s)
{
    struct filter *f;
    struct filter_error error;
    int rc = 0;
    if (s->where) {
        const char *first = s->where + strspn(s->where, " \t\n");
        rc = *first == '{'
                 ? filter_parse_where(s->where, strlen(s->where), &a->arena, &f, &error)
                 : filter_parse(s->where, &a->arena, &f, &error);
        rc = rc < 0 ? wrong_filter(a, rc, &error) : add(a, f);
    }
    if (rc == 0 && s->where_document) {
        rc = filter_parse_where_document(s->where_document, strlen(s->where_document),
                                         &a->arena, &f, &error);
        rc = rc < 0 ? wrong_filter(a, rc, &error) : add(a, f);
    }
    const struct {
        const char *name;
        enum filter_op op;
        double number;
    } limits[] = { { "duration_s", FILTER_LE, s->max_duration_s },
                   { "memory_peak_mb", FILTER_LE, s->max_memory_mb },
                   { "efficiency", FILTER_GE, s->min_efficiency } };
    for (size_t i = 0; rc == 0 && i < 3; i++)
        if (limits[i].number > 0)
            rc = add(a, filter_number(&a->arena, limits[i].name, limits[i].op,
                                      limits[i].number));
    return rc;
}

static int set_like(struct asking *a, const char *like)
{
    struct experiment e;
    struct buf id = BUF_INIT;
    int rc;
    experiment_init(&e);
    buf_clear(&a->store->message);
    if (like[0] == '{') {
        rc = experiment_parse(like, strlen(like), &a->arena, &e, &a->store->message);
        if (rc == 0)
            rc = search_vector_for(a->index, &e, a->vector);
    } else {
        rc = store_find(a->store->store, like, &id);
        if (rc == 0)
            rc = store_get(a->store->store, id.data, &a->arena, &e);
        if (rc == 0)
            rc = search_vector_of(a->index, e.seq, a->vector);
        a->query.except_seq = rc == 0 ? e.seq : 0;
    }
    a->query.like = a->vector;
    buf_release(&id);
    return rc < 0 && !a->store->message.len ? fail(a->store, rc, like) : rc;
}

struct giving {
    sonde_experiment_fn each;
    void *arg;
    double similarity;
    struct buf line;
};

static int give(void *arg, const struct experiment *e)
{
    struct giving *g = arg;
    buf_clear(&g->line);
    experiment_write(&g->line, e);
    return g->line.error ? g->line.error : g->each(g->arg, g->line.data, g->similarity);
}

static int give_all(struct asking *a, const struct search_result *result,
                    sonde_experiment_fn each, void *arg)
{
    struct giving g = { .each = each, .arg = arg, .line = BUF_INIT };
    int rc = 0;
    for (size_t i = 0; rc == 0 && each && i < result->count; i++) {
        g.similarity = result->hits[i].similarity;
        rc = store_each(a->store->store, result->hits[i].seq - 1, result->hits[i].seq,
                        give, &g);
    }
    buf_release(&g.line);
    return rc;
}

PUBLIC long long sonde_store_search(struct sonde_store *store,
                                    const struct sonde_search *search,
                                    sonde_experiment_fn each, void *arg)
{
    struct sonde_search s = { .size = sizeof s };
    struct asking *a = calloc(1, sizeof *a);
    struct search_result result = { .hits = NULL };
    long long answer = -ENOMEM;
    if (!a)
        return answer;
    if (search)
        memcpy(&s, search, search->size < sizeof s ? search->size : sizeof s);
    a->store = store;
    int rc = set_filter(a, &s);
    if (rc == 0 && (rc = index_open(store->store, &a->index)) < 0)
        (void)fail(store, rc, "the search index");
    if (rc == 0 && s.like)
        rc = set_like(a, s.like);
    a->query.filter = a->filter;
    a->query.sort = s.sort;
    a->query.ascending = s.ascending != 0;
    a->query.limit = s.limit;
    a->query.offset = s.offset;
    if (rc == 0 && (rc = search_run(a->index, &a->query, &result)) < 0)
        (void)fail(store, rc, "search");
    if (rc == 0)
        rc = give_all(a, &result, each, arg);
    answer = rc ? rc : (long long)result.matched;
    search_result_release(&result);
    index_free(a->index);
    filter_release(a->filter);
    arena_release(&a->arena);
    free(a);
    return answer;
}
