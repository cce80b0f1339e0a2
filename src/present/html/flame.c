/* flame.c: the call trees of a run: zones, Python, native code, allocations. */
#include "present/html/flame.h"

#include <stdio.h>
#include <string.h>

#include "present/html/parts.h"

const char *flame_role(const struct report *report, uint32_t pid)
{
    for (size_t i = 0; i < report->process_count; i++)
        if (report->processes[i].pid == pid)
            return report->processes[i].role;
    for (size_t i = 0; i < report->monitors.process_count; i++)
        if (report->monitors.processes[i].pid == pid)
            return report->monitors.processes[i].exe;
    return "";
}

static uint32_t named(struct calltree *tree, struct site_names *sites, uint32_t parent,
                      const char *name)
{
    const struct site_name site = { .name = name, .file = "" };
    return calltree_child(tree, parent, site_number(sites, &site));
}

uint32_t flame_process_node(struct calltree *tree, struct site_names *sites,
                            const struct flame_thread *thread)
{
    char name[256];
    (void)snprintf(name, sizeof(name), "%s %u",
                   thread->process[0] ? thread->process : "process", thread->pid);
    return named(tree, sites, 0, name);
}

uint32_t flame_thread_node(struct calltree *tree, struct site_names *sites,
                           const struct flame_thread *thread)
{
    char name[128];
    const uint32_t process = flame_process_node(tree, sites, thread);
    const bool main_thread = thread->tid && thread->tid == thread->pid;
    if (process == 0)
        return 0;
    (void)snprintf(name, sizeof(name), "thread %s%s%.64s", main_thread ? "main" : "",
                   main_thread && thread->name[0] ? " " : "", thread->name);
    if (!main_thread && thread->tid)
        (void)snprintf(name + strlen(name), sizeof(name) - strlen(name), "%s%u",
                       thread->name[0] ? " " : "", thread->tid);
    return named(tree, sites, process, name);
}

int html_flame(struct json_writer *w, const struct report *report,
               struct site_names *sites)
{
    static flame_source *const sources[] = { flame_zones, flame_python, flame_native,
                                             flame_allocations };
    int rc = 0;
    json_key(w, "flame");
    json_array_begin(w);
    for (size_t i = 0; rc == 0 && i < sizeof(sources) / sizeof(sources[0]); i++)
        rc = sources[i](w, report, sites);
    json_array_end(w);
    return rc;
}
