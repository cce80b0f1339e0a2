/* hide_test.c: what a document that leaves the machine does not tell. */
#include "unit.h"

#include <stdlib.h>

#include "base/hide.h"

static const char *hidden(const struct hide *h, const char *text)
{
    static char result[512];
    struct buf b = BUF_INIT;
    hide_text(h, text, &b);
    assert_int_equal(b.error, 0);
    (void)snprintf(result, sizeof(result), "%s", b.data);
    buf_release(&b);
    return result;
}

static void start(struct hide *h, const char *host, const char *cwd)
{
    (void)setenv("HOME", "/srv/people/mallory", 1);
    (void)setenv("USER", "mallory", 1);
    (void)setenv("LOGNAME", "mallory", 1);
    hide_init(h, host, cwd);
}

static void homes_become_a_tilde(void **state)
{
    (void)state;
    struct hide h;
    start(&h, "", "");
    assert_string_equal(hidden(&h, "/home/jo/exp/train.py"), "~/exp/train.py");
    assert_string_equal(hidden(&h, "/Users/jo"), "~");
    assert_string_equal(hidden(&h, "--data=/home/jo/x /home/ann/y"), "--data=~/x ~/y");
    assert_string_equal(hidden(&h, "/srv/people/mallory/z"), "~/z");
    assert_string_equal(hidden(&h, "/root/x"), "~/x");
    assert_string_equal(hidden(&h, "/rootfs/x"), "/rootfs/x");
    assert_string_equal(hidden(&h, "/srv/people/mallory2/z"), "/srv/people/mallory2/z");
    assert_string_equal(hidden(&h, "/home/"), "/home/");
}

static void names_of_people_and_machines_are_replaced_as_words(void **state)
{
    (void)state;
    struct hide h;
    start(&h, "gpu-17", "/home/eve/work");
    assert_string_equal(hidden(&h, "mallory@gpu-17: eve"), "user@host: user");
    assert_string_equal(hidden(&h, "gpu-170 evening"), "gpu-170 evening");
    assert_string_equal(hidden(&h, "/data/eve/set"), "/data/user/set");
}

static void short_names_only_when_they_are_all_there_is(void **state)
{
    (void)state;
    struct hide h;
    start(&h, "vm", "/home/jo");
    assert_string_equal(hidden(&h, "vm"), "host");
    assert_string_equal(hidden(&h, "vm pages, jo"), "vm pages, jo");
}

static void what_everybody_is_called_stays(void **state)
{
    (void)state;
    struct hide h;
    start(&h, "localhost", "/home/root");
    assert_string_equal(hidden(&h, "root of localhost"), "root of localhost");
}

static void secrets_go_too(void **state)
{
    (void)state;
    struct hide h;
    start(&h, "", "");
    assert_string_equal(hidden(&h, "--api-key=abcdefgh12345678 /home/jo"),
                        "--api-key=[redacted] ~");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(homes_become_a_tilde),
        cmocka_unit_test(names_of_people_and_machines_are_replaced_as_words),
        cmocka_unit_test(short_names_only_when_they_are_all_there_is),
        cmocka_unit_test(what_everybody_is_called_stays),
        cmocka_unit_test(secrets_go_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
