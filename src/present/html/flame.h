/* flame.h: who fills the call trees. Private to present/html.
 *
 * Each source adds its trees to the open array; a run without it adds none. */
#ifndef SONDE_PRESENT_HTML_FLAME_H
#define SONDE_PRESENT_HTML_FLAME_H

#include "analyse/report.h"
#include "base/json.h"
#include "present/html/calltree.h"
#include "present/html/sites.h"

typedef int flame_source(struct json_writer *w, const struct report *report,
                         struct site_names *sites);

flame_source flame_zones, flame_python, flame_native, flame_allocations;

/* The node of a process and of a thread in it; names are made from what is known. */
struct flame_thread {
    uint32_t pid, tid;          /* tid 0: unknown */
    const char *process, *name; /* "" unknown */
};
uint32_t flame_process_node(struct calltree *tree, struct site_names *sites,
                            const struct flame_thread *thread);
uint32_t flame_thread_node(struct calltree *tree, struct site_names *sites,
                           const struct flame_thread *thread);
/* What the run calls a process: its role, else its program; "" unknown. */
const char *flame_role(const struct report *report, uint32_t pid);

#endif
