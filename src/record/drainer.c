/* drainer.c: see drainer.h. */
#include "record/drainer.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "trace/drain.h"

static struct drainer {
    pthread_t thread;
    pid_t pid; /* process the thread lives in */
    bool running;
    int stop; /* atomic */
    struct drain *drain;
    uint64_t start_ticks, after_ns, duration_ns;
    int window; /* 0 before, 1 inside, 2 after */
} drainer;

static void follow_window(struct drainer *d)
{
    if (!d->after_ns && !d->duration_ns)
        return;
    double passed = (double)(ticks_now() - d->start_ticks) / ticks_per_ns();
    if (d->window == 0 && passed >= (double)d->after_ns) {
        d->window = 1;
        drain_set_gate(d->drain, true);
    }
    if (d->window == 1 && d->duration_ns &&
        passed >= (double)d->after_ns + (double)d->duration_ns) {
        d->window = 2;
        drain_set_gate(d->drain, false);
    }
}

static void *run(void *arg)
{
    struct drainer *d = arg;
    (void)pthread_setname_np(pthread_self(), "sonde-drain");
    while (!__atomic_load_n(&d->stop, __ATOMIC_ACQUIRE)) {
        follow_window(d);
        if (drain_pass(d->drain) > 0)
            continue;
        unsigned us = drain_pause_us(d->drain);
        if (us > 5000)
            us = 5000; /* drainer_stop() waits for us */
        struct timespec ts = { 0, us * 1000L };
        (void)nanosleep(&ts, NULL);
    }
    return NULL;
}

int drainer_start(const char *dir, struct control *control, uint64_t after_ns,
                  uint64_t duration_ns)
{
    drainer = (struct drainer){ .pid = getpid(),
                                .start_ticks = ticks_now(),
                                .after_ns = after_ns,
                                .duration_ns = duration_ns };
    int rc = drain_new(dir, control, &drainer.drain);
    if (rc < 0)
        return rc;
    sigset_t all, old;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&drainer.thread, NULL, run, &drainer);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    drainer.running = rc == 0;
    if (rc != 0)
        drain_free(drainer.drain);
    return rc == 0 ? 0 : -rc;
}

void drainer_stop(void)
{
    if (!drainer.running || drainer.pid != getpid())
        return;
    drainer.running = false;
    __atomic_store_n(&drainer.stop, 1, __ATOMIC_RELEASE);
    (void)pthread_join(drainer.thread, NULL);
    (void)drain_finish(drainer.drain, 64u << 20);
    drain_free(drainer.drain);
}
