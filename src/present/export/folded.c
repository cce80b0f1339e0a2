/* folded.c: sampled stacks, one a line with its count: "process;thread;main;f 12".
 *
 * What flamegraph.pl, inferno, speedscope and others read. Counts are samples of CPU
 * time. Names are the program's: semicolons, blanks at the ends and control characters
 * would be taken for something else and become '_' or ':'.
 */
#include "present/export/export.h"

#include <errno.h>
#include <string.h>

#include "analyse/stacks.h"
#include "base/error.h"

struct folded {
    FILE *out;
    const struct stacks *stacks;
    struct export_totals totals;
};

static void put_name(FILE *out, const char *name)
{
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        (void)fputc(*p == ';' ? ':' : *p < ' ' || *p == 0x7f ? '_' : *p, out);
}

static int put_stack(void *arg, const struct stack_task *task,
                     const struct stack_entry *entries, unsigned count,
                     uint64_t samples)
{
    struct folded *f = arg;
    put_name(f->out, task->process[0] ? task->process : "(unknown)");
    (void)fprintf(f->out, "-%u;", task->pid);
    put_name(f->out, task->thread[0] ? task->thread : "(unknown)");
    if (count == 0)
        (void)fputs(";(other stacks)", f->out);
    for (unsigned i = count; i-- > 0;) {
        (void)fputc(';', f->out);
        put_name(f->out, f->stacks->functions[entries[i].function].name);
    }
    f->totals.samples += samples;
    return fprintf(f->out, " %llu\n", (unsigned long long)samples) < 0 ? -EIO : 0;
}

int export_folded(const struct run *run, FILE *out, struct export_totals *ret_totals)
{
    struct stacks *s;
    int rc = stacks_open(run->dir, &s);
    if (rc < 0)
        return rc == -ENOENT ? SONDE_E_NOTFOUND : rc;
    struct folded f = { .out = out, .stacks = s };
    rc = stacks_walk(s, put_stack, &f);
    if (rc == 0)
        *ret_totals = f.totals;
    stacks_free(s);
    return rc;
}
