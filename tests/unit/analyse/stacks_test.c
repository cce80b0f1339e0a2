/* stacks_test.c: code that has no name, and what the places of its samples tell. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyse/functions.h"
#include "analyse/stacks.h"
#include "made_stacks.h"

static uint32_t jit, library;

static int set_up(void **state)
{
    uint32_t index;
    if (make_stacks(state) < 0)
        return -1;
    struct stack_task_row *task = append(STACKS_TASKS, &index);
    task->key = 1;
    jit = module_of("", 100);
    library = module_of("/usr/lib/libx.so", 0);
    return 0;
}

static void samples(uint32_t of, uint64_t address, uint64_t count)
{
    uint32_t frame_index, node_index, index;
    struct stack_frame_row *frame = append(STACKS_FRAMES, &frame_index);
    frame->module = of;
    frame->key = address;
    struct stack_node_row *node = append(STACKS_NODES, &node_index);
    node->frame = frame_index;
    node->key = 1;
    struct stack_count_row *row = append(STACKS_COUNTS, &index);
    row->node = node_index;
    row->samples = count;
    row->key = 1;
}

static double tight_share(void)
{
    struct arena arena;
    struct hot_functions hot;
    tables_close(&tables);
    arena_init(&arena);
    assert_int_equal(functions_read(root, NAN, &arena, &hot), 0);
    const double share = hot.tight_share;
    arena_release(&arena);
    return share;
}

/* A barrier: a load, a comparison and a jump; and kernels around it. */
static void a_loop_of_one_line_waits(void **state)
{
    (void)state;
    samples(jit, 0x7000040004, 500);
    samples(jit, 0x7000040010, 200);
    for (uint64_t i = 0; i < 50; i++)
        samples(jit, 0x7000080000 + 64 * i, 2);
    samples(library, 0x1000, 200);
    assert_near(tight_share(), 0.7, 1e-9);
}

static void kernels_made_at_run_time_do_not(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20; i++)
        samples(jit, 0x7000080000 + 64 * i, 40);
    samples(library, 0x1000, 200);
    assert_near(tight_share(), 0, 0);
}

/* A loop of a library that has names elsewhere may be anything. */
static void other_code_is_not_judged_by_its_places(void **state)
{
    (void)state;
    samples(library, 0x1000, 900);
    samples(jit, 0x7000040004, 20); /* too few to say */
    assert_near(tight_share(), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_loop_of_one_line_waits, set_up,
                                        remove_stacks),
        cmocka_unit_test_setup_teardown(kernels_made_at_run_time_do_not, set_up,
                                        remove_stacks),
        cmocka_unit_test_setup_teardown(other_code_is_not_judged_by_its_places, set_up,
                                        remove_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
