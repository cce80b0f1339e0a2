#include "base/json.h"

#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "unit.h"

struct doc {
    struct buf text;
    struct json_writer w;
};

static void begin(struct doc *d, enum json_style style)
{
    buf_init(&d->text);
    json_init_buf(&d->w, &d->text, style);
}

static void expect(struct doc *d, const char *expected)
{
    assert_int_equal(json_finish(&d->w), 0);
    assert_string_equal(d->text.data, expected);
    buf_release(&d->text);
}

static void write_sample(struct json_writer *w)
{
    json_object_begin(w);
    json_key(w, "a");
    json_array_begin(w);
    json_put_int(w, -1);
    json_put_uint(w, UINT64_MAX);
    json_array_begin(w);
    json_array_end(w);
    json_object_begin(w);
    json_object_end(w);
    json_array_end(w);
    json_key(w, "b");
    json_put_bool(w, true);
    json_key(w, "c");
    json_put_null(w);
    json_object_end(w);
}

static void commas_and_colons_are_placed_by_the_writer(void **state)
{
    (void)state;
    struct doc d;
    begin(&d, JSON_STYLE_COMPACT);
    write_sample(&d.w);
    expect(&d, "{\"a\":[-1,18446744073709551615,[],{}],\"b\":true,\"c\":null}");
}

static void pretty_text_is_indented_by_two(void **state)
{
    (void)state;
    struct doc d;
    begin(&d, JSON_STYLE_PRETTY);
    write_sample(&d.w);
    json_newline(&d.w);
    expect(&d, "{\n"
               "  \"a\": [\n"
               "    -1,\n"
               "    18446744073709551615,\n"
               "    [],\n"
               "    {}\n"
               "  ],\n"
               "  \"b\": true,\n"
               "  \"c\": null\n"
               "}\n");
}

static void strings_are_escaped(void **state)
{
    (void)state;
    struct doc d;
    begin(&d, JSON_STYLE_COMPACT);
    json_array_begin(&d.w);
    json_put_string(&d.w, "q\" b\\ n\n t\t \b\f\r \x01 \x7f é 😀 /");
    json_put_stringn(&d.w, "a\0b", 3);
    json_put_string(&d.w, "");
    json_put_string(&d.w, NULL);
    json_array_end(&d.w);
    expect(&d, "[\"q\\\" b\\\\ n\\n t\\t \\b\\f\\r \\u0001 \x7f é 😀 /\","
               "\"a\\u0000b\",\"\",null]");
}

