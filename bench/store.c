// link: all
/* store.c: a store of many experiments: how fast they go in, how fast they are found.
 *
 *     store rows=1000000 queries=200 dir=DIR
 *
 * Experiments are parsed from JSON lines as `sonde log --jsonl` does and put in batches.
 * A query is a filter of two conditions and the ten most alike of what passes. Answers
 * of some queries are compared with comparing everything. Leaves in DIR what a peer
 * needs to do the same: vectors.i8, metadata.jsonl, queries.jsonl. Prints one JSON
 * object.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/files.h"
#include "base/moment.h"
#include "num/prng.h"
#include "search/search.h"

enum { BATCH = 20000, NEAREST = 10, CHECKED = 10 };

struct timing {
    double wall_s, cpu_s;
};

static struct timing now(void)
{
    return (struct timing){ (double)moment_ns(CLOCK_MONOTONIC) / 1e9,
                            (double)moment_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9 };
}

static struct timing since(struct timing start)
{
    const struct timing end = now();
    return (struct timing){ end.wall_s - start.wall_s, end.cpu_s - start.cpu_s };
}

/* ---- Data --------------------------------------------------------------------------- */

static const char *const optimizers[] = { "adam", "sgd", "adamw", "lamb" };

static int make_line(struct prng *r, char *line, size_t len)
{
    return snprintf(
        line, len,
        "{\"params\": {\"lr\": 0.00%03d, \"batch\": %d, \"layers\": %d, \"dropout\": "
        "0.%03d, \"optimizer\": \"%s\", \"amp\": %s}, \"metrics\": {\"accuracy\": "
        "0.%05d, \"loss\": %d.%04d, \"val_loss\": %d.%04d}, \"tags\": {\"team\": \"%c\"}, "
        "\"duration_s\": %d.%02d, \"memory_peak_mb\": %d}",
        (int)(1 + prng_below(r, 999)), 16 << prng_below(r, 5),
        (int)(2 + prng_below(r, 23)), (int)prng_below(r, 500),
        optimizers[prng_below(r, 4)], prng_below(r, 2) ? "true" : "false",
        (int)prng_below(r, 100000), (int)prng_below(r, 5), (int)prng_below(r, 10000),
        (int)prng_below(r, 6), (int)prng_below(r, 10000),
        (char)('a' + prng_below(r, 6)), (int)prng_below(r, 600),
        (int)prng_below(r, 100), (int)(100 + prng_below(r, 16000)));
}

static int ingest(struct store *store, uint64_t rows, struct timing *ret)
{
    struct prng random;
    struct arena arena = ARENA_INIT;
    struct buf message = BUF_INIT;
    int rc = 0;
    prng_init(&random, 1);
    *ret = (struct timing){ 0, 0 };
    for (uint64_t done = 0; rc == 0 && done < rows;) {
        static char lines[BATCH][512];
        static int lens[BATCH];
        const uint64_t n = rows - done < BATCH ? rows - done : BATCH;
        for (uint64_t i = 0; i < n; i++) /* making them is not measured */
            lens[i] = make_line(&random, lines[i], sizeof lines[i]);
        const struct timing start = now();
        rc = store_begin(store);
        for (uint64_t i = 0; rc == 0 && i < n; i++) {
            struct experiment e;
            char id[EXPERIMENT_ID_LEN];
            rc = experiment_parse(lines[i], (size_t)lens[i], &arena, &e, &message);
            if (rc == 0)
                rc = experiment_new_id(id);
            e.id = id;
            if (rc == 0)
                rc = store_put(store, &e, 0);
        }
        if (rc == 0)
            rc = store_commit(store);
        const struct timing took = since(start);
        ret->wall_s += took.wall_s;
        ret->cpu_s += took.cpu_s;
        arena_release(&arena);
        arena_init(&arena);
        done += n;
    }
    buf_release(&message);
    return rc;
}

/* ---- Queries ------------------------------------------------------------------------ */

struct question {
    char where[200];
    int64_t seq;
};

