/* capture_aside.c: keeps the supervisor off the core the program's main thread is on.
 *
 * Where all cores have work, which is soon the case on a machine with two of them, the
 * kernel takes whichever it likes from the program when the supervisor wakes up. Loaders'
 * workers and helpers can spare it: they are ahead, the main thread is what a step waits
 * for. So on machines with few cores the supervisor may run on all but the one where the
 * main thread of the program was last seen at work. With many there is always one free.
 *
 * Only the supervisor itself is moved, and only while the program runs. A program whose
 * first process computes little (a shell, torchrun) has no such thread: all cores will do.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/capture_list.h"

enum {
    FEW_CORES = 4,
    EVERY_MS = 250,
    PROCESSOR = 39 - 3, /* fields of stat behind the state */
    USER_TIME = 14 - 3,
    SYSTEM_TIME = 15 - 3,
};
static const uint64_t EVERY_NS = EVERY_MS * 1000000ULL;
static const double AT_WORK = 0.25; /* of the time, at least */

struct aside {
    cpu_set_t all;
    int stat;    /* of the main thread; −1: none */
    int avoided; /* core; −1: none */
    uint64_t looked_ns;
    uint64_t spent; /* clock ticks, by then */
};

static int prepare(const struct capture_context *context, void **ret_state)
{
    struct aside *a = calloc(1, sizeof *a);
    (void)context;
    if (!a)
        return 0; /* then it runs where it likes */
    a->stat = a->avoided = -1;
    if (sched_getaffinity(0, sizeof a->all, &a->all) < 0)
        CPU_ZERO(&a->all);
    *ret_state = a;
    return 0;
}

static int start(void *state, const struct capture_context *context)
{
    struct aside *a = state;
    char path[64];
    const int cores = a ? CPU_COUNT(&a->all) : 0;
    if (cores < 2 || cores > FEW_CORES)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)context->pid,
                   (int)context->pid);
    a->stat = open(path, O_RDONLY | O_CLOEXEC);
    return 0;
}

struct seen {
    uint64_t spent;
    int core;
};

/* "42 (na me) R 1 …": the name may hold anything but ends with the last parenthesis. */
static bool look(const struct aside *a, struct seen *ret)
{
    char text[1024];
    const ssize_t n = pread(a->stat, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    uint64_t field[PROCESSOR + 1] = { 0 };
    if (!at || !(at = strchr(at, ' ')) || !(at = strchr(at + 1, ' ')))
        return false;
    for (int i = 1; i <= PROCESSOR; i++) {
        char *end;
        field[i] = strtoull(at, &end, 10);
        if (end == at)
            return false;
        at = end;
    }
    *ret = (struct seen){ field[USER_TIME] + field[SYSTEM_TIME],
                          (int)field[PROCESSOR] };
    return true;
}

static void avoid(struct aside *a, int core)
{
    cpu_set_t set = a->all;
    if (core == a->avoided)
        return;
    if (core >= 0 && core < CPU_SETSIZE)
        CPU_CLR(core, &set);
    if (CPU_COUNT(&set) > 0 && sched_setaffinity(0, sizeof set, &set) == 0)
        a->avoided = core;
}

static uint64_t tick(void *state, uint64_t now)
{
    struct aside *a = state;
    struct seen seen;
    if (!a || a->stat < 0)
        return 0;
    if (!look(a, &seen)) {
        avoid(a, -1);
        return 0;
    }
    const double took = (double)(now - a->looked_ns) / 1e9;
    const double worked = (double)(seen.spent - a->spent) /
                          (double)sysconf(_SC_CLK_TCK);
    if (a->looked_ns)
        avoid(a, worked > AT_WORK * took ? seen.core : -1);
    a->looked_ns = now;
    a->spent = seen.spent;
    return now + EVERY_NS;
}

static void ending(void *state)
{
    struct aside *a = state;
    if (a)
        avoid(a, -1);
}

static void release(void *state)
{
    struct aside *a = state;
    if (!a)
        return;
    avoid(a, -1);
    if (a->stat >= 0)
        (void)close(a->stat);
    free(a);
}

const struct capture_ops capture_aside = {
    .name = "the core to keep off",
    .prepare = prepare,
    .start = start,
    .tick = tick,
    .at_any_time = true,
    .ending = ending,
    .release = release,
};
