/* page_test.c: hostile names, widths, ASCII. */
#include "unit.h"

#include <string.h>

#include "present/report/page.h"

static const char *clean(const char *text, size_t columns)
{
    static char result[512];
    struct buf b = BUF_INIT;
    clean_text(&b, text, columns);
    (void)snprintf(result, sizeof(result), "%s", b.data);
    buf_release(&b);
    return result;
}

static void nothing_a_terminal_obeys_gets_through(void **state)
{
    (void)state;
    assert_string_equal(clean("a\033[31mb", 0), "a\\x1b[31mb");
    assert_string_equal(clean("a\nb\tc\rd\177", 0), "a\\x0ab\\x09c\\x0dd\\x7f");
    assert_string_equal(clean("a\xc2\x9b"
                              "31mb",
                              0),
                        "a\\x9b31mb"); /* C1 CSI */
    assert_string_equal(clean("a\xe2\x80\xae"
                              "b",
                              0),
                        "a\xef\xbf\xbd"
                        "b"); /* RLO */
    assert_string_equal(clean("a\xff\xfe"
                              "b",
                              0),
                        "a\xef\xbf\xbd\xef\xbf\xbd"
                        "b");
    assert_string_equal(clean("a\xc0\xaf", 0),
                        "a\xef\xbf\xbd\xef\xbf\xbd"); /* overlong */
    assert_string_equal(clean("a\xe2\x82", 0), "a\xef\xbf\xbd\xef\xbf\xbd"); /* cut */
    assert_string_equal(clean("größe · 数", 0), "größe · 数");
}

static void every_byte_comes_out_harmless(void **state)
{
    (void)state;
    uint64_t s = 1;
    for (int i = 0; i < 20000; i++) {
        char text[24];
        size_t n = 0;
        for (; n < sizeof(text) - 1; n++) {
            s = s * 6364136223846793005u + 1442695040888963407u;
            text[n] = (char)(s >> 56);
            if (text[n] == 0)
                break;
        }
        text[n] = 0;
        const size_t columns = (size_t)(s >> 40) % 12;
        const char *out = clean(text, columns);
        for (const char *p = out; *p; p++)
            assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
        assert_null(strstr(out, "\xc2\x9b"));
        if (columns)
            assert_true(text_columns(out) <= columns);
    }
}

static void long_names_are_cut_with_an_ellipsis(void **state)
{
    (void)state;
    assert_string_equal(clean("abcdef", 6), "abcdef");
    assert_string_equal(clean("abcdefg", 6), "abcde…");
    assert_string_equal(clean("äöüäöüä", 6), "äöüäö…");
    assert_string_equal(clean("\033\033\033", 6), "\\x1b…");
    assert_string_equal(clean("ab", 1), "…");
}

/* What the page prints, in a static buffer. */
static const char *flush(struct page *page)
{
    static char result[4096];
    FILE *f = tmpfile();
    assert_int_equal(page_flush(page, f), 0);
    rewind(f);
    result[fread(result, 1, sizeof(result) - 1, f)] = '\0';
    (void)fclose(f);
    page_release(page);
    return result;
}

static void paragraphs_break_between_words(void **state)
{
    (void)state;
    struct page page;
    page_init(&page, 30, false, true);
    page_paragraph(&page, "WHY", BOLD, "one two three four five six seven");
    assert_string_equal(flush(&page), " WHY      one two three four\n"
                                      "          five six seven\n");
    page_init(&page, 20, false, true);
    page_paragraph(&page, "X", BOLD, "averyverylongword b");
    assert_string_equal(flush(&page), " X        averyvery…\n          b\n");
}

static void pieces_flow_and_stay_whole(void **state)
{
    (void)state;
    struct page page;
    struct flow flow;
    page_init(&page, 30, false, true);
    flow_begin(&flow, &page, "STEP");
    flow_put(&flow, "%d ms mean", 12);
    flow_put(&flow, "p50 11");
    flow_put(&flow, "p95 13");
    flow_end(&flow);
    assert_string_equal(flush(&page), " STEP     12 ms mean · p50 11\n"
                                      "          p95 13\n");
}

static void without_unicode_everything_is_ascii_of_the_same_width(void **state)
{
    (void)state;
    struct page page;
    page_init(&page, 80, false, false);
    page_puts(&page, PLAIN, "a · b › c – d … e × f ± g µ h ▏▎▍▌▋▊▉█ ▁▂▃▄▅▆▇ 数|\n");
    const char *out = flush(&page);
    assert_string_equal(out, "a - b > c - d ~ e x f ~ g u h --==#### _.:-=+* ?|\n");
}

static void bars_are_exact_to_an_eighth(void **state)
{
    (void)state;
    static const struct {
        double share;
        const char *bar;
    } cases[] = {
        { 0, "    |" },       { 1, "████|" },    { 0.5, "██  |" }, { 0.53125, "██▏ |" },
        { 0.96875, "███▉|" }, { 1e-9, "▏   |" }, { 7, "████|" },   { -1, "    |" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct page page;
        page_init(&page, 80, false, true);
        page_bar(&page, cases[i].share, 4);
        page_puts(&page, PLAIN, "|");
        assert_string_equal(flush(&page), cases[i].bar);
    }
}

static void sparklines_scale_to_the_largest(void **state)
{
    (void)state;
    struct page page;
    page_init(&page, 80, false, true);
    page_sparkline(&page, (double[]){ 0, 1, 2, 4, 8 }, 5, 10);
    assert_string_equal(flush(&page), "▁▁▂▄█");
    page_init(&page, 80, false, true);
    page_sparkline(&page, (double[]){ 1, 3, 4, 4 }, 4, 2); /* means 2 and 4 */
    assert_string_equal(flush(&page), "▄█");
}

static void colour_is_only_there_when_asked_for(void **state)
{
    (void)state;
    struct page page;
    page_init(&page, 80, false, true);
    page_puts(&page, RED, "x");
    assert_string_equal(flush(&page), "x");
    page_init(&page, 80, true, true);
    page_puts(&page, RED, "x");
    assert_string_equal(flush(&page), "\033[1;31mx\033[0m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_a_terminal_obeys_gets_through),
        cmocka_unit_test(every_byte_comes_out_harmless),
        cmocka_unit_test(long_names_are_cut_with_an_ellipsis),
        cmocka_unit_test(paragraphs_break_between_words),
        cmocka_unit_test(pieces_flow_and_stay_whole),
        cmocka_unit_test(without_unicode_everything_is_ascii_of_the_same_width),
        cmocka_unit_test(bars_are_exact_to_an_eighth),
        cmocka_unit_test(sparklines_scale_to_the_largest),
        cmocka_unit_test(colour_is_only_there_when_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
