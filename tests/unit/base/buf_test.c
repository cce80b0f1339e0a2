#include "base/buf.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

static void an_empty_buffer_is_an_empty_string(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    assert_string_equal(b.data, "");
    buf_append(&b, NULL, 0);
    assert_int_equal(b.len, 0);
    buf_release(&b);
    assert_string_equal(b.data, "");
}

static void appended_pieces_come_out_in_order(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    buf_puts(&b, "step ");
    buf_printf(&b, "%d of %s", 3, "ten");
    buf_putc(&b, '!');
    buf_append(&b, "\0x", 2);
    assert_int_equal(b.len, 16);
    assert_memory_equal(b.data, "step 3 of ten!\0x", 16);
    buf_release(&b);
}

static void it_grows_past_any_first_size(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    for (int i = 0; i < 10000; i++)
        buf_printf(&b, "%04d", i);
    assert_int_equal(b.error, 0);
    assert_int_equal(b.len, 40000);
    assert_memory_equal(b.data + 4 * 1234, "1234", 4);
    assert_int_equal(b.data[b.len], 0);
    buf_release(&b);
}

static void an_impossible_size_sticks_as_an_error(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    buf_puts(&b, "kept");
    assert_int_equal(buf_reserve(&b, SIZE_MAX - 10), -ENOMEM);
    buf_puts(&b, "ignored");
    assert_int_equal(b.error, -ENOMEM);
    assert_string_equal(b.data, "kept");
    assert_null(buf_steal(&b));
    buf_clear(&b);
    buf_puts(&b, "usable");
    assert_string_equal(b.data, "usable");
    buf_release(&b);
}

static void stolen_bytes_belong_to_the_caller(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    buf_puts(&b, "mine");
    char *data = buf_steal(&b);
    assert_string_equal(data, "mine");
    assert_int_equal(b.len, 0);
    free(data);
    data = buf_steal(&b);
    assert_string_equal(data, "");
    free(data);
}

static void truncating_only_shortens(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    buf_puts(&b, "abcdef");
    buf_truncate(&b, 10);
    assert_string_equal(b.data, "abcdef");
    buf_truncate(&b, 2);
    assert_string_equal(b.data, "ab");
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_is_an_empty_string),
        cmocka_unit_test(appended_pieces_come_out_in_order),
        cmocka_unit_test(it_grows_past_any_first_size),
        cmocka_unit_test(an_impossible_size_sticks_as_an_error),
        cmocka_unit_test(stolen_bytes_belong_to_the_caller),
        cmocka_unit_test(truncating_only_shortens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
