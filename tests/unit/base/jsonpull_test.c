/* Tokens of JSON from a stream that comes in pieces of any size. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/jsonpull.h"
#include "num/prng.h"

struct bytes {
    const char *data;
    size_t at, len, piece;
};

static long read_bytes(void *arg, void *into, size_t len)
{
    struct bytes *b = arg;
    size_t n = b->len - b->at;
    if (n > b->piece)
        n = b->piece;
    if (n > len)
        n = len;
    memcpy(into, b->data + b->at, n);
    b->at += n;
    return (long)n;
}

/* The document again, in one form: what was read, and nothing lost. */
static int spell(const char *text, size_t len, size_t piece, struct buf *out)
{
    struct bytes bytes = { text, 0, len, piece };
    struct jsonpull p;
    enum json_token token;
    jsonpull_init(&p, read_bytes, &bytes);
    while ((token = jsonpull_next(&p)) > JSON_END) {
        buf_printf(out, "%d", (int)token);
        if (token == JSON_KEY || token == JSON_STRING)
            buf_printf(out, "<%.*s>", (int)p.text_len, p.text);
        if (token == JSON_NUMBER)
            buf_printf(out, "(%.17g)", jsonpull_number(&p));
    }
    const int rc = p.error;
    jsonpull_release(&p);
    return rc;
}

static void same_for_every_size_of_piece(const char *text)
{
    struct buf whole = BUF_INIT;
    assert_int_equal(spell(text, strlen(text), 1 << 20, &whole), 0);
    for (size_t piece = 1; piece < 9; piece++) {
        struct buf part = BUF_INIT;
        assert_int_equal(spell(text, strlen(text), piece, &part), 0);
        assert_string_equal(part.data, whole.data);
        buf_release(&part);
    }
    buf_release(&whole);
}

static void tokens_are_the_same_however_the_bytes_come(void **state)
{
    (void)state;
    same_for_every_size_of_piece(
        "{\"a\": [1, -2.5e3, true, false, null, \"x\\n\\u00e4\\ud83d\\ude00\"],"
        " \"b\" : {} , \"c\\\"d\": [[], [[0]]], \"e\":\"\"}");
    same_for_every_size_of_piece("[]");
    same_for_every_size_of_piece(" 3.25 ");
}

static void texts_are_unescaped(void **state)
{
    (void)state;
    const char text[] = "[\"a\\\\b\\/\\t\\u0041\\u20ac\\ud83d\\ude00\\ud800x\\u0000\"]";
    struct bytes bytes = { text, 0, sizeof text - 1, 3 };
    struct jsonpull p;
    jsonpull_init(&p, read_bytes, &bytes);
    assert_int_equal(jsonpull_next(&p), JSON_ARRAY);
    assert_int_equal(jsonpull_next(&p), JSON_STRING);
    assert_string_equal(
        p.text, "a\\b/\tA\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbdx\xef\xbf\xbd");
    assert_int_equal(p.text_len, strlen(p.text));
    assert_int_equal(jsonpull_next(&p), JSON_ARRAY_END);
    assert_int_equal(jsonpull_next(&p), JSON_END);
    jsonpull_release(&p);
}

static void a_value_can_be_passed_over(void **state)
{
    (void)state;
    const char text[] = "{\"skip\": {\"deep\": [1, {\"x\": \"}]\"}]}, \"next\": 7}";
    struct bytes bytes = { text, 0, sizeof text - 1, 2 };
    struct jsonpull p;
    jsonpull_init(&p, read_bytes, &bytes);
    assert_int_equal(jsonpull_next(&p), JSON_OBJECT);
    assert_int_equal(jsonpull_next(&p), JSON_KEY);
    assert_true(jsonpull_skip(&p, jsonpull_next(&p)));
    assert_int_equal(jsonpull_next(&p), JSON_KEY);
    assert_string_equal(p.text, "next");
    assert_int_equal(jsonpull_next(&p), JSON_NUMBER);
    assert_true(jsonpull_number(&p) == 7);
    jsonpull_release(&p);
}

static void what_is_no_json_is_an_error(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",          "{",      "[1,]",      "{\"a\"}",     "{\"a\":}", "[1 2]",
        "{1:2}",     "\"open", "[\"\\x\"]", "tru",         "}",        "[}",
        "{\"a\":1]", "[1]x",   "nul",       "[\"\\u12\"]", ",",        "{,}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t piece = 1; piece < 4; piece++) {
            struct buf out = BUF_INIT;
            assert_int_equal(spell(bad[i], strlen(bad[i]), piece, &out),
                             SONDE_E_FORMAT);
            buf_release(&out);
        }
}

static void nesting_and_tokens_are_bounded(void **state)
{
    (void)state;
    char deep[1000];
    struct buf out = BUF_INIT;
    memset(deep, '[', sizeof deep);
    assert_int_equal(spell(deep, sizeof deep, 100, &out), SONDE_E_LIMIT);
    const size_t len = (size_t)JSONPULL_TOKEN_MAX * 3;
    char *huge = malloc(len);
    assert_non_null(huge);
    memset(huge, 'x', len);
    huge[0] = '"';
    assert_int_equal(spell(huge, len, 1 << 20, &out), SONDE_E_LIMIT);
    free(huge);
    buf_release(&out);
}

/* Damage anywhere: an error or other tokens, never a crash (run under sanitizers). */
static void damaged_documents_do_no_harm(void **state)
{
    (void)state;
    const char text[] =
        "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1.5,\"args\":{\"a\":[\"\\u00e9\"]}}]}";
    struct prng r;
    prng_init(&r, 7);
    for (int round = 0; round < 20000; round++) {
        char copy[sizeof text];
        memcpy(copy, text, sizeof text);
        for (int k = 0; k < 3; k++)
            copy[prng_below(&r, sizeof text - 1)] = (char)prng_below(&r, 256);
        struct buf out = BUF_INIT;
        (void)spell(copy, sizeof text - 1, 1 + prng_below(&r, 9), &out);
        buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_the_same_however_the_bytes_come),
        cmocka_unit_test(texts_are_unescaped),
        cmocka_unit_test(a_value_can_be_passed_over),
        cmocka_unit_test(what_is_no_json_is_an_error),
        cmocka_unit_test(nesting_and_tokens_are_bounded),
        cmocka_unit_test(damaged_documents_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
