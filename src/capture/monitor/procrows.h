/* procrows.h: one row per process of the run. Private to the sampler. */
#ifndef SONDE_CAPTURE_MONITOR_PROCROWS_H
#define SONDE_CAPTURE_MONITOR_PROCROWS_H

#include "capture/monitor/proctab.h"
#include "trace/monitor_rows.h"
#include "trace/tables.h"

struct procrows {
    struct tables *tables;
    const struct monitor_roots *roots;
    struct proctab tab;
    bool keep_secrets;
    uint64_t at_ns; /* of the round */
    uint64_t lost;  /* processes there was no room for */
};

void procrows_init(struct procrows *rows, struct tables *tables,
                   const struct monitor_roots *roots, bool keep_secrets);
void procrows_release(struct procrows *rows);
/* At the beginning of a round. */
void procrows_follow(struct procrows *rows, const struct monitor_round *round,
                     uint64_t at_ns);
/* What series of the process are called; NULL: it is too young to have any. */
const char *procrows_subject(const struct procrows *rows, size_t process);
void procrows_total(struct procrows *rows, size_t process, enum monitor_total what,
                    double value);
void procrows_ended(struct procrows *rows, const struct monitor_process *process,
                    int status);

#endif
