/* operation.c: zones with CPU time, memory and a record the program can read.
 *
 * Peak memory: when the kernel's high-water mark rose between begin and end, it is
 * the exact peak. Otherwise the peak lies below an earlier one and nobody kept it;
 * then a small thread, which runs only while operations are open, looks at the
 * resident set every few milliseconds, and the record says "sampled".
 */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "record/copies.h"

enum { SAMPLE_NS = 4000000, IDLE_ROUNDS = 500 };

static struct sonde_operation *open_operations; /* guarded by operations_lock */

/* ---- Readings -------------------------------------------------------------------- */

static uint64_t clock_ns(clockid_t id)
{
    struct timespec ts;
    return clock_gettime(id, &ts) == 0
               ? (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec
               : 0;
}

/* Resident set in KiB; 0 when it cannot be read. */
static uint64_t resident_kb(void)
{
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    char text[128];
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *p = strchr(text, ' ');
    uint64_t pages = 0;
    for (p = p ? p + 1 : ""; *p >= '0' && *p <= '9'; p++)
        pages = pages * 10 + (uint64_t)(*p - '0');
    return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static uint64_t high_water_kb(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss : 0;
}

static double mb(uint64_t kb)
{
    return kb ? (double)kb / 1024 : NAN;
}

/* As the trace keeps it. */
static uint64_t kb_or_missing(double mb)
{
    return isnan(mb) ? UINT32_MAX : (uint64_t)(mb * 1024);
}

/* ---- Sampling -------------------------------------------------------------------- */

/* An operation that began after the reading has no part in it. */
static bool sample_all(void)
{
    const uint64_t when = clock_ns(CLOCK_MONOTONIC);
    const uint64_t kb = resident_kb();
    spin_lock(&recorder.wiped->operations_lock);
    bool any = open_operations != NULL;
    for (struct sonde_operation *op = open_operations; op; op = op->next)
        if (op->linked_ns <= when && kb > op->sampled_kb)
            op->sampled_kb = kb;
    spin_unlock(&recorder.wiped->operations_lock);
    return any;
}

static void *sampler(void *arg)
{
    (void)arg;
    (void)pthread_setname_np(pthread_self(), "sonde-memory");
    for (int idle = 0; idle < IDLE_ROUNDS;) {
        idle = sample_all() ? 0 : idle + 1;
        struct timespec ts = { 0, SAMPLE_NS };
        (void)nanosleep(&ts, NULL);
    }
    __atomic_store_n(&recorder.wiped->sampler_runs, 0, __ATOMIC_RELEASE);
    return NULL;
}

static void start_sampler(void)
{
    if (__atomic_exchange_n(&recorder.wiped->sampler_runs, 1, __ATOMIC_ACQ_REL))
        return;
    pthread_t thread;
    pthread_attr_t attr;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, sampler, NULL) != 0)
        __atomic_store_n(&recorder.wiped->sampler_runs, 0, __ATOMIC_RELEASE);
    (void)pthread_attr_destroy(&attr);
}

/* ---- Begin and end --------------------------------------------------------------- */

static void link_operation(struct sonde_operation *op)
{
    sigset_t old;
    signals_block(&old);
    spin_lock(&recorder.wiped->operations_lock);
    op->linked_ns = clock_ns(CLOCK_MONOTONIC);
    op->prev = NULL;
    op->next = open_operations;
    if (open_operations)
        open_operations->prev = op;
    open_operations = op;
    spin_unlock(&recorder.wiped->operations_lock);
    start_sampler(); /* with signals blocked: its thread inherits that */
    signals_restore(&old);
}

static void unlink_operation(struct sonde_operation *op)
{
    sigset_t old;
    signals_block(&old);
    spin_lock(&recorder.wiped->operations_lock);
    if (op->next)
        op->next->prev = op->prev;
    if (op->prev)
        op->prev->next = op->next;
    else if (open_operations == op)
        open_operations = op->next;
    spin_unlock(&recorder.wiped->operations_lock);
    signals_restore(&old);
}

void operation_begin(struct sonde_operation *op, const char *name, int phase,
                     const char *component, const char *tags)
{
    memset(op, 0, sizeof *op);
    op->enabled = 1;
    struct site_spec spec = { .name = name ? name : "",
                              .component = component,
                              .tags = tags,
                              .phase = phase,
                              .category = "operation" };
    op->site = record_site_named(&spec);
    op->name = op->site->name;
    op->component = op->site->component && *op->site->component ? op->site->component
                                                                : NULL;
    op->duration_s = op->cpu_s = op->process_cpu_s = NAN;
    op->mem_after_mb = op->mem_peak_mb = NAN;
    op->start_s = (double)clock_ns(CLOCK_REALTIME) / 1e9;
    op->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    op->pcpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    op->hwm_kb = high_water_kb();
    op->sampled_kb = resident_kb();
    op->mem_before_mb = mb(op->sampled_kb);
    if (recorder.wiped)
        link_operation(op);
    op->start_ns = clock_ns(CLOCK_MONOTONIC);
    sonde_begin(op->site);
}

void sonde_operation_value(struct sonde_operation *op, const char *name, double value)
{
    int i = 0;
    name = name ? name : "";
    while (i < op->value_count && strncmp(op->values[i].name, name, 47) != 0)
        i++;
    if (i == SONDE_OPERATION_VALUES) {
        op->values_dropped++;
    } else {
        snprintf(op->values[i].name, sizeof op->values[i].name, "%s", name);
        op->values[i].value = value;
        op->value_count += i == op->value_count;
    }
    if (op->enabled)
        sonde_value(name, value);
}

double sonde_operation_elapsed(const struct sonde_operation *op)
{
    if (!op->enabled)
        return NAN;
    if (!isnan(op->duration_s))
        return op->duration_s;
    return (double)(clock_ns(CLOCK_MONOTONIC) - op->start_ns) / 1e9;
}

static void record_memory(const struct sonde_operation *op)
{
    const uint64_t payload[4] = { (uint64_t)(op->cpu_s * 1e9) & 0xffffffffffffULL,
                                  kb_or_missing(op->mem_before_mb),
                                  kb_or_missing(op->mem_after_mb),
                                  kb_or_missing(op->mem_peak_mb) };
    if (record_recording())
        lanes_record(TAG_OP, payload, 4);
}

/* Fills in what is known at the end. */
static void close_record(struct sonde_operation *op)
{
    op->duration_s = (double)(clock_ns(CLOCK_MONOTONIC) - op->start_ns) / 1e9;
    op->cpu_s = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - op->cpu_ns) / 1e9;
    op->process_cpu_s = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - op->pcpu_ns) /
                        1e9;
    uint64_t after = resident_kb(), hwm = high_water_kb();
    if (recorder.wiped)
        unlink_operation(op);
    op->mem_after_mb = mb(after);
    op->mem_peak_exact = hwm > op->hwm_kb;
    uint64_t peak = op->mem_peak_exact ? hwm : op->sampled_kb;
    op->mem_peak_mb = mb(peak > after ? peak : after);
}

int operation_end(struct sonde_operation *op, double threshold_mb)
{
    if (!op->enabled || !isnan(op->duration_s))
        return 0;
    close_record(op);
    /* Unknown memory is above no threshold but that of sonde_operation_end(). */
    int over = threshold_mb == -INFINITY ||
               op->mem_peak_mb - op->mem_before_mb > threshold_mb;
    if (over) /* only then is it an operation; otherwise a zone like any other */
        record_memory(op);
    sonde_end(op->site);
    return over;
}
