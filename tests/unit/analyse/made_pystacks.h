/* made_pystacks.h: a run with a file of Python stacks, made up by a test. */
#ifndef SONDE_TESTS_MADE_PYSTACKS_H
#define SONDE_TESTS_MADE_PYSTACKS_H

#include <string.h>

#include "analyse/report.h"
#include "base/files.h"
#include "trace/pystack_rows.h"
#include "trace/tables.h"
#include "unit.h"

static char root[64];
static struct run run;
static struct report report;
static struct tables tables;

enum { MAIN = 70 };

struct place {
    const char *function, *file;
    uint32_t line;
};
static struct place codes[100]; /* by their numbers */
static uint32_t code_count;
static const char *writing = ""; /* names of functions that write; "": nobody looked */
static uint32_t stack_task;      /* whose stacks are added: number of its row */

static void *append(unsigned table, uint32_t *ret_index)
{
    void *row = tables_append(&tables, table, ret_index);
    assert_non_null(row);
    return row;
}

static int set_up(void **state)
{
    (void)state;
    static const struct tables_spec specs[] = {
        { "info", sizeof(struct pystack_info_row), 1 },
        { "codes", sizeof(struct pystack_code_row), 100 },
        { "frames", sizeof(struct pystack_frame_row), 100 },
        { "nodes", sizeof(struct pystack_node_row), 100 },
        { "tasks", sizeof(struct pystack_task_row), 10 },
        { "counts", sizeof(struct pystack_count_row), 100 },
    };
    uint32_t index;
    code_count = stack_task = 0;
    writing = "";
    run = (struct run){ .clock = { .count = 1, .ns_per_tick = 1 } };
    report = (struct report){ .run = &run,
                              .python = { .present = true, .main_pid = MAIN } };
    arena_init(&report.arena);
    run.dir = unit_temp_dir(root);
    if (!run.dir || tables_create(root, PYSTACKS_KIND, NULL, specs, 6, &tables) < 0)
        return -1;
    struct pystack_task_row *task = append(PYSTACKS_TASKS, &index);
    *task = (struct pystack_task_row){ .key = 1, .pid = MAIN, .tid = MAIN };
    struct pystack_node_row *none = append(PYSTACKS_NODES, &index); /* no room for it */
    none->key = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_release(&report.arena);
    return file_remove_tree(root);
}

/* A function is the same one on every stack. */
static uint32_t add_code(const struct place *p)
{
    uint32_t index;
    for (index = 0; index < code_count; index++)
        if (strcmp(codes[index].function, p->function) == 0 &&
            strcmp(codes[index].file, p->file) == 0)
            return index;
    struct pystack_code_row *code = append(PYSTACKS_CODES, &index);
    code->name = tables_text(&tables, p->function, strlen(p->function));
    code->file = tables_text(&tables, p->file, strlen(p->file));
    code->first_line = p->line / 100 * 100; /* functions begin at full hundreds */
    code->flags = writing[0] ? PYSTACK_CODE_KNOWN : 0;
    if (strstr(writing, p->function))
        code->flags |= PYSTACK_CODE_WRITES;
    code->key = 1;
    assert_int_equal(index, code_count);
    codes[code_count++] = *p;
    return index;
}

/* A stack, the outermost place first. */
static void add_stack(uint64_t ms, uint64_t cpu_ms, const struct place *places,
                      unsigned depth)
{
    uint32_t node = 0, index;
    for (unsigned i = 0; i < depth; i++) {
        const uint32_t code = add_code(&places[i]);
        struct pystack_frame_row *frame = append(PYSTACKS_FRAMES, &index);
        *frame = (struct pystack_frame_row){ .key = 1,
                                             .code = code,
                                             .line = places[i].line };
        const uint32_t at = index;
        struct pystack_node_row *row = append(PYSTACKS_NODES, &index);
        *row = (struct pystack_node_row){ .key = 1, .frame = at, .parent = node };
        node = index;
    }
    struct pystack_count_row *count = append(PYSTACKS_COUNTS, &index);
    *count = (struct pystack_count_row){ .key = 1,
                                         .node = node,
                                         .task = stack_task,
                                         .samples = 1,
                                         .wall_ns = ms * 1000000,
                                         .cpu_ns = cpu_ms * 1000000 };
}
#define STACK(ms, cpu_ms, ...)                                                         \
    add_stack(ms, cpu_ms, (const struct place[]){ __VA_ARGS__ },                       \
              sizeof((const struct place[]){ __VA_ARGS__ }) / sizeof(struct place))

#endif
