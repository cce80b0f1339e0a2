/* watchfile.h: the post-mortem's state in a file, and its reading without a supervisor. */
#ifndef SONDE_LAUNCH_WATCHFILE_H
#define SONDE_LAUNCH_WATCHFILE_H

#include "launch/memcg.h"
#include "trace/control.h"
#include "trace/runfile.h"
#include "trace/tables.h"
#include "trace/watch_rows.h"

struct watchfile {
    struct tables tables;
    struct watch_row *row; /* NULL: none */
};

/* `group` may be NULL. Without a file everything below does nothing. */
void watchfile_open(struct watchfile *ret_file, const char *dir,
                    struct control *control, const struct memcg *group);
void watchfile_close(struct watchfile *file);

/* The sizes of now; growth NaN: unknown. */
void watchfile_update(struct watchfile *file, uint64_t rss, double growth,
                      bool hanging);
void watchfile_asked(struct watchfile *file, int signal, bool scheduler);

/* What can be said about a run that was found without program and supervisor; exit has
 * neither code nor signal. `same_boot`: counters of control groups still mean the same. */
void watchfile_judge(const char *dir, bool same_boot, struct runfile_exit *ret_exit,
                     struct runfile_death *ret_death);

#endif
