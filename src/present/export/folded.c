/* folded.c: sampled stacks, one a line with its count: "process;thread;main;f 12".
 *
 * What flamegraph.pl, inferno, speedscope and others read. Counts are samples of CPU
 * time. Names are the program's: semicolons, blanks at the ends and control characters
 * would be taken for something else and become '_' or ':'.
 */
#include "present/export/export.h"

#include <errno.h>

#include "analyse/stacks.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/strmap.h"

struct folded {
    const struct stacks *stacks;
    struct strmap lines; /* samples; places in one function are one line */
    struct buf line;
    struct export_totals totals;
};

static void put_name(struct buf *out, const char *name)
{
    if (!name[0])
        name = "(unknown)";
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        buf_putc(out, (char)(*p == ';' ? ':' : *p < ' ' || *p == 0x7f ? '_' : *p));
}

static int add_stack(void *arg, const struct stack_task *task,
                     const struct stack_entry *entries, unsigned count,
                     uint64_t samples)
{
    struct folded *f = arg;
    struct buf *line = &f->line;
    buf_clear(line);
    put_name(line, task->process);
    buf_printf(line, "-%u;", task->pid);
    put_name(line, task->thread);
    if (count == 0)
        buf_puts(line, ";(other stacks)");
    for (unsigned i = count; i-- > 0;) {
        buf_putc(line, ';');
        put_name(line, f->stacks->functions[entries[i].function].name);
    }
    struct strmap_entry *e = line->error
                                 ? NULL
                                 : strmap_enter(&f->lines, line->data, line->len, NULL);
    if (!e)
        return -ENOMEM;
    e->value += samples;
    f->totals.samples += samples;
    return 0;
}

/* Samples that had no room in the tables. */
static int print_rest(const struct folded *f, FILE *out)
{
    const uint64_t all = f->stacks->info.samples, counted = f->totals.samples;
    return all > counted && fprintf(out, "(other stacks) %llu\n",
                                    (unsigned long long)(all - counted)) < 0
               ? -EIO
               : 0;
}

static int print_lines(const struct strmap *lines, FILE *out)
{
    for (size_t i = 0; i < lines->count; i++)
        if (fprintf(out, "%s %llu\n", lines->entries[i].key,
                    (unsigned long long)lines->entries[i].value) < 0)
            return -EIO;
    return 0;
}

int export_folded(const struct export_job *job, struct export_totals *ret_totals)
{
    struct stacks *s;
    FILE *out = job->out;
    int rc = stacks_open(job->run->dir, &s);
    if (rc < 0)
        return rc == -ENOENT ? SONDE_E_NOTFOUND : rc;
    struct folded f = { .stacks = s, .line = BUF_INIT };
    strmap_init(&f.lines);
    rc = stacks_walk(s, add_stack, &f);
    if (rc == 0)
        rc = print_lines(&f.lines, out);
    if (rc == 0)
        rc = print_rest(&f, out);
    if (rc == 0)
        *ret_totals = f.totals;
    strmap_release(&f.lines);
    buf_release(&f.line);
    stacks_free(s);
    return rc;
}
