/* pystack_counts.c: see pystack_counts.h. */
#include "trace/pystack_counts.h"

#include <errno.h>
#include <stdlib.h>

static bool get(const struct pystack_counts *c, uint32_t index,
                struct pystack_count_row *ret_row)
{
    return tablefile_get(c->file, PYSTACKS_COUNTS, index, ret_row, sizeof *ret_row);
}

static void sum_guesses(struct pystack_counts *c)
{
    struct pystack_count_row row;
    for (uint32_t i = 0; i < c->count; i++)
        if (get(c, i, &row) && row.task < c->tasks)
            c->scale[row.task] += (double)row.cpu_ns;
}

int pystack_counts_init(struct pystack_counts *ret_counts, const struct tablefile *file)
{
    struct pystack_counts c = { .file = file,
                                .count = tablefile_count(file, PYSTACKS_COUNTS),
                                .tasks = tablefile_count(file, PYSTACKS_TASKS) };
    c.scale = calloc(c.tasks + 1u, sizeof *c.scale);
    if (!c.scale)
        return -ENOMEM;
    sum_guesses(&c);
    for (uint32_t i = 0; i < c.tasks; i++) {
        struct pystack_task_row task;
        const double guess = c.scale[i];
        const bool known = tablefile_get(file, PYSTACKS_TASKS, i, &task, sizeof task) &&
                           task.cpu_ns > 0 && guess > 0;
        c.scale[i] = known ? (double)task.cpu_ns / guess : 1;
    }
    *ret_counts = c;
    return 0;
}

void pystack_counts_release(struct pystack_counts *c)
{
    free(c->scale);
    *c = (struct pystack_counts){ 0 };
}

/* Rows may be damage: what fits no number is the largest there is. */
static uint64_t scaled(uint64_t ns, double by)
{
    const double most = 18446744073709549568.0; /* the largest double below 2^64 */
    const double v = (double)ns * by;
    return v < most ? (uint64_t)(v + 0.5) : UINT64_MAX;
}

bool pystack_counts_get(const struct pystack_counts *c, uint32_t index,
                        struct pystack_count_row *ret_row)
{
    struct pystack_count_row row;
    if (!get(c, index, &row))
        return false;
    if (row.task < c->tasks)
        row.cpu_ns = scaled(row.cpu_ns, c->scale[row.task]);
    *ret_row = row;
    return true;
}
