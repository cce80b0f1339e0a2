// link: none
// libs: -lsonde-query
/* experiments.c: log the results of a small search, then ask for the best.
 *
 *     cc experiments.c -lsonde-query -lm && ./a.out
 *     sonde search "metrics.score > 0.9" --sort metrics.score
 */
#include <math.h>
#include <stdio.h>

#include <sonde/query.h>

static double score(double lr, double width)
{
    const double d = log10(lr) + 2.5;
    return 1 / (1 + d * d + (width - 64) * (width - 64) / 4096);
}

static int show(void *arg, const char *json, double similarity)
{
    (void)arg, (void)similarity;
    return puts(json) < 0 ? -1 : 0;
}

int main(void)
{
    struct sonde_store *store;
    if (sonde_store_open(NULL, &store) < 0) {
        (void)fputs("no store\n", stderr);
        return 1;
    }
    int rc = sonde_store_begin(store);
    for (int i = 0; rc == 0 && i < 100; i++) {
        const double lr = pow(10, -4 + i / 25.0), width = 16 << i % 4;
        const struct sonde_fact params[] = { { "lr", lr, NULL },
                                             { "width", width, NULL },
                                             { "optimizer", 0,
                                               i % 2 ? "adam" : "sgd" } };
        const struct sonde_fact metrics[] = { { "score", score(lr, width), NULL } };
        rc = sonde_store_log_facts(store, NULL, params, 3, metrics, 1, 0.5, NULL);
    }
    if (rc == 0)
        rc = sonde_store_commit(store);
    const struct sonde_search best = { .size = sizeof best,
                                       .where = "params.optimizer = adam",
                                       .sort = "metrics.score",
                                       .limit = 3 };
    long long matched = rc;
    if (rc == 0)
        matched = sonde_store_search(store, &best, show, NULL);
    if (matched < 0)
        (void)fprintf(stderr, "%s\n", sonde_store_message(store));
    else
        printf("%lld match\n", matched);
    sonde_store_close(store);
    return matched < 0;
}
