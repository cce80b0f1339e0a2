#include "base/arena.h"

#include <string.h>

#include "unit.h"

static void pieces_are_zero_aligned_and_apart(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    char *last = NULL;
    for (size_t size = 0; size < 3000; size += 7) {
        char *p = arena_alloc(&a, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_ptr_not_equal(p, last);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size); /* a neighbour touched by it would not be zero */
        last = p;
    }
    arena_release(&a);
}

static void a_piece_larger_than_any_chunk_is_fine(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    char *small = arena_strdup(&a, "before");
    char *large = arena_alloc(&a, 5 << 20);
    assert_non_null(large);
    memset(large, 1, 5 << 20);
    assert_string_equal(small, "before");
    assert_string_equal(arena_strndup(&a, "afterwards", 5), "after");
    arena_release(&a);
    assert_int_equal(a.total, 0);
}

static void small_pieces_share_chunks(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    for (int i = 0; i < 100000; i++)
        assert_non_null(arena_alloc(&a, 16));
    assert_true(a.total < 2 * 16 * 100000 + 4096);
    arena_release(&a);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc_array(&a, SIZE_MAX / 2, 4));
    assert_non_null(arena_alloc_array(&a, 10, 4));
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_zero_aligned_and_apart),
        cmocka_unit_test(a_piece_larger_than_any_chunk_is_fine),
        cmocka_unit_test(small_pieces_share_chunks),
        cmocka_unit_test(impossible_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
