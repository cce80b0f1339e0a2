/* Numbers from another process's memory, torn or made up by somebody hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "capture/python/layout.h"
#include "capture/python/remote.h"
#include "capture/python/writers.h"

static void a_piece_is_within_only_when_all_of_it_is(void **state)
{
    (void)state;
    const uint64_t base = 0x7f0000001000;
    assert_true(remote_within(base, 80, base, 80));
    assert_true(remote_within(base + 20, 60, base, 80));
    assert_false(remote_within(base + 21, 60, base, 80));
    assert_false(remote_within(base - 1, 8, base, 80));
    assert_false(remote_within(base, 81, base, 80));
    assert_false(remote_within(base, 8, base, 0));
}

/* Such a frame pointer crashed the supervisor: its end wrapped around to a small address. */
static void an_address_near_the_top_is_not_within(void **state)
{
    (void)state;
    const uint64_t base = 0x7f0000001000;
    for (uint64_t low = 1; low < 200; low++)
        assert_false(remote_within(0 - low, 80, base, 16384));
}

enum { WORDS = 73, FRAME = 28 };

static void runtime_of_3_13(uint64_t words[WORDS])
{
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = 64;
    memcpy(words, "xdebugpy", 8);
    words[1] = 0x030d0000;
    words[2] = 0;
    words[FRAME + 5] = 63; /* the owner, the last byte of a frame of 64 */
}

static int taken(const uint64_t words[WORDS])
{
    struct python_layout layout;
    return layout_from_runtime((const uint8_t *)words, WORDS * sizeof *words, 13,
                               &layout);
}

static void offsets_that_lie_outside_a_frame_are_refused(void **state)
{
    (void)state;
    uint64_t words[WORDS];
    runtime_of_3_13(words);
    assert_int_equal(taken(words), 0);
    words[FRAME + 5] = 64;
    assert_int_equal(taken(words), SONDE_E_UNSUPPORTED);
    words[FRAME + 5] = 30000;
    assert_int_equal(taken(words), SONDE_E_UNSUPPORTED);
}

/* All of a name, and nothing behind its end, which is not there. */
static void who_writes_is_known_by_whole_names(void **state)
{
    (void)state;
    assert_true(writers_has("writerow", 8));
    assert_true(writers_has("print", 5));
    assert_true(writers_has("printer", 5));
    assert_false(writers_has("printer", 7));
    assert_false(writers_has("writ", 4));
    assert_false(writers_has("log", 3)); /* of a number, as often */
    assert_false(writers_has("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_piece_is_within_only_when_all_of_it_is),
        cmocka_unit_test(an_address_near_the_top_is_not_within),
        cmocka_unit_test(who_writes_is_known_by_whole_names),
        cmocka_unit_test(offsets_that_lie_outside_a_frame_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
