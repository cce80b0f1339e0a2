/* conceal_test.c: names of people, homes and machines. */
#include <string.h>

#include "base/conceal.h"
#include "unit.h"

static void what_names_somebody_is_hidden_and_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hidden;
    } cases[] = {
        { "/home/alice/train.py", "/home/*****/train.py" },
        { "/Users/bob", "/Users/***" },
        { "a:/home/x/y:/home/z", "a:/home/*/y:/home/*" },
        { "/root/x", "/****/x" },
        { "/rootfs/x and a.root", "/rootfs/x and a.root" },
        { "x/root", "x/root" }, /* somebody's folder */
        { "carol@box7.lab", "*****@********" },
        { "carolina boxes", "carolina boxes" },
        { "/data/carol/x", "/data/*****/x" },
        { "carol", "*****" },
        { "root", "root" },
        { "", "" },
        { "/home/", "/home/" },
    };
    struct conceal c = { .count = 0 };
    conceal_add(&c, "carol");
    conceal_add(&c, "box7.lab");
    conceal_add(&c, "root"); /* too common to be hidden as a word */
    conceal_add(&c, "vm");
    conceal_add(&c, "");
    conceal_add(&c, NULL);
    assert_int_equal(c.count, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "%s", cases[i].text);
        const bool changed = conceal_bytes(&c, text, strlen(text));
        assert_string_equal(text, cases[i].hidden);
        assert_int_equal(changed, strcmp(cases[i].text, cases[i].hidden) != 0);
    }
}

static void bytes_after_a_zero_count_too(void **state)
{
    (void)state;
    struct conceal c = { .count = 0 };
    char bytes[] = "x\0/home/ann\0y";
    assert_true(conceal_bytes(&c, bytes, sizeof bytes));
    assert_memory_equal(bytes, "x\0/home/***\0y", sizeof bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_names_somebody_is_hidden_and_nothing_else),
        cmocka_unit_test(bytes_after_a_zero_count_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
