/* Line tables of three generations of Python, made by those Pythons:
 *
 *     def f(x):            # line 10
 *         a = 1
 *
 *         if x:
 *             a = (x +
 *                  2)
 *         return a
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "capture/python/lines.h"

struct expected {
    int64_t offset;
    int line;
};

static void check(enum line_table kind, const uint8_t *table, size_t len,
                  const struct expected *expected)
{
    for (; expected->line >= 0; expected++)
        assert_int_equal(lines_find(kind, table, len, 10, expected->offset),
                         expected->line);
}

static void lines_of_3_9(void **state)
{
    (void)state;
    static const uint8_t table[] = { 0, 1, 4, 2, 4, 1, 2, 1, 2, 255, 4, 2 };
    static const struct expected expected[] = { { -1, 10 }, { 0, 11 },   { 2, 11 },
                                                { 4, 13 },  { 8, 14 },   { 10, 15 },
                                                { 12, 14 }, { 14, 14 },  { 16, 16 },
                                                { 18, 16 }, { 900, 16 }, { 0, -1 } };
    check(LINES_LNOTAB, table, sizeof table, expected);
}

static void lines_of_3_10(void **state)
{
    (void)state;
    static const uint8_t table[] = { 4, 1, 4, 2, 2, 1, 2, 1, 4, 255, 2, 128, 4, 2 };
    static const struct expected expected[] = { { 0, 11 }, { 3, 11 },  { 4, 13 },
                                                { 8, 14 }, { 10, 15 }, { 12, 14 },
                                                { 16, 0 }, { 18, 16 }, { 22, 0 },
                                                { 0, -1 } };
    check(LINES_PEP626, table, sizeof table, expected);
}

static void lines_of_3_11_on(void **state)
{
    (void)state;
    /* RESUME at 10; two units at 11 (short form, then one line on); one without a
     * place; a long form of +3; one without columns of −1. */
    static const uint8_t table[] = { 0x80,   0x00, 0xd9, 0x04, 0x05, 0xf8,      0xf0,
                                     3 << 1, 0x00, 0x01, 0x02, 0xe8, 1 << 1 | 1 };
    static const struct expected expected[] = { { 0, 10 }, { 2, 11 }, { 5, 11 },
                                                { 6, 0 },  { 8, 14 }, { 10, 13 },
                                                { 12, 0 }, { 0, -1 } };
    check(LINES_LOCATIONS, table, sizeof table, expected);
}

static void damaged_tables_give_some_line_or_none(void **state)
{
    (void)state;
    uint8_t table[64];
    srand(7);
    for (unsigned round = 0; round < 20000; round++) {
        const size_t len = (size_t)rand() % (sizeof table + 1);
        for (size_t i = 0; i < len; i++)
            table[i] = (uint8_t)rand();
        for (int kind = LINES_LNOTAB; kind <= LINES_LOCATIONS; kind++)
            assert_true(lines_find((enum line_table)kind, table, len, 1,
                                   rand() % 200 - 10) >= 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_3_9),
        cmocka_unit_test(lines_of_3_10),
        cmocka_unit_test(lines_of_3_11_on),
        cmocka_unit_test(damaged_tables_give_some_line_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
