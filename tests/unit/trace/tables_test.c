/* Files of tables: what is written can be read, and nothing else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "trace/tables.h"

struct row {
    uint64_t key;
    uint64_t value;
    uint32_t name;
    uint32_t pad;
};

static char dir[64];
static struct tables tables;
static const struct tables_spec specs[] = { { "things", sizeof(struct row), 100000 },
                                            { "few", 8, 3 } };

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/sonde-tables-XXXXXX");
    return mkdtemp(dir) ? tables_create(dir, "test", NULL, specs, 2, &tables) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(tables.path);
    tables_close(&tables);
    return rmdir(dir);
}

static uint32_t add(uint64_t value, const char *name)
{
    uint32_t index = UINT32_MAX;
    struct row *row = tables_append(&tables, 1, &index);
    if (!row)
        return UINT32_MAX;
    row->value = value;
    row->name = tables_text(&tables, name, strlen(name));
    __atomic_store_n(&row->key, 1, __ATOMIC_RELEASE);
    return index;
}

static struct tablefile *reopened(void)
{
    struct tablefile *file = NULL;
    assert_int_equal(tablefile_open(tables.path, &file), 0);
    return file;
}

static void rows_and_texts_come_back(void **state)
{
    (void)state;
    enum { ROWS = 5000 };
    for (unsigned i = 0; i < ROWS; i++) {
        char name[64];
        snprintf(name, sizeof name, "thing number %u with a longish name", i);
        assert_int_equal(add(i * 7, name), i);
    }
    struct tablefile *file = reopened();
    const int things = tablefile_find(file, "things");
    assert_string_equal(tablefile_head(file)->kind, "test");
    assert_int_equal(tablefile_count(file, things), ROWS);
    for (unsigned i = 0; i < ROWS; i++) {
        struct row row;
        char name[64];
        snprintf(name, sizeof name, "thing number %u with a longish name", i);
        assert_true(tablefile_get(file, things, i, &row, sizeof row));
        assert_int_equal(row.value, i * 7);
        assert_string_equal(tablefile_text(file, row.name), name);
    }
    struct row none;
    assert_false(tablefile_get(file, things, ROWS, &none, sizeof none));
    assert_int_equal(tablefile_find(file, "nothing"), -1);
    tablefile_free(file);
}

static void a_row_without_a_key_does_not_exist(void **state)
{
    (void)state;
    uint32_t index;
    struct row *row = tables_append(&tables, 1, &index), got;
    row->value = 5;
    struct tablefile *file = reopened();
    assert_false(tablefile_get(file, 1, index, &got, sizeof got));
    tablefile_free(file);
    __atomic_store_n(&row->key, 9, __ATOMIC_RELEASE);
    file = reopened();
    assert_true(tablefile_get(file, 1, index, &got, sizeof got));
    assert_int_equal(got.value, 5);
    tablefile_free(file);
}

static void a_full_table_refuses_and_counts(void **state)
{
    (void)state;
    uint32_t index;
    for (int i = 0; i < 3; i++)
        assert_non_null(tables_append(&tables, 2, &index));
    assert_null(tables_append(&tables, 2, &index));
    assert_null(tables_append(&tables, 2, &index));
    assert_int_equal(tables_head(&tables)->table[2].refused, 2);
    assert_int_equal(tables_head(&tables)->table[2].count, 3);
}

static void readers_of_another_row_size_get_what_both_know(void **state)
{
    (void)state;
    const uint32_t index = add(77, "x");
    struct tablefile *file = reopened();
    uint64_t shorter[2];
    assert_true(tablefile_get(file, 1, index, shorter, sizeof shorter));
    assert_int_equal(shorter[1], 77);
    uint64_t longer[6] = { 1, 1, 1, 1, 1, 1 };
    assert_true(tablefile_get(file, 1, index, longer, sizeof longer));
    assert_int_equal(longer[1], 77);
    assert_int_equal(longer[3] + longer[4] + longer[5], 0);
    tablefile_free(file);
}

static void a_long_text_is_cut_and_none_is_lost_between_blocks(void **state)
{
    (void)state;
    char text[TABLES_TEXT_LONGEST + 100];
    memset(text, 'a', sizeof text);
    for (int i = 0; i < 20; i++) {
        text[0] = (char)('A' + i);
        const uint32_t place = tables_text(&tables, text, sizeof text);
        assert_int_not_equal(place, 0);
        assert_int_equal(strlen(tables_text_at(&tables, place)), TABLES_TEXT_LONGEST);
        struct tablefile *file = reopened();
        assert_int_equal(tablefile_text(file, place)[0], 'A' + i);
        assert_int_equal(strlen(tablefile_text(file, place)), TABLES_TEXT_LONGEST);
        tablefile_free(file);
    }
}

static void a_file_size_limit_refuses_instead_of_killing(void **state)
{
    (void)state;
    struct rlimit old, low = { 4 * TABLES_BLOCK, RLIM_INFINITY };
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    unsigned good = 0;
    for (unsigned i = 0; i < 5000; i++)
        good += add(i, "") != UINT32_MAX;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_in_range(good, TABLES_BLOCK / sizeof(struct row), 4999);
    assert_int_equal(tables_head(&tables)->table[1].refused, 5000 - good);
    assert_true(tables_head(&tables)->lost_reason & LOST_FILE_LIMIT);
}

static void captures_leave_half_of_the_budget_to_events(void **state)
{
    (void)state;
    struct control control = { .max_blocks = 8 };
    struct tables mine;
    assert_int_equal(tables_create(dir, "budget", &control, specs, 2, &mine), 0);
    uint32_t index;
    while (tables_append(&mine, 1, &index))
        ;
    assert_int_equal(control.used_blocks, 4);
    assert_true(tables_head(&mine)->lost_reason & LOST_BUDGET);
    (void)unlink(mine.path);
    tables_close(&mine);
}

static void *add_many(void *arg)
{
    for (uint64_t i = 0; i < 3000; i++)
        assert_int_not_equal(add((uint64_t)(uintptr_t)arg << 32 | i, "threaded"),
                             UINT32_MAX);
    return NULL;
}

static void threads_append_side_by_side(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, add_many, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(thread[i], NULL);
    uint64_t next[THREADS] = { 0 };
    struct tablefile *file = reopened();
    assert_int_equal(tablefile_count(file, 1), THREADS * 3000);
    for (uint32_t i = 0; i < THREADS * 3000; i++) {
        struct row row;
        assert_true(tablefile_get(file, 1, i, &row, sizeof row));
        assert_int_equal(row.value & UINT32_MAX, next[row.value >> 32]++);
        assert_string_equal(tablefile_text(file, row.name), "threaded");
    }
    tablefile_free(file);
}

static void read_everything(const uint8_t *bytes, size_t len)
{
    struct tablefile *file;
    if (tablefile_parse(bytes, len, &file) < 0)
        return;
    for (int t = 0; t < TABLES_MAX; t++)
        for (uint32_t i = 0; i < tablefile_count(file, t) && i < 3000; i++) {
            struct row row;
            if (tablefile_get(file, t, i, &row, sizeof row))
                (void)strlen(tablefile_text(file, row.name));
        }
    tablefile_free(file);
}

static void secrets_leave_the_texts_and_nothing_else_moves(void **state)
{
    (void)state;
    static const char before[] = "/data/train.bin";
    static const char secret[] = "/x/api_key=sk-abcdefghijklmnopqrstuvwxyz0123";
    static const char shorter[] = "token=a";
    const uint32_t a = tables_text(&tables, before, strlen(before));
    const uint32_t b = tables_text(&tables, secret, strlen(secret));
    const uint32_t c = tables_text(&tables, shorter, strlen(shorter));
    const uint32_t d = tables_text(&tables, "last", 4);
    struct tablefile *file = NULL;
    assert_true(tables_redact(tables.path) >= 1);
    assert_int_equal(tablefile_open(tables.path, &file), 0);
    assert_string_equal(tablefile_text(file, a), before);
    assert_null(strstr(tablefile_text(file, b), "sk-abc"));
    assert_int_equal(strncmp(tablefile_text(file, b), "/x/api_key=[redacted]", 14), 0);
    assert_true(strlen(tablefile_text(file, c)) <= strlen(shorter));
    assert_string_equal(tablefile_text(file, d), "last");
    assert_int_equal(tables_redact(tables.path), 0); /* once is enough */
    tablefile_free(file);
}