static void make_question(struct prng *r, uint64_t rows, struct question *q)
{
    (void)snprintf(q->where, sizeof q->where,
                   "{\"$and\": [{\"metrics.accuracy\": {\"$gte\": 0.%02d}}, "
                   "{\"params.batch\": %d}]}",
                   (int)(50 + prng_below(r, 45)), 16 << prng_below(r, 5));
    q->seq = (int64_t)(1 + prng_below(r, rows));
}

static int ask(const struct index *index, const struct question *q,
               struct search_result *ret)
{
    struct arena arena = ARENA_INIT;
    struct filter *f = NULL;
    struct filter_error error;
    int8_t vector[EMBED_DIMS];
    int rc = filter_parse_where(q->where, strlen(q->where), &arena, &f, &error);
    if (rc == 0)
        rc = search_vector_of(index, q->seq, vector);
    const struct search_query query = { .filter = f, .like = vector, .limit = NEAREST };
    if (rc == 0)
        rc = search_run(index, &query, ret);
    filter_release(f);
    arena_release(&arena);
    return rc;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The same by comparing everything, in the plainest way. */
static int check(const struct index *index, const struct question *q,
                 const struct search_result *result)
{
    struct arena arena = ARENA_INIT;
    struct filter *f = NULL;
    struct filter_error error;
    int8_t a[EMBED_DIMS], b[EMBED_DIMS];
    uint32_t *all = calloc(index->rows + 1, sizeof *all);
    static uint64_t bits[SEGMENT_ROWS / 64];
    size_t n = 0;
    if (!all ||
        filter_parse_where(q->where, strlen(q->where), &arena, &f, &error) < 0 ||
        search_vector_of(index, q->seq, a) < 0)
        return -EINVAL;
    for (size_t part = 0; part < index->count; part++) {
        const struct segment *s = &index->parts[part].segment;
        if (filter_apply(f, s, bits) < 0)
            return -EINVAL;
        for (uint32_t row = 0; row < s->head->rows; row++) {
            if (!(bits[row / 64] >> row % 64 & 1))
                continue;
            embed_row(&index->space, s, row, b);
            uint32_t sum = 0;
            for (int i = 0; i < EMBED_DIMS; i++)
                sum += (uint32_t)((a[i] - b[i]) * (a[i] - b[i]));
            all[n++] = sum;
        }
    }
    qsort(all, n, sizeof *all, by_number);
    int wrong = result->matched != n;
    for (size_t i = 0; i < result->count; i++)
        wrong += result->hits[i].distance != all[i];
    free(all);
    filter_release(f);
    arena_release(&arena);
    return wrong;
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- For the peer ------------------------------------------------------------------- */

static FILE *open_in(const char *dir, const char *name)
{
    struct buf path = BUF_INIT;
    path_join(&path, dir, name);
    FILE *file = fopen(path.data, "w");
    buf_release(&path);
    return file;
}

static int put_metadata(void *arg, const struct experiment *e)
{
    struct buf line = BUF_INIT;
    experiment_write(&line, e);
    const int rc = fprintf(arg, "%s\n", line.data) < 0 ? -errno : line.error;
    buf_release(&line);
    return rc;
}

static int leave_data(struct store *store, const struct index *index, const char *dir)
{
    FILE *vectors = open_in(dir, "vectors.i8");
    FILE *metadata = open_in(dir, "metadata.jsonl");
    int rc = vectors && metadata ? 0 : -errno;
    int8_t v[EMBED_DIMS];
    for (int64_t seq = 1; rc == 0 && seq <= (int64_t)index->rows; seq++)
        if (search_vector_of(index, seq, v) < 0 || fwrite(v, sizeof v, 1, vectors) != 1)
            rc = -EIO;
    if (rc == 0)
        rc = store_each(store, 0, 0, put_metadata, metadata);
    if (vectors && fclose(vectors) != 0)
        rc = -EIO;
    if (metadata && fclose(metadata) != 0)
        rc = -EIO;
    return rc;
}

static int leave_question(FILE *file, const struct question *q,
                          const struct search_result *r)
{
    (void)fprintf(file, "{\"where\": %s, \"row\": %lld, \"nearest\": [", q->where,
                  (long long)q->seq - 1);
    for (size_t i = 0; i < r->count; i++)
        (void)fprintf(file, "%s[%lld, %u]", i ? ", " : "",
                      (long long)r->hits[i].seq - 1, r->hits[i].distance);
    return fputs("]}\n", file) < 0 ? -EIO : 0;
}

/* ---- All ---------------------------------------------------------------------------- */

static uint64_t argument(int argc, char **argv, const char *name, uint64_t other)
{
    const size_t len = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, len) == 0 && argv[i][len] == '=')
            return strtoull(argv[i] + len + 1, NULL, 10);
    return other;
}

