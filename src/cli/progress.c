/* progress.c: how far a long verb has come. See progress.h. */
#include "cli/progress.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_MS = 1000, EACH_MS = 200, BAR = 24 };

static void draw(const struct progress *p, unsigned seconds)
{
    char line[160];
    const int done = atomic_load_explicit(&p->per_thousand, memory_order_relaxed);
    size_t len;
    if (done < 0) {
        len = (size_t)snprintf(line, sizeof line, "\r\033[K%.60s ... %u s", p->what,
                               seconds);
    } else {
        char bar[BAR + 1];
        const int filled = done * BAR / 1000;
        memset(bar, '#', (size_t)filled);
        memset(bar + filled, '.', (size_t)(BAR - filled));
        bar[BAR] = '\0';
        len = (size_t)snprintf(line, sizeof line, "\r\033[K%.60s [%s] %d %%", p->what,
                               bar, done / 10);
    }
    /* One write: what others print does not get into it. */
    (void)!write(STDERR_FILENO, line, len < sizeof line ? len : sizeof line - 1);
}

static void add_ms(struct timespec *t, long ms)
{
    t->tv_nsec += ms % 1000 * 1000000;
    t->tv_sec += ms / 1000 + t->tv_nsec / 1000000000;
    t->tv_nsec %= 1000000000;
}

static void *keep_drawing(void *arg)
{
    struct progress *p = arg;
    struct timespec start, next;
    bool drawn = false;
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    next = start;
    add_ms(&next, FIRST_MS);
    (void)pthread_mutex_lock(&p->lock);
    while (!p->over) {
        if (pthread_cond_timedwait(&p->ended, &p->lock, &next) == 0)
            continue;
        draw(p, (unsigned)(next.tv_sec - start.tv_sec));
        drawn = true;
        add_ms(&next, EACH_MS);
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (drawn)
        (void)!write(STDERR_FILENO, "\r\033[K", 4);
    return NULL;
}

/* Signals are the main thread's: it knows what to clean up. */
static bool start_thread(struct progress *p)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    const int rc = pthread_create(&p->thread, NULL, keep_drawing, p);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0;
}

void progress_begin(struct progress *progress, const char *what, bool quiet)
{
    struct progress *p = progress;
    pthread_condattr_t monotonic;
    memset(p, 0, sizeof *p);
    p->what = what;
    atomic_store(&p->per_thousand, -1);
    if (quiet || !isatty(STDERR_FILENO))
        return;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->ended, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    p->on = start_thread(p);
}

void progress_share(void *arg, double share)
{
    struct progress *p = arg;
    const int done = share >= 1 ? 1000 : share > 0 ? (int)(share * 1000) : 0;
    atomic_store_explicit(&p->per_thousand, done, memory_order_relaxed);
}

void progress_hide(struct progress *progress)
{
    if (!progress->on)
        return;
    (void)pthread_mutex_lock(&progress->lock);
    (void)!write(STDERR_FILENO, "\r\033[K", 4);
}

void progress_show(struct progress *progress)
{
    if (!progress->on)
        return;
    (void)fflush(stdout);
    (void)pthread_mutex_unlock(&progress->lock);
}

void progress_end(struct progress *progress)
{
    struct progress *p = progress;
    if (!p->on)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->over = true;
    (void)pthread_cond_signal(&p->ended);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->thread, NULL);
    (void)pthread_cond_destroy(&p->ended);
    (void)pthread_mutex_destroy(&p->lock);
    p->on = false;
}