static void cut_and_damaged_files_are_no_danger(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++)
        (void)add(i, "some text");
    struct stat st;
    assert_int_equal(stat(tables.path, &st), 0);
    uint8_t *bytes = malloc((size_t)st.st_size);
    FILE *in = fopen(tables.path, "rb");
    assert_int_equal(fread(bytes, 1, (size_t)st.st_size, in), st.st_size);
    (void)fclose(in);
    for (size_t len = 0; len <= (size_t)st.st_size; len += 997)
        read_everything(bytes, len);
    /* The head, table entries and all, and the words of block 1. */
    for (size_t at = 0; at < TABLES_BLOCK + 64;
         at += at == sizeof(struct tables_head) ? TABLES_BLOCK - at : 1)
        for (unsigned bit = 0; bit < 8; bit += 3) {
            bytes[at] ^= (uint8_t)(1u << bit);
            read_everything(bytes, (size_t)st.st_size);
            bytes[at] ^= (uint8_t)(1u << bit);
        }
    struct tablefile *file;
    bytes[8]++; /* the major version */
    assert_int_equal(tablefile_parse(bytes, (size_t)st.st_size, &file),
                     SONDE_E_VERSION);
    free(bytes);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(rows_and_texts_come_back),
        TEST(a_row_without_a_key_does_not_exist),
        TEST(a_full_table_refuses_and_counts),
        TEST(readers_of_another_row_size_get_what_both_know),
        TEST(a_long_text_is_cut_and_none_is_lost_between_blocks),
        TEST(a_file_size_limit_refuses_instead_of_killing),
        TEST(captures_leave_half_of_the_budget_to_events),
        TEST(threads_append_side_by_side),
        TEST(secrets_leave_the_texts_and_nothing_else_moves),
        TEST(cut_and_damaged_files_are_no_danger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
