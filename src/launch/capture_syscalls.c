/* capture_syscalls.c: the system calls of the program and all it starts, when asked for
 * (--syscalls). How they are counted: syscalls.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "launch/capture_list.h"
#include "launch/syscalls.h"
#include "trace/syscall_rows.h"
#include "trace/tables.h"

static const uint64_t EACH_NS = 1000000000;

struct syscalls {
    struct syscall_counter counter;
    struct tables tables;
    struct syscall_count_row *row; /* NULL: nothing to write to */
};

static int prepare(const struct capture_context *context, void **ret_state)
{
    *ret_state = NULL;
    if (!context->options->syscalls)
        return 0;
    struct syscalls *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->counter.fd = -1;
    *ret_state = s;
    return 0;
}

static int make_row(struct syscalls *s, const struct capture_context *context)
{
    static const struct tables_spec spec = { "counts", sizeof *s->row,
                                             SYSCALL_COUNT_ROWS };
    const int rc = tables_create(context->dir, SYSCALL_KIND, context->control, &spec, 1,
                                 &s->tables);
    if (rc < 0)
        return rc;
    uint32_t index;
    s->row = tables_append(&s->tables, 1, &index);
    if (!s->row)
        return -ENOSPC;
    __atomic_store_n(&s->row->key, (uint64_t)context->pid, __ATOMIC_RELEASE);
    return 0;
}

/* The row comes last: without a count there is none, which is not a count of zero. */
static int attach(void *state, const struct capture_context *context)
{
    struct syscalls *s = state;
    char why[SYSCALLS_WHY] = "";
    if (!s)
        return 0;
    if (syscall_counter_open(context->pid, &s->counter, why) < 0) {
        runfile_note(context->file, "system calls could not be counted: %s", why);
        return 0;
    }
    const int rc = make_row(s, context);
    if (rc < 0)
        syscall_counter_close(&s->counter);
    return rc;
}

static bool note_count(struct syscalls *s)
{
    uint64_t count;
    if (!s || s->counter.fd < 0 || syscall_counter_read(&s->counter, &count) < 0)
        return false;
    __atomic_store_n(&s->row->count, count, __ATOMIC_RELEASE);
    return true;
}

static uint64_t tick(void *state, uint64_t now_ns)
{
    return note_count(state) ? now_ns + EACH_NS : 0;
}

static void finish(void *state, int status)
{
    struct syscalls *s = state;
    (void)status;
    if (note_count(s))
        __atomic_store_n(&s->row->final, 1, __ATOMIC_RELEASE);
}

static void release(void *state)
{
    struct syscalls *s = state;
    if (!s)
        return;
    syscall_counter_close(&s->counter);
    if (s->tables.base)
        tables_close(&s->tables);
    free(s);
}

const struct capture_ops capture_syscalls = {
    .name = "system calls",
    .prepare = prepare,
    .attach = attach,
    .tick = tick,
    .finish = finish,
    .release = release,
};
