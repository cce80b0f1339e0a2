/* filter_test.c: the filter language, its logic and its mistakes. */
#include "unit.h"

#include <string.h>

#include "base/error.h"
#include "search/filter.h"
#include "store/experiment.h"

static struct segment segment;

/* Row i of this list is bit i of an answer. */
static const char *const rows[] = {
    /* 0 */ "{\"id\":\"a\",\"params\":{\"batch\":32,\"opt\":\"adam\",\"amp\":true},"
            "\"metrics\":{\"accuracy\":0.95},\"duration_s\":10,\"memory_peak_mb\":100,"
            "\"tags\":{\"team\":\"x\"},\"document\":\"wide resnet\"}",
    /* 1 */
    "{\"id\":\"b\",\"params\":{\"batch\":32.0,\"opt\":\"sgd\",\"amp\":false},"
    "\"metrics\":{\"accuracy\":0.85},\"duration_s\":700}",
    /* 2 */
    "{\"id\":\"c\",\"params\":{\"batch\":\"32\",\"opt\":\"adamw\"},"
    "\"metrics\":{\"accuracy\":\"NaN\"}}",
    /* 3 */ "{\"id\":\"d\",\"metrics\":{\"val/loss\":1},\"started\":\"2026-01-02\"}",
    /* 4 */
    "{\"id\":\"e\",\"params\":{\"accuracy\":7,\"my word\":1},\"name\":\"it's\"}",
};
enum { ROWS = sizeof rows / sizeof *rows };

static int setup(void **state)
{
    (void)state;
    struct segment_builder *b = segment_builder_new();
    struct arena arena = ARENA_INIT;
    struct buf bytes = BUF_INIT, message = BUF_INIT;
    for (int i = 0; i < ROWS; i++) {
        struct experiment e;
        if (experiment_parse(rows[i], strlen(rows[i]), &arena, &e, &message) < 0)
            return -1;
        e.seq = i + 1;
        if (segment_builder_add(b, &e) < 0)
            return -1;
    }
    int rc = segment_builder_write(b, &bytes);
    const size_t len = bytes.len;
    if (rc == 0)
        rc = segment_attach(buf_steal(&bytes), len, false, &segment);
    segment_builder_free(b);
    arena_release(&arena);
    buf_release(&message);
    return rc;
}

static int teardown(void **state)
{
    (void)state;
    segment_release(&segment);
    return 0;
}

static uint64_t apply(const char *text)
{
    struct arena arena = ARENA_INIT;
    struct filter *f = NULL;
    struct filter_error error;
    uint64_t bits = 0;
    const int rc = text[0] == '{'
                       ? filter_parse_where(text, strlen(text), &arena, &f, &error)
                       : filter_parse(text, &arena, &f, &error);
    if (rc < 0)
        fail_msg("%s: %s at %zu", text, error.message, error.position);
    assert_int_equal(filter_apply(f, &segment, &bits), 0);
    filter_release(f);
    arena_release(&arena);
    return bits;
}

static void expect(const char *text, const char *ids)
{
    char found[ROWS + 1] = "";
    const uint64_t bits = apply(text);
    for (int i = 0, n = 0; i < ROWS; i++)
        if (bits >> i & 1)
            found[n++] = (char)('a' + i);
    if (strcmp(found, ids) != 0)
        fail_msg("%s: '%s', not '%s'", text, found, ids);
}

static void comparisons_know_their_kinds(void **state)
{
    (void)state;
    expect("", "abcde");
    expect("params.batch = 32", "ab");
    expect("params.batch == 32.0", "ab");
    expect("params.batch = '32'", "c");
    expect("params.batch != 32", "c"); /* missing is neither */
    expect("params.batch >= 31.5 and params.batch < 33", "ab");
    expect("params.opt = adam", "a");
    expect("params.opt = \"adam\"", "a");
    expect("params.opt > 'adam'", "bc");
    expect("params.amp = true", "a");
    expect("params.amp != true", "b");
    expect("params.amp = 1", "");
    expect("metrics.accuracy >= 0.9", "a");
    expect("metrics.accuracy < 2", "ab"); /* NaN is not */
    expect("name = 'it''s'", "e");
    expect("metrics.val/loss = 1", "d");
    expect("params.\"my word\" = 1", "e");
    expect("id in (a, 'c', \"e\")", "ace");
    expect("id not in (a, c)", "bde");
    expect("params.batch in (32, 64)", "ab");
    expect("params.opt contains 'dam'", "ac");
    expect("document contains resnet", "a");
}

