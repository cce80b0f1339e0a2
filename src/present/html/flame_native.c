/* flame_native.c: sampled CPU time by native call path. */
#include <errno.h>

#include "analyse/stacks.h"
#include "present/html/flame.h"

struct native {
    struct calltree tree;
    struct site_names *sites;
    const struct stacks *stacks;
};

static int take_stack(void *arg, const struct stack_task *task,
                      const struct stack_entry *entries, unsigned count,
                      uint64_t samples)
{
    struct native *n = arg;
    const struct flame_thread thread = { .pid = task->pid,
                                         .process = task->process,
                                         .name = task->thread };
    uint32_t at = flame_thread_node(&n->tree, n->sites, &thread);
    for (unsigned i = count; at && i-- > 0;) {
        const struct stack_function *f = &n->stacks->functions[entries[i].function];
        const struct site_name site = { f->name, f->file[0] ? f->file : f->module,
                                        f->line, 0 };
        at = calltree_child(&n->tree, at, site_number(n->sites, &site));
    }
    calltree_add(&n->tree, at, (double)samples * (double)n->stacks->info.period_ns);
    return n->tree.error;
}

int flame_native(struct json_writer *w, const struct report *report,
                 struct site_names *sites)
{
    static const struct calltree_head head = {
        "native", "Native code, CPU time", "s",
        "Sampled: width is CPU time, to about one sampling period.", 2
    };
    struct native n = { .sites = sites };
    struct stacks *stacks;
    if (stacks_open(report->run->dir, &stacks) < 0)
        return 0; /* nobody sampled, or the report says why */
    n.stacks = stacks;
    calltree_init(&n.tree);
    const int rc = stacks_walk(stacks, take_stack, &n);
    if (rc == 0)
        calltree_put(w, &n.tree, &head);
    const int error = n.tree.error;
    calltree_release(&n.tree);
    stacks_free(stacks);
    return rc == -ENOMEM || error == -ENOMEM ? -ENOMEM : 0;
}
