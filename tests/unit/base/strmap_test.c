#include "base/strmap.h"

#include <string.h>

#include "unit.h"

static void what_was_put_is_found(void **state)
{
    (void)state;
    struct strmap m = STRMAP_INIT;
    uint64_t value = 99;
    assert_false(strmap_get(&m, "a", 1, &value));
    assert_int_equal(value, 99);
    assert_int_equal(strmap_put(&m, "a", 1, 1), 0);
    assert_int_equal(strmap_put(&m, "", 0, 2), 0);
    assert_int_equal(strmap_put(&m, "a\0b", 3, 3), 0);
    assert_int_equal(strmap_put(&m, "a", 1, 4), 0);
    assert_int_equal(m.count, 3);
    assert_true(strmap_get(&m, "a", 1, &value));
    assert_int_equal(value, 4);
    assert_true(strmap_get(&m, "", 0, &value));
    assert_int_equal(value, 2);
    assert_true(strmap_get(&m, "a\0b", 3, &value));
    assert_int_equal(value, 3);
    assert_false(strmap_get(&m, "a\0c", 3, &value));
    strmap_release(&m);
}

static void many_keys_keep_their_order_and_values(void **state)
{
    (void)state;
    enum { COUNT = 50000 };
    struct strmap m = STRMAP_INIT;
    char key[32];
    for (int i = 0; i < COUNT; i++) {
        const int len = snprintf(key, sizeof(key), "key-%d", i);
        assert_int_equal(strmap_put(&m, key, (size_t)len, (uint64_t)i * 3), 0);
    }
    assert_int_equal(m.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        const int len = snprintf(key, sizeof(key), "key-%d", i);
        uint64_t value;
        assert_true(strmap_get(&m, key, (size_t)len, &value));
        assert_int_equal(value, i * 3);
        assert_string_equal(m.entries[i].key, key);
    }
    strmap_release(&m);
}

static void keys_are_copied(void **state)
{
    (void)state;
    struct strmap m = STRMAP_INIT;
    char key[] = "name";
    int thing;
    assert_int_equal(strmap_put_ptr(&m, key, 4, &thing), 0);
    memset(key, 'x', 4);
    assert_ptr_equal(strmap_get_ptr(&m, "name", 4), &thing);
    assert_null(strmap_get_ptr(&m, "xxxx", 4));
    strmap_release(&m);
}

static void entering_tells_whether_the_key_is_new(void **state)
{
    (void)state;
    struct strmap m = STRMAP_INIT;
    bool added;
    struct strmap_entry *e = strmap_enter(&m, "k", 1, &added);
    assert_true(added);
    assert_int_equal(e->value, 0);
    e->value = 7;
    e = strmap_enter(&m, "k", 1, &added);
    assert_false(added);
    assert_int_equal(e->value, 7);
    strmap_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found),
        cmocka_unit_test(many_keys_keep_their_order_and_values),
        cmocka_unit_test(keys_are_copied),
        cmocka_unit_test(entering_tells_whether_the_key_is_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
