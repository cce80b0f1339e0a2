/* watch.c: a program watches itself: sonde_monitor_start() and what belongs to it.
 *
 * A thread of the program makes the rounds. It writes into the run of the session when
 * there is one, else values are kept in memory. After stopping they can still be asked
 * for, until the next start.
 *
 * Fork: the child has neither the thread nor a right to the mapping. `pid` says whose
 * everything here is; in a child the old sampler is left alone, not freed. Locks hold
 * the pid of their holder's process: one that was locked when the program forked is
 * recognised in the child and taken over.
 *
 * Two locks: `control` for start and stop, `data` for the sampler; in this order.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/monitor/alert_api.h"
#include "base/moment.h"
#include "capture/monitor/alerts.h"
#include "capture/monitor/sampler.h"
#include "record/copies.h"
#include "record/recorder.h"
#include "trace/file.h"

static struct watch {
    uint32_t control, data; /* locks */
    pid_t pid;              /* whose the rest is; atomic */
    bool running;
    pthread_t thread;
    int stop; /* atomic */
    struct sampler *sampler;
    struct alerts *alerts; /* of sonde_alert_add(); NULL: no memory for them */
    struct monitor_process self;
} watch;

/* A round takes long enough to make spinning a waste. */
static void take(uint32_t *lock)
{
    const struct timespec nap = { 0, 100000 };
    const uint32_t mine = (uint32_t)getpid();
    uint32_t holder = 0;
    while (!__atomic_compare_exchange_n(lock, &holder, mine, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
        if (holder == mine) {
            (void)nanosleep(&nap, NULL);
            holder = 0;
        } /* else the parent's: the next attempt takes it over */
}

static void give(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

static bool is_ours(void)
{
    return __atomic_load_n(&watch.pid, __ATOMIC_ACQUIRE) == getpid();
}

static void make_round(void)
{
    const uint64_t now = moment_ns(CLOCK_MONOTONIC);
    take(&watch.data);
    sampler_round(watch.sampler, now, &watch.self, 1);
    give(&watch.data);
    if (watch.alerts) /* without the lock: callbacks may ask for values */
        alerts_deliver(watch.alerts);
}

/* Naps, so that stopping is not kept waiting; at most 20 ms too long. */
static void sleep_until(uint64_t until_ns)
{
    uint64_t now;
    while (!__atomic_load_n(&watch.stop, __ATOMIC_ACQUIRE) &&
           (now = moment_ns(CLOCK_MONOTONIC)) < until_ns) {
        const uint64_t left = until_ns - now;
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

/* The program is told by calls; nothing is kept in the run. Watching goes on without. */
static void make_alerts(uint64_t interval_ns)
{
    const struct alerts_options options = { .interval_ns = interval_ns };
    if (is_ours() && watch.alerts) {
        alert_api_detach(watch.alerts);
        alerts_free(watch.alerts);
    }
    watch.alerts = NULL;
    (void)alerts_new(&options, &watch.alerts);
}

static struct monitor_sink *attach_alerts(void *arg, struct monitor_sink *next)
{
    (void)arg;
    return watch.alerts ? alerts_sink(watch.alerts, next) : next;
}

static void tell_alerts(void *arg, const struct monitor_round *round)
{
    (void)arg;
    if (!watch.alerts)
        return;
    (void)alert_api_attach(watch.alerts);
    alerts_round(watch.alerts, round);
}

static const struct sampler_hooks alert_hooks = { .attach = attach_alerts,
                                                  .round_begins = tell_alerts };

static int make_sampler(uint64_t interval_ns)
{
    const bool session = session_active();
    const struct sampler_options options = {
        .dir = session ? recorder.dir : NULL,
        .control = session ? recorder.control : NULL,
        .interval_ns = interval_ns,
        .pid = (uint32_t)getpid(),
        .inside = true,
        .joined = session && !(recorder.control->flags & CONTROL_SUPERVISED),
        .hooks = &alert_hooks,
    };
    struct sampler *fresh = NULL;
    make_alerts(interval_ns);
    const int rc = sampler_new(&options, &fresh);
    if (rc < 0)
        return rc;
    take(&watch.data);
    if (is_ours())
        sampler_free(watch.sampler);
    watch.sampler = fresh;
    watch.self = (struct monitor_process){ (uint32_t)getpid(),
                                           process_start_ticks((uint32_t)getpid()) };
    __atomic_store_n(&watch.pid, getpid(), __ATOMIC_RELEASE);
    give(&watch.data);
    return 0;
}

static int start(uint64_t interval_ns)
{
    if (is_ours() && watch.running)
        return -EBUSY;
    int rc = make_sampler(interval_ns);
    if (rc < 0)
        return rc;
    make_round(); /* current values are there when we return */
    __atomic_store_n(&watch.stop, 0, __ATOMIC_RELAXED);
    rc = start_thread();
    watch.running = rc == 0;
    return rc;
}

int watch_start(uint64_t interval_ns)
{
    const char *disable = secure_getenv("SONDE_DISABLE");
    if (disable && *disable && strcmp(disable, "0") != 0)
        return -ECANCELED;
    if (interval_ns && (interval_ns < SAMPLER_INTERVAL_MIN_NS ||
                        interval_ns > SAMPLER_INTERVAL_MAX_NS))
        return -EINVAL;
    take(&watch.control);
    const int rc = start(interval_ns);
    give(&watch.control);
    return rc;
}

int watch_stop(void)
{
    int rc = -ENOENT;
    take(&watch.control);
    if (is_ours() && watch.running) {
        __atomic_store_n(&watch.stop, 1, __ATOMIC_RELEASE);
        (void)pthread_join(watch.thread, NULL); /* its answer is a last round */
        watch.running = false;
        rc = 0;
    }
    give(&watch.control);
    return rc;
}

int watch_stats(const char *metric, const char *subject,
                struct sonde_monitor_summary *ret_stats)
{
    struct monitor_stats stats;
    if (!metric || !is_ours())
        return -ENOENT;
    take(&watch.data);
    const bool known = sampler_stats(watch.sampler, metric, subject, &stats);
    give(&watch.data);
    if (!known)
        return -ENOENT;
    *ret_stats = (struct sonde_monitor_summary){
        .samples = stats.count,
        .average = stats.weight_s > 0 ? stats.sum / stats.weight_s : stats.last,
        .peak = stats.max,
        .least = stats.min,
        .last = stats.last,
    };
    return 0;
}
