/* Rows of sampled Python stacks are scaled to what the scheduler counted. */
#include "trace/pystack_counts.h"

#include <string.h>

#include "base/files.h"
#include "trace/tablefiles.h"
#include "unit.h"

static char root[64];
static struct tables tables;

static int set_up(void **state)
{
    (void)state;
    static const struct tables_spec specs[] = {
        { "info", sizeof(struct pystack_info_row), 1 },
        { "codes", sizeof(struct pystack_code_row), 1 },
        { "frames", sizeof(struct pystack_frame_row), 1 },
        { "nodes", sizeof(struct pystack_node_row), 1 },
        { "tasks", sizeof(struct pystack_task_row), 10 },
        { "counts", sizeof(struct pystack_count_row), 100 },
    };
    const char *dir = unit_temp_dir(root);
    return dir ? tables_create(dir, PYSTACKS_KIND, NULL, specs, 6, &tables) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(root);
}

static void add_thread(uint64_t account_ns)
{
    uint32_t index;
    struct pystack_task_row *row = tables_append(&tables, PYSTACKS_TASKS, &index);
    *row = (struct pystack_task_row){ .key = 1, .cpu_ns = account_ns };
}

static void add_row(uint32_t task, uint64_t cpu_ns)
{
    uint32_t index;
    struct pystack_count_row *row = tables_append(&tables, PYSTACKS_COUNTS, &index);
    *row = (struct pystack_count_row){
        .key = 1, .task = task, .samples = 3, .wall_ns = 77, .cpu_ns = cpu_ns
    };
}

/* Closes the file that was written and reads all of its rows. */
static void check(const uint64_t *cpu_ns, uint32_t count)
{
    struct tablefile *file;
    struct pystack_counts counts;
    struct pystack_count_row row;
    tables_close(&tables);
    assert_int_equal(tablefiles_newest(root, PYSTACKS_KIND, NULL, &file), 0);
    assert_int_equal(pystack_counts_init(&counts, file), 0);
    assert_int_equal(counts.count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(pystack_counts_get(&counts, i, &row));
        assert_int_equal(row.cpu_ns, cpu_ns[i]);
        assert_int_equal(row.wall_ns, 77); /* looks know the wall's time */
        assert_int_equal(row.samples, 3);
    }
    assert_false(pystack_counts_get(&counts, count, &row));
    pystack_counts_release(&counts);
    tablefile_free(file);
}

static void each_threads_rows_add_up_to_its_account(void **state)
{
    (void)state;
    add_thread(1000);
    add_thread(300);
    add_row(0, 600);
    add_row(1, 400); /* found running too often: others had the core */
    add_row(0, 200);
    add_row(1, 200);
    check((const uint64_t[]){ 750, 200, 250, 100 }, 4);
}

static void without_an_account_the_guess_stays(void **state)
{
    (void)state;
    add_thread(0);
    add_row(0, 600);
    add_row(9, 50); /* of a thread that is not there */
    check((const uint64_t[]){ 600, 50 }, 2);
}

static void who_was_never_found_running_gets_nothing(void **state)
{
    (void)state;
    add_thread(500);
    add_row(0, 0);
    check((const uint64_t[]){ 0 }, 1);
}

static void damage_is_no_overflow(void **state)
{
    (void)state;
    add_thread(UINT64_MAX);
    add_row(0, 1);
    check((const uint64_t[]){ UINT64_MAX }, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_threads_rows_add_up_to_its_account, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(without_an_account_the_guess_stays, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_was_never_found_running_gets_nothing,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_no_overflow, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
