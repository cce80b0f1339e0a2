/* captures.c: the list, and how its rows are called. */
#include "launch/captures.h"

#include <errno.h>

#include "base/error.h"
#include "launch/capture_alerts.h"
#include "launch/capture_list.h"
#include "launch/family.h"

/* In the order in which they are prepared and ticked. */
static const struct capture_ops *const list[] = {
    &capture_preload,
    &capture_inject,
    &capture_alerts, /* before the monitors it watches */
    &capture_monitors,
    &capture_python,
    &capture_stacks,
    &capture_redact,
    &capture_syscalls, /* when asked for */
    NULL,              /* ends the list */
};
_Static_assert(sizeof list / sizeof *list <= CAPTURES_MAX + 1,
               "room in struct captures");

static void gave_up(struct captures *c, size_t i, int rc)
{
    runfile_note(c->context.file, "%s could not be captured: %s", list[i]->name,
                 error_text(rc));
    if (list[i]->release)
        list[i]->release(c->one[i].state);
    c->one[i].on = false;
}

void captures_prepare(struct captures *c, const struct capture_context *context)
{
    *c = (struct captures){ .context = *context };
    for (size_t i = 0; list[i]; i++) {
        c->one[i].on = true;
        int rc = list[i]->prepare ? list[i]->prepare(&c->context, &c->one[i].state) : 0;
        if (rc < 0)
            gave_up(c, i, rc);
    }
}

void captures_attach(struct captures *c, pid_t pid)
{
    c->context.pid = pid;
    for (size_t i = 0; list[i]; i++) {
        const int rc = c->one[i].on && list[i]->attach
                           ? list[i]->attach(c->one[i].state, &c->context)
                           : 0;
        if (rc < 0)
            gave_up(c, i, rc);
    }
}

void captures_start(struct captures *c, pid_t pid)
{
    c->context.pid = pid;
    const struct family_options family = { .run_dir = c->context.dir,
                                           .pid = (uint32_t)pid };
    int rc = family_new(&family, &c->context.family);
    if (rc < 0 && rc != -ESRCH) /* gone already: nobody to watch */
        runfile_note(c->context.file, "the program's processes could not be found: %s",
                     error_text(rc));
    for (size_t i = 0; list[i]; i++) {
        if (!c->one[i].on)
            continue;
        rc = list[i]->start ? list[i]->start(c->one[i].state, &c->context) : 0;
        if (rc < 0)
            gave_up(c, i, rc);
        else
            c->one[i].next = due_exactly_at(list[i]->tick ? 1 : 0);
    }
}

static struct due next_tick(const struct capture_ops *ops, void *state, uint64_t now_ns)
{
    const uint64_t at = ops->tick(state, now_ns);
    return ops->at_any_time ? due_at(at, now_ns) : due_exactly_at(at);
}

void captures_work_begins(struct captures *c, uint64_t now_ns)
{
    for (size_t i = 0; list[i]; i++) {
        if (!c->one[i].on || !list[i]->work_begins)
            continue;
        list[i]->work_begins(c->one[i].state, now_ns);
        c->one[i].next = due_exactly_at(now_ns);
    }
}

uint64_t captures_tick(struct captures *c, uint64_t now_ns)
{
    uint64_t soonest = 0;
    for (size_t i = 0; list[i]; i++) {
        if (c->one[i].on && is_due(c->one[i].next, now_ns))
            c->one[i].next = next_tick(list[i], c->one[i].state, now_ns);
        const uint64_t next = c->one[i].on ? c->one[i].next.at : 0;
        if (next && (!soonest || next < soonest))
            soonest = next;
    }
    return soonest;
}

void captures_ending(struct captures *c)
{
    for (size_t i = 0; list[i]; i++)
        if (c->one[i].on && list[i]->ending)
            list[i]->ending(c->one[i].state);
}

void captures_finish(struct captures *c, int status)
{
    for (size_t i = 0; list[i]; i++)
        if (c->one[i].on && list[i]->finish)
            list[i]->finish(c->one[i].state, status);
}

void captures_release(struct captures *c)
{
    for (size_t i = 0; list[i]; i++)
        if (c->one[i].on && list[i]->release)
            list[i]->release(c->one[i].state);
    family_free(c->context.family);
    *c = (struct captures){ 0 };
}