static const char *directory(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "dir=", 4) == 0)
            return argv[i] + 4;
    return NULL;
}

static double rss_mb(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

int main(int argc, char **argv)
{
    const uint64_t rows = argument(argc, argv, "rows", 100000);
    const uint64_t queries = argument(argc, argv, "queries", 200);
    const char *dir = directory(argc, argv);
    struct store *store = NULL;
    struct index *index = NULL;
    struct timing in, built, opened;
    if (!dir || !rows || !queries || queries > 100000 ||
        store_open(dir, STORE_WRITE, &store, NULL) < 0)
        return 2;
    int rc = ingest(store, rows, &in);
    const double in_rss = rss_mb();
    struct timing start = now();
    if (rc == 0)
        rc = index_open(store, &index);
    built = since(start);
    index_free(index);
    start = now();
    if (rc == 0)
        rc = index_open(store, &index);
    opened = since(start);
    double *wall = calloc(queries, sizeof *wall);
    double *cpu = calloc(queries, sizeof *cpu);
    FILE *file = open_in(dir, "queries.jsonl");
    if (rc < 0 || !wall || !cpu || !file)
        return 1;
    struct prng random;
    int wrong = 0;
    double matched = 0;
    prng_init(&random, 2);
    for (uint64_t i = 0; i < queries; i++) {
        struct question q;
        struct search_result result;
        make_question(&random, rows, &q);
        start = now();
        if (ask(index, &q, &result) < 0)
            return 1;
        const struct timing took = since(start);
        wall[i] = took.wall_s;
        cpu[i] = took.cpu_s;
        matched += (double)result.matched;
        if (i < CHECKED)
            wrong += check(index, &q, &result);
        if (leave_question(file, &q, &result) < 0)
            return 1;
        search_result_release(&result);
    }
    if (fclose(file) != 0 || leave_data(store, index, dir) < 0)
        return 1;
    qsort(wall, queries, sizeof *wall, by_time);
    qsort(cpu, queries, sizeof *cpu, by_time);
    printf("{\"rows\": %llu, \"queries\": %llu, \"ingest_wall_s\": %.6f, "
           "\"ingest_cpu_s\": %.6f, \"index_wall_s\": %.6f, \"index_cpu_s\": %.6f, "
           "\"open_wall_s\": %.6f, \"p50_wall_ms\": %.4f, \"p95_wall_ms\": %.4f, "
           "\"p50_cpu_ms\": %.4f, \"p95_cpu_ms\": %.4f, \"matched_mean\": %.1f, "
           "\"wrong\": %d, \"ingest_rss_mb\": %.1f, \"rss_mb\": %.1f}\n",
           (unsigned long long)rows, (unsigned long long)queries, in.wall_s, in.cpu_s,
           built.wall_s, built.cpu_s, opened.wall_s, wall[queries / 2] * 1e3,
           wall[queries * 95 / 100] * 1e3, cpu[queries / 2] * 1e3,
           cpu[queries * 95 / 100] * 1e3, matched / (double)queries, wrong, in_rss,
           rss_mb());
    free(wall);
    free(cpu);
    index_free(index);
    store_close(store);
    return wrong ? 3 : 0;
}
