/* search_test.c: the index follows the store; likeness is exact and the same bytes
 * everywhere. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "num/prng.h"
#include "search/nearest.h"
#include "search/search.h"
#include "trace/crc32c.h"

static char root[64];
static struct store *store;

static int setup(void **state)
{
    (void)state;
    return unit_temp_dir(root) && store_open(root, STORE_WRITE, &store, NULL) == 0 ? 0
                                                                                   : -1;
}

static int teardown(void **state)
{
    (void)state;
    store_close(store);
    store = NULL;
    return file_remove_tree(root);
}

static void put(const char *json, unsigned flags)
{
    struct arena arena = ARENA_INIT;
    struct buf message = BUF_INIT;
    struct experiment e;
    if (experiment_parse(json, strlen(json), &arena, &e, &message) < 0)
        fail_msg("%s: %s", json, message.data);
    assert_int_equal(store_put(store, &e, flags), 0);
    arena_release(&arena);
    buf_release(&message);
}

static const char *const optimizers[] = { "adam", "sgd", "adamw", "lamb" };

/* Whole numbers of fixed steps: no libm in what the bytes are made of. */
static void put_random(struct prng *random, int i)
{
    char json[400];
    uint64_t x[7];
    for (int k = 0; k < 7; k++) /* arguments have no order among themselves */
        x[k] = prng_next(random);
    (void)snprintf(
        json, sizeof json,
        "{\"id\":\"e%d\",\"params\":{\"lr\":%llue-5,\"batch\":%d,\"opt\":\"%s\","
        "\"amp\":%s%s},\"metrics\":{\"accuracy\":0.%04llu},\"duration_s\":%llu}",
        i, (unsigned long long)(1 + x[0] % 9999), 16 << x[1] % 5, optimizers[x[2] % 4],
        x[3] % 2 ? "true" : "false", x[4] % 3 ? "" : ",\"extra\":1.5",
        (unsigned long long)(x[5] % 10000), (unsigned long long)(x[6] % 1000));
    put(json, 0);
}

static void put_many(int count)
{
    struct prng random;
    prng_init(&random, 5);
    assert_int_equal(store_begin(store), 0);
    for (int i = 0; i < count; i++)
        put_random(&random, i);
    assert_int_equal(store_commit(store), 0);
}

static struct index *open_index(void)
{
    struct index *index = NULL;
    assert_int_equal(index_open(store, &index), 0);
    return index;
}

static uint64_t matched(const struct index *index, const char *where)
{
    struct arena arena = ARENA_INIT;
    struct filter *f = NULL;
    struct filter_error error;
    struct search_result result;
    assert_int_equal(filter_parse(where, &arena, &f, &error), 0);
    const struct search_query q = { .filter = f, .limit = 3 };
    assert_int_equal(search_run(index, &q, &result), 0);
    const uint64_t n = result.matched;
    search_result_release(&result);
    filter_release(f);
    arena_release(&arena);
    return n;
}

/* ---- Following the store ------------------------------------------------------------ */

static void the_index_follows_the_store(void **state)
{
    (void)state;
    struct index *index = open_index();
    assert_int_equal(index->rows, 0);
    index_free(index);
    put("{\"id\":\"x\",\"params\":{\"lr\":1}}", 0);
    index = open_index();
    assert_int_equal(matched(index, "params.lr = 1"), 1);
    index_free(index);
    put("{\"id\":\"x\",\"params\":{\"lr\":2}}", PUT_REPLACE);
    put("{\"id\":\"y\",\"params\":{\"lr\":2}}", 0);
    index = open_index();
    assert_int_equal(matched(index, "params.lr = 1"), 0);
    assert_int_equal(matched(index, "params.lr = 2"), 2);
    index_free(index);
    assert_int_equal(store_remove(store, "y"), 0);
    index = open_index();
    assert_int_equal(matched(index, ""), 1);
    index_free(index);
}

static void many_small_puts_leave_few_segments(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct prng random;
        prng_init(&random, (uint64_t)i);
        put_random(&random, i);
        index_free(open_index());
    }
    struct index *index = open_index();
    assert_int_equal(index->rows, 200);
    assert_true(index->count <= 9);
    assert_int_equal(matched(index, ""), 200);
    index_free(index);
}

