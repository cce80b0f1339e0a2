/* syscalls.c: see syscalls.h. */
#include "analyse/syscalls.h"

#include "analyse/report.h"
#include "trace/syscall_rows.h"
#include "trace/tablefiles.h"

/* A supervisor writes one file with one row; of several the newest counts. */
static int read_file(void *arg, const char *name, struct tablefile *file, int rc)
{
    struct syscall_report *s = arg;
    struct syscall_count_row row;
    (void)name;
    const int table = rc == 0 ? tablefile_find(file, "counts") : -1;
    if (table < 0 || !tablefile_get(file, table, 0, &row, sizeof row))
        return 0;
    *s = (struct syscall_report){ .known = row.count > 0 || row.final,
                                  .is_final = row.final == 1,
                                  .count = row.count };
    return 0;
}

int syscalls_read(struct report *report)
{
    return tablefiles_each(report->run->dir, SYSCALL_KIND, read_file,
                           &report->syscalls);
}
