/* watch.c: a program watches itself: sonde_monitor_start() and what belongs to it.
 *
 * A thread of the program makes the rounds. It writes into the run of the session when
 * there is one, else values are kept in memory. After stopping they can still be asked
 * for, until the next start.
 *
 * Fork: the child has neither the thread nor a right to the mapping. Whoever finds
 * another process's number here forgets everything and begins anew. The lock is our
 * own: one of libc's could stay locked in the child for ever.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/monitor/alert_api.h"
#include "capture/monitor/alerts.h"
#include "capture/monitor/sampler.h"
#include "record/copies.h"
#include "record/recorder.h"
#include "trace/file.h"

static struct watch {
    pid_t pid; /* whose all of this is */
    uint32_t lock;
    bool running;
    pthread_t thread;
    int stop; /* atomic */
    struct sampler *sampler;
    struct alerts *alerts; /* of sonde_alert_add(); NULL: could not be made */
    struct monitor_process self;
} watch;

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A round takes long enough to make spinning a waste. */
static void take(void)
{
    const struct timespec nap = { 0, 100000 };
    while (__atomic_exchange_n(&watch.lock, 1, __ATOMIC_ACQUIRE))
        (void)nanosleep(&nap, NULL);
}

static void give(void)
{
    __atomic_store_n(&watch.lock, 0, __ATOMIC_RELEASE);
}

/* In the child of a fork the old sampler is the parent's: left alone, not freed. */
static void notice_fork(void)
{
    if (watch.pid != getpid())
        watch = (struct watch){ .pid = getpid() };
}

/* Callbacks come without the lock: they may ask for values. */
static void make_round(void)
{
    const uint64_t now = now_ns();
    if (watch.alerts) {
        (void)alert_api_attach(watch.alerts);
        const struct monitor_round round = { .now_ns = now,
                                             .processes = &watch.self,
                                             .process_count = 1 };
        alerts_round(watch.alerts, &round);
    }
    take();
    sampler_round(watch.sampler, now, &watch.self, 1);
    give();
    if (watch.alerts)
        alerts_deliver(watch.alerts);
}

/* Naps, so that stopping is not kept waiting; at most 20 ms too long. */
static void sleep_until(uint64_t moment_ns)
{
    uint64_t now;
    while (!__atomic_load_n(&watch.stop, __ATOMIC_ACQUIRE) &&
           (now = now_ns()) < moment_ns) {
        const uint64_t left = moment_ns - now;
        const struct timespec nap = { 0, (long)(left < 20000000 ? left : 20000000) };
        (void)nanosleep(&nap, NULL);
    }
}

static void *run(void *arg)
{
    (void)arg;
    (void)pthread_setname_np(pthread_self(), "sonde-monitor");
    while (!__atomic_load_n(&watch.stop, __ATOMIC_ACQUIRE)) {
        sleep_until(sampler_next_ns(watch.sampler));
        make_round();
    }
    return NULL;
}

static int start_thread(void)
{
    sigset_t all, old;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    const int rc = pthread_create(&watch.thread, NULL, run, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -rc;
}

/* Watching goes on without them. */
static void start_alerts(const struct sampler_options *o)
{
    const struct alerts_options options = { .dir = o->dir,
                                            .control = o->control,
                                            .interval_ns = o->interval_ns };
    if (watch.alerts) {
        alert_api_detach(watch.alerts);
        alerts_free(watch.alerts);
        watch.alerts = NULL;
    }
    if (alerts_new(&options, &watch.alerts) == 0)
        sampler_watch(watch.sampler,
                      alerts_sink(watch.alerts, sampler_sink(watch.sampler)));
}

int watch_start(uint64_t interval_ns)
{
    notice_fork();
    if (watch.running)
        return -EBUSY;
    if (interval_ns && (interval_ns < SAMPLER_INTERVAL_MIN_NS ||
                        interval_ns > SAMPLER_INTERVAL_MAX_NS))
        return -EINVAL;
    sampler_free(watch.sampler);
    watch.sampler = NULL;
    watch.self = (struct monitor_process){ (uint32_t)getpid(),
                                           process_start_ticks((uint32_t)getpid()) };
    const bool session = session_active();
    const struct sampler_options options = {
        .dir = session ? recorder.dir : NULL,
        .control = session ? recorder.control : NULL,
        .interval_ns = interval_ns,
        .pid = watch.self.pid,
        .inside = true,
    };
    int rc = sampler_new(&options, &watch.sampler);
    if (rc < 0)
        return rc;
    start_alerts(&options);
    make_round(); /* current values are there when we return */
    watch.stop = 0;
    rc = start_thread();
    watch.running = rc == 0;
    return rc;
}

int watch_stop(void)
{
    notice_fork();
    if (!watch.running)
        return -ENOENT;
    __atomic_store_n(&watch.stop, 1, __ATOMIC_RELEASE);
    (void)pthread_join(watch.thread, NULL); /* its last round was its answer to that */
    watch.running = false;
    return 0;
}

int watch_stats(const char *metric, const char *subject,
                struct sonde_monitor_stats *ret_stats)
{
    struct monitor_stats stats;
    notice_fork();
    if (!metric || !watch.sampler)
        return -ENOENT;
    take();
    const bool known = sampler_stats(watch.sampler, metric, subject, &stats);
    give();
    if (!known)
        return -ENOENT;
    *ret_stats = (struct sonde_monitor_stats){
        .samples = stats.count,
        .average = stats.weight_s > 0 ? stats.sum / stats.weight_s : stats.last,
        .peak = stats.max,
        .least = stats.min,
        .last = stats.last,
    };
    return 0;
}
