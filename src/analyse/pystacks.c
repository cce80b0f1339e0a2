/* pystacks.c: see pystacks.h. */
#include "analyse/pystacks.h"

#include <errno.h>

#include "trace/pystack_counts.h"
#include "trace/tablefiles.h"

static bool place_of(const struct tablefile *f, uint32_t frame,
                     struct pystack_place *ret_place)
{
    struct pystack_frame_row row;
    struct pystack_code_row code;
    if (!tablefile_get(f, PYSTACKS_FRAMES, frame, &row, sizeof row) ||
        !tablefile_get(f, PYSTACKS_CODES, row.code, &code, sizeof code))
        return false;
    *ret_place = (struct pystack_place){ .function = tablefile_text(f, code.name),
                                         .file = tablefile_text(f, code.file),
                                         .line = row.line,
                                         .first_line = code.first_line,
                                         .flags = code.flags };
    return true;
}

/* Parents come before their children, so a chain that does not go down is damage. */
static unsigned fill(const struct tablefile *f, uint32_t node,
                     struct pystack_place places[PYSTACK_PLACES])
{
    unsigned n = 0;
    while (node != 0 && n < PYSTACK_PLACES) {
        struct pystack_node_row row;
        if (!tablefile_get(f, PYSTACKS_NODES, node, &row, sizeof row) ||
            !place_of(f, row.frame, &places[n]))
            break;
        n++;
        if (row.parent >= node)
            break;
        node = row.parent;
    }
    return n;
}

static int visit(const struct tablefile *f, const struct pystack_count_row *row,
                 int (*each)(void *arg, const struct pystack *stack), void *arg)
{
    struct pystack_place places[PYSTACK_PLACES];
    struct pystack_task_row task = { 0 };
    (void)tablefile_get(f, PYSTACKS_TASKS, row->task, &task, sizeof task);
    const struct pystack stack = { .pid = task.pid,
                                   .tid = task.tid,
                                   .thread = tablefile_text(f, task.thread),
                                   .places = places,
                                   .depth = fill(f, row->node, places),
                                   .samples = row->samples,
                                   .wall_ns = row->wall_ns,
                                   .cpu_ns = row->cpu_ns };
    return each(arg, &stack);
}

int pystacks_walk(const char *dir, int (*each)(void *arg, const struct pystack *stack),
                  void *arg)
{
    struct tablefile *f;
    int rc = tablefiles_newest(dir, PYSTACKS_KIND, NULL, &f);
    if (rc < 0)
        return rc;
    struct pystack_counts counts = { 0 };
    rc = pystack_counts_init(&counts, f);
    for (uint32_t i = 0; rc == 0 && i < counts.count; i++) {
        struct pystack_count_row row;
        if (pystack_counts_get(&counts, i, &row))
            rc = visit(f, &row, each, arg);
    }
    pystack_counts_release(&counts);
    tablefile_free(f);
    return rc;
}
