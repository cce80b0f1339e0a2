/* merged_test.c: merged stacks are read back, and what is damaged harms nobody. */
#include "unit.h"

#include <string.h>

#include "analyse/stacks.h"
#include "base/error.h"
#include "base/files.h"
#include "capture/sample/stacktab.h"

static char root[64];
static struct stacktab tab;

static int set_up(void **state)
{
    (void)state;
    return unit_temp_dir(root) && stacktab_open_merging(&tab, root, NULL) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(root);
}

struct seen {
    char text[4096];
    uint64_t samples;
    unsigned deepest;
    const struct stacks *stacks;
};

static int see(void *arg, const struct stack_task *task,
               const struct stack_entry *entries, unsigned count, uint64_t samples)
{
    struct seen *s = arg;
    size_t at = strlen(s->text);
    for (unsigned i = 0; i < count && at < sizeof s->text; i++)
        at += (size_t)snprintf(s->text + at, sizeof s->text - at, "%s:%u ",
                               s->stacks->functions[entries[i].function].name,
                               entries[i].line);
    assert_non_null(task);
    s->samples += samples;
    s->deepest = count > s->deepest ? count : s->deepest;
    return 0;
}

/* How many samples the walk shows; what of is in *ret_seen. */
static int walk(struct seen *ret_seen)
{
    struct stacks *stacks;
    *ret_seen = (struct seen){ .samples = 0 };
    assert_int_equal(stacks_open(root, &stacks), 0);
    ret_seen->stacks = stacks;
    const int rc = stacks_walk_merged(stacks, see, ret_seen);
    stacks_free(stacks);
    return rc;
}

static void a_merged_stack_comes_back(void **state)
{
    (void)state;
    struct stack_place stack[3];
    struct seen seen;
    const uint32_t task = stacktab_task(&tab, 7, "python3", "main");
    const uint32_t module = stacktab_module(
        &tab, &(struct stack_module_row){ .key = 1 }, "/usr/lib/libz.so");
    stack[0] = (struct stack_place){ .key = 100, .module = module };
    assert_true(stacktab_python(&tab, "key", "/x/a.py", 3, 5, &stack[1]));
    assert_true(stacktab_python(&tab, "main", "/x/a.py", 10, 12, &stack[2]));
    stacktab_count_merged(&tab, task, stack, 3, 1);
    stacktab_count_merged(&tab, task, stack, 3, 8);
    stacktab_count_merged(&tab, task, stack, 0, 2); /* no room for its path */
    stacktab_close(&tab);
    assert_int_equal(walk(&seen), 0);
    assert_string_equal(seen.text, "[libz.so]:0 key:5 main:12 ");
    assert_int_equal(seen.samples, 11);
}

static void native_stacks_know_nothing_of_it(void **state)
{
    (void)state;
    struct stack_place place;
    struct stacks *stacks;
    struct seen seen = { .samples = 0 };
    assert_true(stacktab_python(&tab, "f", "/x/a.py", 1, 1, &place));
    stacktab_count_merged(&tab, 0, &place, 1, 1);
    stacktab_close(&tab);
    assert_int_equal(stacks_open(root, &stacks), 0);
    seen.stacks = stacks;
    assert_int_equal(stacks_walk(stacks, see, &seen), 0);
    assert_int_equal(seen.samples, 0);
    assert_true(stacks->has_merged);
    stacks_free(stacks);
}

static void a_run_without_them_says_so(void **state)
{
    (void)state;
    struct seen seen;
    stacktab_close(&tab);
    assert_int_equal(file_remove_tree(root), 0);
    assert_non_null(unit_temp_dir(root));
    assert_int_equal(stacktab_open(&tab, root, NULL), 0);
    stacktab_close(&tab);
    assert_int_equal(walk(&seen), SONDE_E_NOTFOUND);
}

/* A loop of nodes, a frame and a code that do not exist. */
static void damage_harms_nobody(void **state)
{
    (void)state;
    struct seen seen;
    struct stack_place place;
    uint32_t a, b, index;
    assert_true(stacktab_python(&tab, "f", "/x/a.py", 1, 1, &place));
    stacktab_count_merged(&tab, 0, &place, 1, 1);
    struct stack_node_row *one = tables_append(&tab.tables, STACKS_MERGED_NODES, &a);
    struct stack_node_row *two = tables_append(&tab.tables, STACKS_MERGED_NODES, &b);
    *one = (struct stack_node_row){ .key = 1, .frame = 0, .parent = b };
    *two = (struct stack_node_row){ .key = 1, .frame = 0, .parent = a };
    struct stack_frame_row *far = tables_append(&tab.tables, STACKS_FRAMES, &index);
    *far = (struct stack_frame_row){ .key = UINT64_MAX, .flags = STACK_FRAME_PYTHON };
    for (uint32_t node = a; node < b + 40; node += 20) {
        struct stack_count_row *row = tables_append(&tab.tables, STACKS_MERGED_COUNTS,
                                                    &index);
        *row = (struct stack_count_row){
            .key = 1, .node = node, .task = 99, .samples = 1
        };
    }
    stacktab_close(&tab);
    assert_int_equal(walk(&seen), 0);
    assert_true(seen.deepest <= STACK_MERGED_DEPTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_merged_stack_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(native_stacks_know_nothing_of_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_run_without_them_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_harms_nobody, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