static void units_and_moments(void **state)
{
    (void)state;
    expect("duration < 1m", "a");
    expect("duration_s >= 10s and duration <= 700", "ab");
    expect("memory_peak_mb <= 0.1GB", "a");
    expect("started < 2026-06-01", "d");
    expect("started = '2026-01-02T00:00:00Z'", "d");
}

static void logic_has_three_values(void **state)
{
    (void)state;
    expect("not params.batch = 32", "c");
    expect("not metrics.accuracy > 0.9", "b"); /* neither NaN nor missing */
    expect("not (params.batch = 32 or params.opt = 'adamw')", "");
    expect("params.batch = 32 or metrics.val/loss = 1", "abd");
    expect("params.batch = 32 and params.opt = 'sgd' or id = d", "bd");
    expect("params.batch = 32 and (params.opt = 'sgd' or id = d)", "b");
    expect("params.batch is missing", "de");
    expect("params.batch is not missing", "abc");
    expect("exists(params.amp)", "ab");
    expect("not exists(params.amp)", "cde");
    expect("NOT NOT id = a", "a");
}

static void bare_names_look_around(void **state)
{
    (void)state;
    expect("accuracy > 0.8", "abe"); /* metric first, then parameter */
    expect("team = x", "a");
    expect("{\"team\":\"x\"}", "a");
}

static void where_has_chromas_meaning(void **state)
{
    (void)state;
    expect("{\"params.batch\":32}", "ab");
    expect("{\"params.batch\":{\"$ne\":32}}", "cde");
    expect("{\"params.batch\":{\"$nin\":[32]}}", "cde");
    expect("{\"params.batch\":{\"$gt\":1}}", "ab");
    expect("{\"params.amp\":{\"$ne\":true}}", "bcde");
    expect("{\"$or\":[{\"id\":\"a\"},{\"id\":\"e\"}]}", "ae");
    expect("{\"$and\":[{\"params.batch\":32},{\"params.opt\":{\"$in\":[\"sgd\"]}}]}",
           "b");
    expect("{\"params.batch\":32,\"params.opt\":\"sgd\"}", "b"); /* several keys: AND */
    expect("{\"params.amp\":{\"$exists\":false}}", "cde");
    expect("{}", "abcde");
}

static void mistakes_are_told_where_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t position;
        const char *words;
    } bad[] = {
        { "params.lr <", 12, "value" },
        { "params.lr 3", 11, "comparison" },
        { "and", 4, "comparison" },
        { "a = 1 b = 2", 7, "'and' or 'or'" },
        { "(a = 1", 7, "bracket" },
        { "a = 'x", 5, "closing" },
        { "a in 3", 6, "list" },
        { "a in (1", 8, "no end" },
        { "a = 1 and", 10, "name" },
        { "a ? 1", 3, "'?'" },
        { "a is there", 6, "missing" },
        { "{\"a\":{\"$gt\":\"x\"}}", 0, "number" },
        { "{\"a\":{\"$in\":[]}}", 0, "empty" },
        { "{\"a\":{\"$in\":[1,\"x\"]}}", 0, "one type" },
        { "{\"a\":[1]}", 0, "should stand here" },
        { "{\"$foo\":1}", 0, "unknown operator" },
        { "{\"a\":{}}", 0, "no operator" },
        { "{", 0, "JSON" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena arena = ARENA_INIT;
        struct filter *f = NULL;
        struct filter_error error;
        const char *text = bad[i].text;
        const int rc = text[0] == '{'
                           ? filter_parse_where(text, strlen(text), &arena, &f, &error)
                           : filter_parse(text, &arena, &f, &error);
        if (rc == 0)
            fail_msg("%s was understood", text);
        if (!strstr(error.message, bad[i].words))
            fail_msg("%s: '%s'", text, error.message);
        if (bad[i].position && error.position != bad[i].position)
            fail_msg("%s: at %zu", text, error.position);
        arena_release(&arena);
    }
}

static void depth_is_limited(void **state)
{
    (void)state;
    char text[4096];
    struct arena arena = ARENA_INIT;
    struct filter *f = NULL;
    struct filter_error error;
    memset(text, '(', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(filter_parse(text, &arena, &f, &error), SONDE_E_FORMAT);
    assert_non_null(strstr(error.message, "deep"));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparisons_know_their_kinds),
        cmocka_unit_test(units_and_moments),
        cmocka_unit_test(logic_has_three_values),
        cmocka_unit_test(bare_names_look_around),
        cmocka_unit_test(where_has_chromas_meaning),
        cmocka_unit_test(mistakes_are_told_where_they_are),
        cmocka_unit_test(depth_is_limited),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
