/* jread_test.c: the piecewise JSON reader agrees with jansson. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include <jansson.h>

#include "num/prng.h"
#include "store/jread.h"

/* Reads the text into a jansson tree, or NULL. */
static json_t *build(struct jread *r, struct arena *arena)
{
    size_t len;
    json_t *made = NULL;
    switch (r->token) {
    case JREAD_OBJECT_BEGIN:
        made = json_object();
        while (jread_next(r) == JREAD_KEY) {
            const char *key = jread_text(r, arena, &len);
            (void)jread_next(r);
            json_t *value = build(r, arena);
            if (!value || json_object_set_new(made, key, value) < 0) {
                json_decref(made);
                return NULL;
            }
        }
        if (r->token == JREAD_OBJECT_END)
            return made;
        break;
    case JREAD_ARRAY_BEGIN:
        made = json_array();
        while (jread_next(r) != JREAD_ARRAY_END) {
            json_t *value = build(r, arena);
            if (!value || json_array_append_new(made, value) < 0) {
                json_decref(made);
                return NULL;
            }
        }
        return made;
    case JREAD_STRING: {
        const char *text = jread_text(r, arena, &len);
        return json_stringn(text, len);
    }
    case JREAD_INT:
        return json_integer(r->integer);
    case JREAD_FLOAT:
        return json_real(r->number);
    case JREAD_TRUE:
        return json_true();
    case JREAD_FALSE:
        return json_false();
    case JREAD_NULL:
        return json_null();
    default:
        break;
    }
    json_decref(made);
    return NULL;
}

static json_t *read_all(const char *text, size_t len)
{
    struct jread r;
    struct arena arena = ARENA_INIT;
    jread_init(&r, text, len);
    (void)jread_next(&r);
    json_t *tree = build(&r, &arena);
    if (tree && jread_next(&r) != JREAD_END) {
        json_decref(tree);
        tree = NULL;
    }
    arena_release(&arena);
    return tree;
}

static void compare(const char *text, size_t len)
{
    json_t *ours = read_all(text, len);
    json_t *theirs = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!json_equal(ours, theirs) && (ours || theirs))
        fail_msg("jansson %s '%.*s'", theirs ? "takes" : "refuses", (int)len, text);
    json_decref(ours);
    json_decref(theirs);
}

static void texts_that_are_json_and_that_are_not(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        "{\"a\":1}",
        " [1, 2.5 ,\"x\"]\n",
        "{\"a\":{\"b\":[true,false,null]}}",
        "\"\\u00e4\\ud83d\\ude00\\n\\\"\\\\\\/\"",
        "-0",
        "0",
        "-1.5e-3",
        "1E5",
        "01",
        "1.",
        ".5",
        "-",
        "+1",
        "1e",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "[1 2]",
        "",
        " ",
        "tru",
        "nul",
        "[",
        "{",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\x01\"",
        "\"\xff\"",
        "\"\xc3\xa4\"",
        "\"\xc0\x80\"",
        "1 2",
        "[[[[]]]]",
        "]",
        "}",
        "{\"a\":}",
        "[,1]",
        "123456789012345678",
        "0.1",
        "1e308",
        "2.2250738585072014e-308",
        "9007199254740993.0",
        "1e22",
        "1e23",
        "0.000001",
        "123456.789e3",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        compare(texts[i], strlen(texts[i]));
}

static void random_changes_of_json(void **state)
{
    (void)state;
    static const char seed[] = "{\"params\": {\"lr\": 1.5e-3, \"n\": [1, -2, 3.25]}, "
                               "\"t\": \"a\\u00e4\\n\", \"b\": [true, null, {}]}";
    static const char letters[] = "{}[]\",:\\u0189eE+-. tfn\xc3\xa4";
    struct prng random;
    prng_init(&random, 7);
    for (int round = 0; round < 20000; round++) {
        char text[sizeof seed];
        memcpy(text, seed, sizeof seed);
        const size_t len = sizeof seed - 1;
        for (uint64_t i = prng_below(&random, 4); i-- > 0;)
            text[prng_below(&random, len)] =
                letters[prng_below(&random, sizeof letters - 1)];
        compare(text, len);
    }
}

static void numbers_are_those_of_strtod(void **state)
{
    (void)state;
    struct prng random;
    prng_init(&random, 11);
    for (int round = 0; round < 50000; round++) {
        char text[64];
        const int digits = 1 + (int)prng_below(&random, 20);
        const double x = (prng_double(&random) - 0.5) *
                         pow(10, (double)prng_below(&random, 60) - 30);
        (void)snprintf(text, sizeof text, "%.*g", digits, x);
        double ours;
        bool integer;
        int64_t value;
        assert_true(number_parse(text, strlen(text), &ours, &integer, &value));
        if (ours != strtod(text, NULL))
            fail_msg("%s is %.17g, not %.17g", text, ours, strtod(text, NULL));
    }
}

static void integers_keep_all_their_digits(void **state)
{
    (void)state;
    double number;
    bool integer;
    int64_t value;
    assert_true(number_parse("9223372036854775807", 19, &number, &integer, &value));
    assert_true(integer && value == INT64_MAX);
    assert_true(number_parse("-9223372036854775808", 20, &number, &integer, &value));
    assert_true(integer && value == INT64_MIN);
    assert_true(number_parse("9223372036854775808", 19, &number, &integer, &value));
    assert_false(integer);
    assert_true(number == 9223372036854775808.0);
    assert_true(number_parse(".5", 2, &number, &integer, &value) && number == 0.5);
    assert_false(number_parse("", 0, &number, &integer, &value));
    assert_false(number_parse("1x", 2, &number, &integer, &value));
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    char deep[2 * JREAD_DEPTH + 10];
    memset(deep, '[', sizeof deep);
    struct jread r;
    jread_init(&r, deep, sizeof deep);
    while (jread_next(&r) == JREAD_ARRAY_BEGIN)
        ;
    assert_int_equal(r.token, JREAD_ERROR);
    assert_string_equal(r.error, "nested too deeply");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_that_are_json_and_that_are_not),
        cmocka_unit_test(random_changes_of_json),
        cmocka_unit_test(numbers_are_those_of_strtod),
        cmocka_unit_test(integers_keep_all_their_digits),
        cmocka_unit_test(nesting_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
