/* made_stacks.h: a file of native stacks, made up by a test. */
#ifndef SONDE_TESTS_MADE_STACKS_H
#define SONDE_TESTS_MADE_STACKS_H

#include <string.h>

#include "base/files.h"
#include "trace/stack_rows.h"
#include "trace/tables.h"
#include "unit.h"

static char root[64];
static struct tables tables;

static void *append(unsigned table, uint32_t *ret_index)
{
    void *row = tables_append(&tables, table, ret_index);
    assert_non_null(row);
    return row;
}

/* pid: of a JIT's code; else 0. */
static uint32_t module_of(const char *path, uint32_t pid)
{
    uint32_t index;
    struct stack_module_row *row = append(STACKS_MODULES, &index);
    row->path = tables_text(&tables, path, strlen(path));
    row->pid = pid;
    row->key = 1;
    return index;
}

/* An empty one: its info, and the node of other stacks. */
static int make_stacks(void **state)
{
    (void)state;
    static const struct tables_spec specs[] = {
        { "info", sizeof(struct stack_info_row), 1 },
        { MODULES_TABLE, sizeof(struct stack_module_row), STACKS_MAX_MODULES },
        { FRAMES_TABLE, sizeof(struct stack_frame_row), STACKS_MAX_FRAMES },
        { "nodes", sizeof(struct stack_node_row), STACKS_MAX_NODES },
        { "tasks", sizeof(struct stack_task_row), STACKS_MAX_TASKS },
        { "counts", sizeof(struct stack_count_row), STACKS_MAX_COUNTS },
    };
    uint32_t index;
    if (!unit_temp_dir(root) ||
        tables_create(root, STACKS_KIND, NULL, specs, 6, &tables) < 0)
        return -1;
    struct stack_info_row *info = append(STACKS_INFO, &index);
    info->period_ns = 10000000;
    info->key = 1;
    struct stack_node_row *other = append(STACKS_NODES, &index);
    other->key = 1;
    return 0;
}

static int remove_stacks(void **state)
{
    (void)state;
    return file_remove_tree(root);
}

#endif