static void bytes_that_are_not_utf8_become_replacement_characters(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        { "\xff", "\xef\xbf\xbd" },                 /* no such byte */
        { "a\x80z", "a\xef\xbf\xbdz" },             /* lone continuation */
        { "\xc3", "\xef\xbf\xbd" },                 /* cut off */
        { "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" }, /* overlong */
        { "\xe0\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
        { "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* surrogate */
        { "\xf4\x90\x80\x80",
          "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* past U+10FFFF */
        { "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct doc d;
        begin(&d, JSON_STYLE_COMPACT);
        json_put_string(&d.w, bad[i][0]);
        char expected[64];
        (void)snprintf(expected, sizeof(expected), "\"%s\"", bad[i][1]);
        expect(&d, expected);
    }
}

static void numbers_are_short_and_read_back_the_same(void **state)
{
    (void)state;
    struct doc d;
    begin(&d, JSON_STYLE_COMPACT);
    json_array_begin(&d.w);
    json_put_double(&d.w, 0.1);
    json_put_double(&d.w, 3);
    json_put_double(&d.w, 1.0 / 3);
    json_put_double(&d.w, 1e300);
    json_put_double(&d.w, 0.1 + 0.2);
    json_put_double(&d.w, NAN);
    json_put_double(&d.w, -INFINITY);
    json_array_end(&d.w);
    expect(&d, "[0.1,3,0.3333333333333333,1e+300,0.30000000000000004,null,null]");
}

static void fixed_numbers_lose_their_trailing_zeros(void **state)
{
    (void)state;
    struct doc d;
    begin(&d, JSON_STYLE_COMPACT);
    json_array_begin(&d.w);
    json_put_fixed(&d.w, 70.4, 3);
    json_put_fixed(&d.w, 2.0 / 3, 3);
    json_put_fixed(&d.w, 100, 3);
    json_put_fixed(&d.w, 100, 0);
    json_put_fixed(&d.w, -0.0001, 2);
    json_put_fixed(&d.w, NAN, 2);
    json_put_fixed(&d.w, 1e308, 3);
    json_array_end(&d.w);
    assert_int_equal(json_finish(&d.w), 0);
    assert_memory_equal(d.text.data, "[70.4,0.667,100,100,0,null,1000", 31);
    buf_release(&d.text);
}

static void a_locale_with_decimal_commas_changes_nothing(void **state)
{
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        skip();
    struct doc d;
    begin(&d, JSON_STYLE_COMPACT);
    json_array_begin(&d.w);
    json_put_double(&d.w, 0.5);
    json_put_double(&d.w, 1.5e-9);
    json_put_fixed(&d.w, 2.25, 2);
    json_array_end(&d.w);
    (void)setlocale(LC_NUMERIC, "C");
    expect(&d, "[0.5,1.5e-09,2.25]");
}

static void a_long_document_streams_to_a_file_and_parses(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    struct json_writer w;
    json_init_file(&w, file, JSON_STYLE_PRETTY);
    json_array_begin(&w);
    for (int i = 0; i < 20000; i++) {
        json_object_begin(&w);
        json_key(&w, "i");
        json_put_int(&w, i);
        json_key(&w, "text");
        json_put_string(&w, "some \"quoted\" text");
        json_object_end(&w);
        assert_true(w.own.cap <= 128 * 1024);
    }
    json_array_end(&w);
    assert_int_equal(json_finish(&w), 0);

    rewind(file);
    json_t *root = json_loadf(file, 0, NULL); /* somebody else's parser */
    assert_int_equal(json_array_size(root), 20000);
    json_t *last = json_array_get(root, 19999);
    assert_int_equal(json_integer_value(json_object_get(last, "i")), 19999);
    json_decref(root);
    (void)fclose(file);
}

static void a_huge_string_needs_little_memory(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    const size_t len = 4 << 20;
    char *text = malloc(len);
    memset(text, 'x', len);
    struct json_writer w;
    json_init_file(&w, file, JSON_STYLE_COMPACT);
    json_put_stringn(&w, text, len);
    assert_true(w.own.cap <= 128 * 1024);
    assert_int_equal(json_finish(&w), 0);
    assert_int_equal(ftell(file), (long)len + 2);
    free(text);
    (void)fclose(file);
}

static void a_full_device_is_reported(void **state)
{
    (void)state;
    FILE *file = fopen("/dev/full", "w");
    if (!file)
        skip();
    (void)setvbuf(file, NULL, _IONBF, 0);
    struct json_writer w;
    json_init_file(&w, file, JSON_STYLE_COMPACT);
    json_put_string(&w, "lost");
    assert_int_equal(json_finish(&w), -ENOSPC);
    (void)fclose(file);
}

static void every_nesting_depth_up_to_the_limit_works(void **state)
{
    (void)state;
    struct doc d;
    begin(&d, JSON_STYLE_COMPACT);
    for (int i = 0; i < JSON_MAX_DEPTH; i++)
        json_array_begin(&d.w);
    for (int i = 0; i < JSON_MAX_DEPTH; i++)
        json_array_end(&d.w);
    assert_int_equal(json_finish(&d.w), 0);
    assert_int_equal(d.text.len, 2 * JSON_MAX_DEPTH);
    buf_release(&d.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_and_colons_are_placed_by_the_writer),
        cmocka_unit_test(pretty_text_is_indented_by_two),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(bytes_that_are_not_utf8_become_replacement_characters),
        cmocka_unit_test(numbers_are_short_and_read_back_the_same),
        cmocka_unit_test(fixed_numbers_lose_their_trailing_zeros),
        cmocka_unit_test(a_locale_with_decimal_commas_changes_nothing),
        cmocka_unit_test(a_long_document_streams_to_a_file_and_parses),
        cmocka_unit_test(a_huge_string_needs_little_memory),
        cmocka_unit_test(a_full_device_is_reported),
        cmocka_unit_test(every_nesting_depth_up_to_the_limit_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
