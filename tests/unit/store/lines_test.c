/* Files of lines that many append to: read as hostile input. */
#include "store/lines.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "unit.h"

static const char PATH[] = "lines_test.jsonl";

static int clear(void **state)
{
    (void)state;
    (void)unlink(PATH);
    return 0;
}

static void lines_come_back_in_their_order_and_are_private(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    struct stat st;
    size_t at = 0, len = 0;
    assert_int_equal(lines_append(PATH, "one"), 0);
    assert_int_equal(lines_append(PATH, ""), 0);
    assert_int_equal(lines_append(PATH, "three"), 0);
    assert_int_equal(stat(PATH, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(lines_read_newest(PATH, 1024, &text), 0);
    const char *line = lines_next(&text, &at, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(line, "one", 3);
    assert_non_null(lines_next(&text, &at, &len));
    assert_int_equal(len, 0);
    line = lines_next(&text, &at, &len);
    assert_int_equal(len, 5);
    assert_memory_equal(line, "three", 5);
    assert_null(lines_next(&text, &at, &len));
    buf_release(&text);
}

static void of_a_long_file_the_newest_part_is_read(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    for (int i = 0; i < 100; i++)
        assert_int_equal(lines_append(PATH, i == 99 ? "last" : "an older line"), 0);
    assert_int_equal(lines_read_newest(PATH, 16, &text), 0);
    assert_int_equal(text.len, 16);
    assert_string_equal(text.data + 11, "last\n");
    buf_release(&text);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    assert_int_equal(lines_read_newest(PATH, 16, &text), -ENOENT);
    assert_int_equal(symlink("/etc/hostname", PATH), 0);
    assert_int_equal(lines_read_newest(PATH, 16, &text), -ELOOP);
    assert_int_equal(lines_append(PATH, "x"), -ELOOP);
    (void)unlink(PATH);
    assert_int_equal(mkfifo(PATH, 0600), 0); /* and nobody waits for its other end */
    assert_int_equal(lines_read_newest(PATH, 16, &text), SONDE_E_FORMAT);
    assert_int_equal(text.len, 0);
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_come_back_in_their_order_and_are_private,
                                        clear, clear),
        cmocka_unit_test_setup_teardown(of_a_long_file_the_newest_part_is_read, clear,
                                        clear),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_refused, clear, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
