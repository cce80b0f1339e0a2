/* adoptcrash.c: see adoptcrash.h. */
#include "launch/adoptcrash.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/signame.h"
#include "launch/crashes.h"

static const uint64_t SHM_FULL = 64 << 10;

static void describe(const struct fault *f, const char *who, struct runfile_death *d)
{
    char name[SIGNAL_NAME_LEN], at[40] = "";
    if (f->signal != SIGABRT)
        (void)snprintf(at, sizeof at, " at address %#" PRIx64, f->address);
    (void)snprintf(
        d->text, sizeof d->text, "%skilled by %s%s%s%s%s", who,
        signal_name(f->signal, name), at, f->place[0] ? " in " : "", f->place,
        f->signal == SIGBUS && f->shm_free < SHM_FULL ? "; /dev/shm was full" : "");
    (void)snprintf(d->method, sizeof d->method,
                   "fault seen by the preload library; its supervisor had died");
    d->pid = (uint32_t)f->pid;
    d->frame_count = f->frame_count;
    (void)memcpy(d->frame, f->frame, sizeof d->frame);
}

/* The program's own last words beat everything but an OOM kill, which comes unseen. A
 * worker's are only a hint, for how the program ended is not known. */
void adopt_crash(const char *dir, int64_t pid, struct runfile_exit *exit,
                 struct runfile_death *death)
{
    struct fault fault;
    char who[48];
    if (strncmp(exit->cause, "oom", 3) == 0)
        return;
    if (pid > 0 && pid <= INT32_MAX && crashes_read(dir, (uint32_t)pid, &fault)) {
        exit->signal = fault.signal;
        exit->cause = fault.signal == SIGBUS && fault.shm_free < SHM_FULL
                          ? "shm_exhausted"
                          : "signal";
        describe(&fault, "", death);
        return;
    }
    const uint32_t worker = death->text[0] ? 0 : crashes_first(dir, 0);
    if (!worker || !crashes_read(dir, worker, &fault))
        return;
    (void)snprintf(who, sizeof who, "ended unseen; process %u was ", worker);
    describe(&fault, who, death);
}
