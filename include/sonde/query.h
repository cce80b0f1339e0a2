/* <sonde/query.h>: experiments: log them, find them again. Link with -lsonde-query.
 *
 * A library of its own, apart from libsonde: what lives inside traced programs needs
 * libc alone, while the store needs SQLite. A program that trains and logs its result may
 * use both.
 *
 *     struct sonde_store *store;
 *     if (sonde_store_open(NULL, &store) == 0) {
 *         sonde_store_log(store, "{\"params\": {\"lr\": 0.001}, \"metrics\": "
 *                                "{\"accuracy\": 0.93}, \"duration_s\": 12}", NULL);
 *         sonde_store_close(store);
 *     }
 *
 * All results are 0 or negative; sonde_store_message() then has the sentence. A store is
 * for one thread at a time; any number of processes may have it open.
 */
#ifndef SONDE_QUERY_H
#define SONDE_QUERY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sonde_store;

enum { SONDE_EXPERIMENT_ID = 129 };

/* The store in `dir` (NULL: $SONDE_DIR, else ".sonde"), made when there is none. */
int sonde_store_open(const char *dir, struct sonde_store **ret_store);
void sonde_store_close(struct sonde_store *store);
/* Why the last call failed; never NULL. */
const char *sonde_store_message(const struct sonde_store *store);

/* One experiment as a JSON object, as `sonde log --jsonl` reads them: params, metrics,
 * tags, name, id, duration_s, memory_peak_mb, series … An id that is taken is an error.
 * ret_id (NULL: not wanted) gets its id. */
int sonde_store_log(struct sonde_store *store, const char *json,
                    char ret_id[SONDE_EXPERIMENT_ID]);

/* A name with a number, or with a text when that is not NULL. */
struct sonde_fact {
    const char *name;
    double number;
    const char *text;
};
/* The same without JSON. */
int sonde_store_log_facts(struct sonde_store *store, const char *name,
                          const struct sonde_fact *params, size_t param_count,
                          const struct sonde_fact *metrics, size_t metric_count,
                          double duration_s, char ret_id[SONDE_EXPERIMENT_ID]);

/* Many at once: fifty thousand a second. All between the two are there, or none. */
int sonde_store_begin(struct sonde_store *store);
int sonde_store_commit(struct sonde_store *store);

/* Zero is the default everywhere; set `size` to sizeof it. */
struct sonde_search {
    size_t size;
    const char *where;          /* "metrics.accuracy >= 0.9", or Chroma's JSON */
    const char *where_document; /* Chroma's JSON */
    double max_duration_s, max_memory_mb, min_efficiency;
    const char *like; /* an id, or an experiment as JSON: most alike first */
    const char *sort; /* a name, largest first */
    int ascending;
    size_t limit, offset; /* limit 0: all */
};

/* Called for each; `json` lives for the call. similarity is NaN without `like`. A
 * non-zero result ends the search and becomes its result. */
typedef int (*sonde_experiment_fn)(void *arg, const char *json, double similarity);

/* The number of experiments that match (not only of those given out), or negative. */
long long sonde_store_search(struct sonde_store *store,
                             const struct sonde_search *search,
                             sonde_experiment_fn each, void *arg);

#ifdef __cplusplus
}
#endif

#endif
