/* merge_test.c: a native stack and Python's frames become one. */
#include "unit.h"

#include <string.h>

#include "capture/sample/merge.h"

static struct merge_place places[STACK_MERGED_DEPTH];

/* "n0 p1 ?2": native frame 0, Python frame 1, an unknown loop at native frame 2. */
static const char *merged(unsigned depth, const struct merge_answer *answer,
                          unsigned max)
{
    static char text[512];
    const unsigned count = merge_stacks(depth, answer, places, max);
    size_t at = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%c%u", i ? " " : "",
                               "np?"[places[i].from], places[i].at);
    return text;
}

static void frames_of(struct merge_answer *a, const uint32_t *loops, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        a->frames[a->frame_count++] = (struct merge_frame){ .loop = loops[i] };
}

#define FRAMES(a, ...)                                                                 \
    frames_of(a, (const uint32_t[]){ __VA_ARGS__ },                                    \
              sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void a_stack_without_python_stays(void **state)
{
    (void)state;
    const struct merge_answer a = { 0 };
    assert_string_equal(merged(3, &a, 8), "n0 n1 n2");
    assert_int_equal(merge_kind(&a), MERGE_NATIVE);
}

static void python_stands_where_its_loops_stood(void **state)
{
    (void)state;
    /* zlib ← loop (key) ← sort ← loop (sorting, main) ← start */
    struct merge_answer a = { .loop_count = 2, .loops = { 1, 3 } };
    FRAMES(&a, 0, 1, 1);
    assert_string_equal(merged(5, &a, 8), "n0 p0 n2 p1 p2 n4");
    assert_int_equal(merge_kind(&a), MERGE_WHOLE);
}

static void who_is_interrupted_in_the_loop_has_python_innermost(void **state)
{
    (void)state;
    struct merge_answer a = { .loop_count = 1, .loops = { 0 } };
    FRAMES(&a, 0, 0);
    assert_string_equal(merged(2, &a, 8), "p0 p1 n1");
}

static void a_loop_of_which_nothing_is_known_says_so(void **state)
{
    (void)state;
    struct merge_answer a = { .loop_count = 2, .loops = { 1, 3 }, .known_from = 1 };
    FRAMES(&a, 1);
    assert_string_equal(merged(5, &a, 8), "n0 ?1 n2 p0 n4");
    assert_int_equal(merge_kind(&a), MERGE_PARTLY);
    a.known_from = 2;
    assert_string_equal(merged(5, &a, 8), "n0 ?1 n2 ?3 n4");
    assert_int_equal(merge_kind(&a), MERGE_UNMERGED);
}

static void callers_that_are_not_known_make_it_partly_known(void **state)
{
    (void)state;
    struct merge_answer a = { .loop_count = 1, .loops = { 1 }, .gap = true };
    FRAMES(&a, 0, 0);
    assert_int_equal(merge_kind(&a), MERGE_PARTLY);
}

static void python_goes_on_where_the_native_stack_was_cut(void **state)
{
    (void)state;
    struct merge_answer a = { .loop_count = 1, .loops = { 1 } };
    FRAMES(&a, 0, 1, 1);
    assert_string_equal(merged(3, &a, 8), "n0 p0 n2 p1 p2");
    /* … but not behind a loop that is not known. */
    a.known_from = 1;
    assert_string_equal(merged(3, &a, 8), "n0 ?1 n2");
}

static void a_thread_in_python_whose_loops_are_not_seen_is_unmerged(void **state)
{
    (void)state;
    const struct merge_answer a = { .has_python = true };
    assert_string_equal(merged(1, &a, 8), "n0");
    assert_int_equal(merge_kind(&a), MERGE_UNMERGED);
}

static void frames_of_unknown_loops_are_passed_over(void **state)
{
    (void)state;
    struct merge_answer a = { .loop_count = 2, .loops = { 0, 1 }, .known_from = 1 };
    FRAMES(&a, 0, 0, 1);
    assert_string_equal(merged(2, &a, 8), "?0 p2");
}

static void the_outermost_are_left_out_when_there_is_no_room(void **state)
{
    (void)state;
    struct merge_answer a = { .loop_count = 1, .loops = { 1 } };
    FRAMES(&a, 0, 0, 0);
    assert_string_equal(merged(4, &a, 3), "n0 p0 p1");
    assert_string_equal(merged(4, &a, 0), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_without_python_stays),
        cmocka_unit_test(python_stands_where_its_loops_stood),
        cmocka_unit_test(who_is_interrupted_in_the_loop_has_python_innermost),
        cmocka_unit_test(a_loop_of_which_nothing_is_known_says_so),
        cmocka_unit_test(callers_that_are_not_known_make_it_partly_known),
        cmocka_unit_test(python_goes_on_where_the_native_stack_was_cut),
        cmocka_unit_test(a_thread_in_python_whose_loops_are_not_seen_is_unmerged),
        cmocka_unit_test(frames_of_unknown_loops_are_passed_over),
        cmocka_unit_test(the_outermost_are_left_out_when_there_is_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