static void damaged_files_are_built_anew(void **state)
{
    (void)state;
    put_many(500);
    struct index *index = open_index();
    const uint64_t right = matched(index, "params.batch = 32");
    const uint64_t file = index->parts[0].file;
    index_free(index);
    char path[160];
    (void)snprintf(path, sizeof path, "%s/index/%016llx.seg", root,
                   (unsigned long long)file);
    assert_int_equal(file_write_atomic(path, "SondeSegrubbish", 15, 0600), 0);
    index = open_index();
    assert_int_equal(matched(index, "params.batch = 32"), right);
    index_free(index);
    (void)snprintf(path, sizeof path, "%s/index/list", root);
    assert_int_equal(file_write_atomic(path, "SondeIdx", 8, 0600), 0);
    index = open_index();
    assert_int_equal(matched(index, "params.batch = 32"), right);
    index_free(index);
}

static void another_store_is_noticed(void **state)
{
    (void)state;
    put("{\"id\":\"x\",\"params\":{\"lr\":1}}", 0);
    index_free(open_index());
    store_close(store);
    char path[160];
    static const char *const names[] = { "sonde.db", "sonde.db-wal", "sonde.db-shm" };
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", root, names[i]);
        assert_int_equal(file_remove_tree(path), 0);
    }
    assert_int_equal(store_open(root, STORE_WRITE, &store, NULL), 0);
    put("{\"id\":\"z\",\"params\":{\"lr\":9}}", 0);
    struct index *index = open_index();
    assert_int_equal(matched(index, "params.lr = 1"), 0);
    assert_int_equal(matched(index, "params.lr = 9"), 1);
    index_free(index);
}

static void sorting_puts_what_is_missing_last(void **state)
{
    (void)state;
    put("{\"id\":\"a\",\"metrics\":{\"acc\":0.5}}", 0);
    put("{\"id\":\"b\"}", 0);
    put("{\"id\":\"c\",\"metrics\":{\"acc\":0.9}}", 0);
    put("{\"id\":\"d\",\"metrics\":{\"acc\":0.1}}", 0);
    struct index *index = open_index();
    for (int up = 0; up < 2; up++) {
        static const int64_t orders[2][4] = { { 3, 1, 4, 2 }, { 4, 1, 3, 2 } };
        struct search_query q = { .sort = "metrics.acc", .ascending = up };
        struct search_result result;
        for (size_t limit = 1; limit <= 4; limit++) {
            q.limit = limit;
            assert_int_equal(search_run(index, &q, &result), 0);
            assert_int_equal(result.count, limit);
            assert_int_equal(result.matched, 4);
            for (size_t i = 0; i < limit; i++)
                assert_int_equal(result.hits[i].seq, orders[up][i]);
            search_result_release(&result);
        }
    }
    index_free(index);
}

/* ---- Likeness ----------------------------------------------------------------------- */

