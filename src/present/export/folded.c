/* folded.c: call paths, one a line with its weight: "process;thread;main;f 12".
 *
 * What flamegraph.pl, inferno, speedscope and others read. Weights: samples of CPU time
 * for native and merged stacks, microseconds of wall time for Python, of their own for zones, bytes
 * for allocations. Names are the program's: semicolons, blanks at the ends and control
 * characters would be taken for something else and become '_' or ':'.
 */
#include "present/export/samples.h"

#include <errno.h>

#include "base/buf.h"
#include "base/strmap.h"

struct folded {
    unsigned value;      /* which of a sample's */
    int64_t unit;        /* what one of the weights is */
    struct strmap lines; /* places in one function are one line */
    struct buf line, label;
    struct export_totals totals;
};

static void put_name(struct buf *out, const char *name)
{
    if (!name[0])
        name = "(unknown)";
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        buf_putc(out, (char)(*p == ';' ? ':' : *p < ' ' || *p == 0x7f ? '_' : *p));
}

static int add_sample(void *arg, const struct sample *s)
{
    struct folded *f = arg;
    struct buf *line = &f->line;
    buf_clear(line);
    if (s->pid) {
        put_name(line, s->process);
        buf_printf(line, "-%u;", s->pid);
    }
    if (s->thread[0]) {
        put_name(line, s->thread);
        buf_putc(line, ';');
    }
    for (unsigned i = s->depth; i-- > 0;) {
        buf_clear(&f->label);
        sample_label(&s->frames[i], &f->label);
        put_name(line, f->label.error ? "" : f->label.data);
        if (i)
            buf_putc(line, ';');
    }
    struct strmap_entry *e = line->error || f->label.error
                                 ? NULL
                                 : strmap_enter(&f->lines, line->data, line->len, NULL);
    if (!e)
        return -ENOMEM;
    e->value += (uint64_t)s->values[f->value];
    f->totals.samples += (uint64_t)s->values[0];
    return 0;
}

/* Lines of less than one unit would be lines of nothing. */
static int print_lines(const struct folded *f, FILE *out)
{
    for (size_t i = 0; i < f->lines.count; i++) {
        const uint64_t weight = (f->lines.entries[i].value + (uint64_t)f->unit / 2) /
                                (uint64_t)f->unit;
        if (weight && fprintf(out, "%s %llu\n", f->lines.entries[i].key,
                              (unsigned long long)weight) < 0)
            return -EIO;
    }
    return 0;
}

int export_folded(const struct export_job *job, struct export_totals *ret_totals)
{
    const struct sample_source *source = sample_source(job->what);
    const bool native = job->what == EXPORT_STACKS || job->what == EXPORT_MERGED;
    struct folded f = { .value = native ? 0 : source->usual,
                        .line = BUF_INIT,
                        .label = BUF_INIT };
    f.unit = source->types[f.value].unit[0] == 'n' ? 1000 : 1;
    strmap_init(&f.lines);
    int rc = source->walk(job, add_sample, &f);
    if (rc == 0)
        rc = print_lines(&f, job->out);
    if (rc == 0)
        *ret_totals = f.totals;
    strmap_release(&f.lines);
    buf_release(&f.line);
    buf_release(&f.label);
    return rc;
}
