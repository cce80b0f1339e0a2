/* progress.h: how far a long verb has come, on one line of the terminal.
 *
 *     struct progress p;
 *     progress_begin(&p, "exporting", quiet);
 *     … progress_share(&p, 0.4) …        optional: as struct export_job's callback
 *     progress_end(&p);
 *
 * Nothing in the first second, nothing at all where standard error is no terminal. Without
 * shares the line tells the seconds. A thread draws it, so that work which cannot be
 * interrupted for telling how far it is shows life, too.
 */
#ifndef SONDE_CLI_PROGRESS_H
#define SONDE_CLI_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct progress {
    bool on;
    const char *what; /* borrowed */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;               /* under the lock */
    atomic_int per_thousand; /* −1: not told */
};

void progress_begin(struct progress *progress, const char *what, bool quiet);
/* arg is the struct progress; 0 to 1. Of any thread. */
void progress_share(void *arg, double share);
/* Around what is printed meanwhile: the line is gone, and nobody draws it. */
void progress_hide(struct progress *progress);
void progress_show(struct progress *progress);
/* Takes the line away. */
void progress_end(struct progress *progress);

#endif