static uint32_t distance(const int8_t *a, const int8_t *b)
{
    uint32_t sum = 0;
    for (int i = 0; i < EMBED_DIMS; i++)
        sum += (uint32_t)((a[i] - b[i]) * (a[i] - b[i]));
    return sum;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The search that passes over most of the vectors finds what comparing all finds. */
static void the_nearest_are_the_nearest(void **state)
{
    (void)state;
    enum { COUNT = 3000, NEAREST = 10 };
    put_many(COUNT);
    struct index *index = open_index();
    for (int64_t seq = 1; seq < COUNT; seq += 137) {
        int8_t query[EMBED_DIMS], other[EMBED_DIMS];
        uint32_t all[COUNT];
        size_t n = 0;
        assert_int_equal(search_vector_of(index, seq, query), 0);
        for (int64_t s = 1; s <= COUNT; s++) {
            assert_int_equal(search_vector_of(index, s, other), 0);
            if (s != seq)
                all[n++] = distance(query, other);
        }
        qsort(all, n, sizeof *all, by_number);
        const struct search_query q = { .like = query,
                                        .except_seq = seq,
                                        .limit = NEAREST };
        struct search_result result;
        assert_int_equal(search_run(index, &q, &result), 0);
        assert_int_equal(result.count, NEAREST);
        for (size_t i = 0; i < NEAREST; i++)
            assert_int_equal(result.hits[i].distance, all[i]);
        search_result_release(&result);
    }
    index_free(index);
}

static void every_kernel_says_the_same(void **state)
{
    (void)state;
    struct prng random;
    prng_init(&random, 9);
    for (int round = 0; round < 20000; round++) {
        int8_t a[EMBED_PLANE], b[EMBED_PLANE];
        for (int i = 0; i < EMBED_PLANE; i++) {
            a[i] = (int8_t)prng_next(&random);
            b[i] = (int8_t)prng_next(&random);
        }
        if (round == 0)
            memset(a, 127, sizeof a), memset(b, -128, sizeof b);
        assert_int_equal(plane_distance()(a, b), plane_distance_scalar(a, b));
    }
}

static void logarithms_are_right_to_the_last_bit_but_one(void **state)
{
    (void)state;
    struct prng random;
    prng_init(&random, 2);
    for (int round = 0; round < 20000; round++) {
        const double x = ldexp(1 + prng_double(&random),
                               (int)prng_below(&random, 200) - 100);
        assert_near((double)embed_log2(x) / 4294967296.0, log2(x), 1e-9);
    }
    assert_true(embed_log2(1) == 0);
    assert_true(embed_log2(8) == INT64_C(3) << 32);
    assert_true(embed_log2(0.5) == -(INT64_C(1) << 32));
}

/* The sum over all vectors of a fixed set: another compiler, another level of
 * optimisation, another processor must find the same (tools/embedding_bytes does). */
static void the_bytes_never_change(void **state)
{
    (void)state;
    put_many(1000);
    struct index *index = open_index();
    uint32_t crc = 0;
    for (int64_t seq = 1; seq <= 1000; seq++) {
        int8_t vector[EMBED_DIMS], row[EMBED_DIMS];
        size_t part;
        uint32_t at;
        assert_int_equal(search_vector_of(index, seq, vector), 0);
        assert_true(index_find_seq(index, seq, &part, &at));
        embed_row(&index->space, &index->parts[part].segment, at, row);
        assert_memory_equal(vector, row, sizeof vector);
        crc = crc32c(crc, vector, sizeof vector);
    }
    if (getenv("SONDE_PRINT_BYTES"))
        printf("bytes %08x\n", crc);
    assert_int_equal(crc, 0xf27ddbcc);
    index_free(index);
}

static void likeness_is_explained(void **state)
{
    (void)state;
    put("{\"id\":\"a\",\"params\":{\"lr\":0.1,\"opt\":\"adam\",\"n\":1}}", 0);
    put("{\"id\":\"b\",\"params\":{\"lr\":0.2,\"opt\":\"adam\",\"n\":1}}", 0);
    put("{\"id\":\"c\",\"params\":{\"lr\":0.9,\"opt\":\"sgd\",\"n\":2}}", 0);
    put("{\"id\":\"d\",\"params\":{\"lr\":0.5,\"opt\":\"sgd\"}}", 0);
    struct index *index = open_index();
    struct likeness why[8];
    assert_int_equal(search_explain(index, 1, 2, why, 8), 3);
    assert_memory_equal(why[0].name, "params.lr", 9);
    assert_near(why[0].difference, 0.125, 1e-4);
    assert_int_equal(why[1].state, LIKE_SAME);
    assert_int_equal(search_explain(index, 1, 4, why, 8), 3);
    assert_memory_equal(why[0].name, "params.opt", 10);
    assert_int_equal(why[0].state, LIKE_FAR);
    assert_int_equal(why[2].state, LIKE_MISSING);
    index_free(index);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_index_follows_the_store),
        TEST(many_small_puts_leave_few_segments),
        TEST(damaged_files_are_built_anew),
        TEST(another_store_is_noticed),
        TEST(sorting_puts_what_is_missing_last),
        TEST(the_nearest_are_the_nearest),
        cmocka_unit_test(every_kernel_says_the_same),
        cmocka_unit_test(logarithms_are_right_to_the_last_bit_but_one),
        TEST(the_bytes_never_change),
        TEST(likeness_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
