/* sonde.h: everything a traced C or C++ program needs.
 *
 *     #include <sonde/sonde.h>
 *
 *     for (int i = 0; i < steps; i++) {
 *         sonde_step();
 *         SONDE_ZONE("load", SONDE_DATA_LOADING) { load(batch); }
 *         SONDE_ZONE("forward", SONDE_FORWARD) { loss = forward(batch); }
 *         sonde_metric("loss", loss);
 *     }
 *
 * Link with libsonde (`pkg-config --cflags --libs sonde`) and run the program
 * with `sonde run -- ./program`. Without `sonde run`, and without a call of
 * sonde_session_start(), every call below is a load and a branch.
 *
 * Rules that always hold:
 *  - Nothing here fails in a way the program must handle: when recording is
 *    not possible the calls do nothing and the report says why.
 *  - Any thread may call anything at any time. Zones, counters, metrics, marks
 *    and steps may also be recorded from signal handlers.
 *  - Names are copied at first use; 'const char *' arguments are borrowed for
 *    the call only.
 *  - A zone belongs to the thread that began it; a span may change threads.
 */
#ifndef SONDE_SONDE_H
#define SONDE_SONDE_H

#include <stddef.h>
#include <stdint.h>
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#include <x86intrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SONDE_API     __attribute__((visibility("default")))
#define SONDE_VERSION "0.1.0"

/* What a zone is for. The report splits the main thread's time by phase. */
enum sonde_phase {
    SONDE_NO_PHASE = 0, /* inherits the phase of the enclosing zone */
    SONDE_DATA_LOADING,
    SONDE_PREPROCESSING,
    SONDE_AUGMENTATION,
    SONDE_COLLATE,
    SONDE_TRANSFER,
    SONDE_FORWARD,
    SONDE_BACKWARD,
    SONDE_GRADIENT,
    SONDE_OPTIMIZER,
    SONDE_SYNC,
    SONDE_COMMUNICATION,
    SONDE_EVALUATION,
    SONDE_CHECKPOINT,
    SONDE_MODEL_CREATION,
    SONDE_OTHER,
    SONDE_PHASE_COUNT
};

/* The name used in reports ("data_loading"); NULL for a number out of range. */
SONDE_API const char *sonde_phase_name(int phase);

/* ---- Sites ---------------------------------------------------------------
 *
 * A site is a place that records zones. The macros make static ones;
 * sonde_site_named() makes them for names known only at run time. Only the
 * first field changes after registration; the second is set once, before it. */
struct sonde_site {
    uint32_t word;    /* ours: 0 until registered, and while switched off */
    uint32_t id;      /* ours: 0 until registered */
    const char *name; /* shown in reports */
    const char *file;
    const char *component; /* groups operations: "evolution", "growth"… */
    const char *category;  /* free text, kept as given */
    const char *tags;      /* "key=value,key=value" */
    int32_t line;
    int32_t phase; /* enum sonde_phase */
};

/* A site for a name made at run time; the same arguments give the same site.
 * Past 32,752 sites in a process the shared site "(other names)" is returned.
 * Never NULL; valid until the process ends. component, category and tags may
 * be NULL. Costs a hash look-up: keep the result in hot code. */
SONDE_API struct sonde_site *sonde_site_named(const char *name, int phase,
                                              const char *component,
                                              const char *category, const char *tags);

/* Switch one site off or on at run time. */
SONDE_API void sonde_site_enable(struct sonde_site *site, int enabled);

/* ---- The hot path --------------------------------------------------------
 *
 * Private to this header. The gate is one word shared with the supervisor; the
 * lane is this thread's event stream. `cursor` is the address of the next free
 * 8-byte slot of a block of 64 KiB that begins with 512 bytes of header, so an
 * address whose bits 9–15 are zero is outside the slots: a full block, or a lane
 * that is not ready (forked child, session over). Reserving is one instruction,
 * so a signal handler in between gets a slot of its own.
 *
 * `open` are the tags of the zones this thread is in, for those who ask on whose
 * behalf something happens (allocations). A handler leaves depth as it found it. */
enum { SONDE_OPEN_ZONES = 62 };
struct sonde_lane {
    uint64_t cursor;
    uint64_t pad[7];
    uint32_t depth; /* may exceed SONDE_OPEN_ZONES: then the innermost are not known */
    uint16_t open[SONDE_OPEN_ZONES];
};
#define SONDE_GATE_OFF  1u
#define SONDE_SLOT_MASK 0xFE00u
extern SONDE_API const volatile uint32_t *sonde_gate_;
extern SONDE_API __thread struct sonde_lane *sonde_lane_
    __attribute__((tls_model("initial-exec")));

SONDE_API void sonde_begin_slow_(struct sonde_site *site);
SONDE_API void sonde_end_slow_(struct sonde_site *site);

static inline uint64_t sonde_reserve_(struct sonde_lane *lane, uint64_t bytes)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    /* No lock prefix: only this thread and its own signal handlers get here. */
    __asm__ volatile("xaddq %0, %1" : "+r"(bytes), "+m"(lane->cursor) : : "cc");
    return bytes;
#else
    return __atomic_fetch_add(&lane->cursor, bytes, __ATOMIC_RELAXED);
#endif
}

static inline uint64_t sonde_ticks_(void)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    return __rdtsc();
#elif defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#else
    return 0; /* lanes never become ready here: the slow path reads the clock */
#endif
}

#define SONDE_LIKELY_(x) __builtin_expect(!!(x), 1)

/* Record one event of a site that is known to be on. */
static inline int sonde_event_(struct sonde_lane *lane, uint64_t tag)
{
    uint64_t slot = sonde_reserve_(lane, 8);
    if (!SONDE_LIKELY_(slot & SONDE_SLOT_MASK))
        return 0;
    __atomic_store_n((uint64_t *)(uintptr_t)slot, sonde_ticks_() << 16 | tag,
                     __ATOMIC_RELAXED);
    return 1;
}

/* Kept to the lane's own thread, so plain stores will do. The place is taken before it is
 * filled: a handler in between puts its zones behind it, not into it. */
static inline void sonde_push_(struct sonde_lane *lane, uint32_t tag)
{
    const uint32_t depth = lane->depth;
    __atomic_store_n(&lane->depth, depth + 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    if (SONDE_LIKELY_(depth < SONDE_OPEN_ZONES))
        lane->open[depth] = (uint16_t)tag;
}

/* An end that is not the innermost zone's: it ends those inside as well, or none. */
__attribute__((cold, noinline, unused)) static void sonde_pop_other_(
    struct sonde_lane *lane, uint32_t tag)
{
    if (lane->depth > SONDE_OPEN_ZONES) {
        lane->depth--;
        return;
    }
    for (uint32_t i = lane->depth; i-- > 0;)
        if (lane->open[i] == (uint16_t)tag) {
            lane->depth = i;
            return;
        }
}

static inline void sonde_pop_(struct sonde_lane *lane, uint32_t tag)
{
    const uint32_t inner = lane->depth - 1;
    if (SONDE_LIKELY_(inner < SONDE_OPEN_ZONES && lane->open[inner] == tag))
        __atomic_store_n(&lane->depth, inner, __ATOMIC_RELAXED);
    else
        sonde_pop_other_(lane, tag);
}

/* Whether a zone of this site is open on the lane, as far as that is known. */
__attribute__((cold, noinline, unused)) static int sonde_is_open_(
    const struct sonde_lane *lane, const struct sonde_site *site)
{
    if (!lane || lane->depth > SONDE_OPEN_ZONES)
        return lane != NULL;
    for (uint32_t i = lane->depth; i-- > 0;)
        if (lane->open[i] ==
            (uint16_t)(__atomic_load_n(&site->id, __ATOMIC_RELAXED) << 1))
            return 1;
    return 0;
}

/* A registered site without a word is switched off. The id is stored last, so the word
 * is looked at after it: another thread may be registering the site right now. */
static inline int sonde_switched_off_(const struct sonde_site *site)
{
    return __atomic_load_n(&site->id, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&site->word, __ATOMIC_RELAXED);
}

/* Called unlikely so that off is a branch not taken; on, a jump is hidden behind the
 * reading of the clock. */
static inline int sonde_on_(void)
{
    return (int)__builtin_expect(*sonde_gate_ != SONDE_GATE_OFF, 0);
}

static inline void sonde_begin_on_(struct sonde_site *site)
{
    struct sonde_lane *lane = sonde_lane_;
    uint32_t word = __atomic_load_n(&site->word, __ATOMIC_RELAXED);
    if (SONDE_LIKELY_(lane && word && sonde_event_(lane, word)))
        sonde_push_(lane, word);
    else if (word || !sonde_switched_off_(site))
        sonde_begin_slow_(site);
}

static inline void sonde_end_on_(struct sonde_site *site)
{
    struct sonde_lane *lane = sonde_lane_;
    uint32_t word = __atomic_load_n(&site->word, __ATOMIC_RELAXED);
    if (SONDE_LIKELY_(lane && word && sonde_event_(lane, word | 1)))
        sonde_pop_(lane, word);
    else if (word || sonde_is_open_(lane, site)) /* begun before it was switched off */
        sonde_end_slow_(site);
}

/* ---- Zones --------------------------------------------------------------- */

/* Begin and end a zone of `site` on this thread. Zones nest; an end without
 * its begin, or in the wrong order, is counted and reported, never harmful. */
static inline void sonde_begin(struct sonde_site *site)
{
    if (sonde_on_())
        sonde_begin_on_(site);
}

static inline void sonde_end(struct sonde_site *site)
{
    if (sonde_on_())
        sonde_end_on_(site);
}

/* The block form. Leaving the block by return, goto, break or a C++ exception
 * ends the zone; note that `break` and `continue` act on the block itself, which
 * is a loop that runs once. A zone that began recorded is ended even when
 * recording was switched off meanwhile. */
struct sonde_scope {
    struct sonde_site *site; /* NULL: not recorded */
    int once;
};

static inline struct sonde_scope sonde_scope_begin_(struct sonde_site *site)
{
    struct sonde_scope scope = { NULL, 1 };
    if (sonde_on_()) {
        scope.site = site;
        sonde_begin_on_(site);
    }
    return scope;
}

static inline void sonde_scope_end_(struct sonde_scope *scope)
{
    if (scope->site)
        sonde_end_on_(scope->site);
}

#define SONDE_SITE_(name_, phase_, component_, category_, tags_)                       \
    (__extension__({                                                                   \
        static struct sonde_site sonde_site_here_ = {                                  \
            0,         0,     name_,    __FILE__,         component_,                  \
            category_, tags_, __LINE__, (int32_t)(phase_)                              \
        };                                                                             \
        &sonde_site_here_;                                                             \
    }))

/* Each use gets names of its own: nested zones must not shadow each other. */
#define SONDE_JOIN2_(a, b) a##b
#define SONDE_JOIN_(a, b)  SONDE_JOIN2_(a, b)
#define SONDE_SCOPE_AS_(scope_, site_)                                                 \
    for (struct sonde_scope scope_                                                     \
         __attribute__((cleanup(sonde_scope_end_))) = sonde_scope_begin_(site_);       \
         scope_.once; scope_.once = 0)
#define SONDE_SCOPE_(site_)                                                            \
    SONDE_SCOPE_AS_(SONDE_JOIN_(sonde_scope_, __COUNTER__), site_)

/* SONDE_ZONE("forward", SONDE_FORWARD) { … }   the name must be a literal. */
#define SONDE_ZONE(name, phase) SONDE_SCOPE_(SONDE_SITE_(name, phase, NULL, NULL, NULL))

/* With component, category and tags (each may be NULL). */
#define SONDE_ZONE_EX(name, phase, component, category, tags)                          \
    SONDE_SCOPE_(SONDE_SITE_(name, phase, component, category, tags))

/* For a site you hold: SONDE_ZONE_OF(site) { … } */
#define SONDE_ZONE_OF(site) SONDE_SCOPE_(site)

/* ---- Values, marks, steps ------------------------------------------------ */

/* Attach a number to the innermost open zone of this thread ("batch" = 32). The
 * report gives count, sum, min, max and last per zone and name. */
SONDE_API void sonde_value(const char *name, double value);
/* A quantity over time (queue depth, learning rate) … */
SONDE_API void sonde_counter(const char *name, double value);
/* … and a result of the run (loss, accuracy): the last value is its metric. */
SONDE_API void sonde_metric(const char *name, double value);
/* A moment worth a line on the timeline ("epoch 3"). */
SONDE_API void sonde_mark(const char *name);
/* One training iteration; call it once per iteration. Step times are the times
 * between calls. The second form also counts the samples of the step. */
SONDE_API void sonde_step(void);
SONDE_API void sonde_step_samples(uint64_t samples);
/* For loops whose iterations do not follow one another, or are known late: the step that
 * goes on ends and none begins (an epoch is over); it has these samples besides; it was
 * no training iteration after all, nor were the samples told for it. */
SONDE_API void sonde_step_end(void);
SONDE_API void sonde_step_add(uint64_t samples);
SONDE_API void sonde_step_cancel(uint64_t samples);
/* A tag or parameter of the whole run ("team" = "x"). */
SONDE_API void sonde_tag(const char *key, const char *value);
SONDE_API void sonde_param(const char *key, const char *value);
/* Name of this thread in reports; default: its kernel name. */
SONDE_API void sonde_thread_name(const char *name);

/* ---- Operations ----------------------------------------------------------
 *
 * A zone that also keeps CPU time and memory, and whose record you can read:
 *
 *     struct sonde_operation op;
 *     sonde_operation_begin(&op, "experiment", SONDE_NO_PHASE, "evolution", NULL);
 *     …
 *     sonde_operation_value(&op, "accuracy", 0.93);
 *     sonde_operation_end(&op);
 *     printf("%.3f s, peak %.1f MiB\n", op.duration_s, op.mem_peak_mb);
 *
 * Costs a few microseconds. It works, as a record, whether or not anything is
 * being recorded. Fields that could not be measured are NaN. */
enum { SONDE_OPERATION_VALUES = 16 };
struct sonde_operation {
    const char *name;      /* our copy */
    const char *component; /* our copy or NULL */
    double start_s;        /* seconds since the epoch */
    double duration_s;     /* NaN while open: see sonde_operation_elapsed() */
    double cpu_s;          /* CPU time of the calling thread */
    double process_cpu_s;  /* CPU time of the process */
    double mem_before_mb, mem_after_mb; /* resident set, 2^20 bytes */
    double mem_peak_mb;                 /* highest seen between begin and end */
    int mem_peak_exact; /* 1: the kernel's high-water mark; 0: sampled */
    int enabled, value_count, values_dropped;
    struct {
        char name[48];
        double value;
    } values[SONDE_OPERATION_VALUES];
    struct sonde_site *site;                    /* ours */
    uint64_t start_ns, cpu_ns, pcpu_ns, hwm_kb; /* ours */
    uint64_t sampled_kb, linked_ns;             /* ours */
    struct sonde_operation *prev, *next;        /* ours */
};
SONDE_API void sonde_operation_begin(struct sonde_operation *op, const char *name,
                                     int phase, const char *component,
                                     const char *tags);
/* The same, switched off: keeps accepting values, measures nothing. */
SONDE_API void sonde_operation_disabled(struct sonde_operation *op, const char *name);
SONDE_API void sonde_operation_value(struct sonde_operation *op, const char *name,
                                     double value);
SONDE_API double sonde_operation_elapsed(const struct sonde_operation *op);
SONDE_API void sonde_operation_end(struct sonde_operation *op);
/* Ends the operation and returns 1 when memory rose by more than threshold_mb
 * above its start; only then does it appear among the operations. */
SONDE_API int sonde_operation_end_if_memory(struct sonde_operation *op,
                                            double threshold_mb);

/* ---- Spans ---------------------------------------------------------------
 *
 * A zone that may be suspended and may end on another thread: a request, a
 * coroutine. Time suspended is kept apart from time active. One thread at a
 * time may call for one span. */
struct sonde_span {
    struct sonde_site *site;
    uint64_t id, start_ticks, resumed_ticks, active_ticks;
    int state;
};
SONDE_API void sonde_span_begin(struct sonde_span *span, struct sonde_site *site);
SONDE_API void sonde_span_suspend(struct sonde_span *span);
SONDE_API void sonde_span_resume(struct sonde_span *span);
SONDE_API void sonde_span_end(struct sonde_span *span);

/* ---- Sessions ------------------------------------------------------------
 *
 * Under `sonde run` a session is already there. Otherwise start one; the
 * process has at most one at a time (starting another returns −EBUSY). */
enum sonde_level {
    SONDE_LEVEL_DEFAULT = 0,
    SONDE_BASIC,        /* statistics only */
    SONDE_DETAILED,     /* + timeline (default) */
    SONDE_COMPREHENSIVE /* + everything the machine offers */
};

/* Zero means default; set `size` to sizeof(struct sonde_options). */
struct sonde_options {
    size_t size;
    const char *output;             /* run directory; default .sonde/runs/<id> */
    const char *name;               /* name of the run */
    int level;                      /* enum sonde_level */
    uint64_t max_trace;             /* bytes on disk for the run; default 1 GiB */
    uint64_t min_zone_ns;           /* shorter zones are only counted; default 0 */
    uint64_t after_ns, duration_ns; /* record only in this window of time */
    uint64_t first_step, last_step; /* … or of steps (first counted from 1) */
    int lossy;                      /* drop events rather than wait, and count them */
    int no_drainer; /* no background thread: threads fold for themselves */
    int quiet;      /* no messages on stderr */
    int no_energy;  /* no energy and CO2e in the report */
};

SONDE_API void sonde_options_standard(struct sonde_options *options);
SONDE_API void sonde_options_lightweight(struct sonde_options *options);
/* 0, or a negative errno with the reason in sonde_session_error(). Options
 * may be NULL. Flags given here win over SONDE_* environment variables. */
SONDE_API int sonde_session_start(const struct sonde_options *options);
SONDE_API int sonde_session_stop(void);
SONDE_API int sonde_session_active(void);
/* The run directory of the session, "" without one. Valid until the next
 * start or stop. */
SONDE_API const char *sonde_session_directory(void);
SONDE_API const char *sonde_session_error(void);
/* Pause and resume recording in this process. */
SONDE_API void sonde_pause(void);
SONDE_API void sonde_resume(void);
/* 1 when a zone begun now on this thread would be recorded. */
SONDE_API int sonde_recording(void);
/* Events this process could not keep so far (all reasons together). */
SONDE_API uint64_t sonde_lost(void);

/* ---- Monitors ------------------------------------------------------------
 *
 * `sonde run` watches programs from outside. A program may also watch itself and
 * the machine: a thread reads CPU, memory, I/O, network, temperature … every
 * interval (10 ms to 1 h; 0 means 1 s). With a session the values go into its
 * run as well.
 *
 *     sonde_monitor_start(100 * 1000 * 1000);
 *     …
 *     double rss_mib;
 *     if (sonde_monitor_current("rss", NULL, &rss_mib) == 0) …
 *
 * Metrics and their units are listed in docs/guide-monitors.md. `subject` tells
 * several of a kind apart ("cpu3" of cpu_core, "eth0" of net_receive); NULL or ""
 * is the program, or the machine. Values stay until the next start. */
struct sonde_monitor_summary {
    uint64_t samples;
    double average; /* over the time watched */
    double peak, least, last;
};
/* 0, −EBUSY when it runs already, −EINVAL for an interval out of range, −ECANCELED
 * under SONDE_DISABLE, or what the system said. The child of a fork does not watch; it may start anew. */
SONDE_API int sonde_monitor_start(uint64_t interval_ns);
/* 0, or −ENOENT when it does not run. */
SONDE_API int sonde_monitor_stop(void);
/* 0, or −ENOENT: no such value yet, or none on this machine. */
SONDE_API int sonde_monitor_current(const char *metric, const char *subject,
                                    double *ret_value);
SONDE_API int sonde_monitor_stats(const char *metric, const char *subject,
                                  struct sonde_monitor_summary *ret_stats);

/* ---- Alerts ----------------------------------------------------------------
 *
 * An expression METRIC[ SUBJECT] OP VALUE[UNIT][:DURATION] over what the monitors
 * measure: "cpu>80%:10s", "memory>16GiB", "gpu_memory gpu0>90%"; "reference" is a
 * named set. They are watched while monitors sample inside this program
 * (sonde_monitor_start()); under `sonde run` use --alert. */
struct sonde_alert {
    const char *expression;       /* as it was added */
    const char *metric, *subject; /* subject "": the run or the machine */
    const char *unit;             /* of the numbers: "percent", "MiB", "C" … */
    double value, threshold;
    double peak;    /* the worst value so far */
    double seconds; /* how long the condition has held */
    int active;     /* 1: it fires now; 0: it is over */
};
/* Calls fn(alert, arg) on the sampling thread, between rounds, when the condition has
 * held for DURATION and again when it is over; the alert is borrowed for the call, which
 * may ask for values but not stop the monitors. A value that sways around the threshold
 * is one alert: it is over when it has been 5 % on the good side for half of DURATION and
 * two samples. Returns 0; −EINVAL when the expression cannot be understood
 * (sonde_alert_error() says where and why); −ENOSPC after 64 of them. */
SONDE_API int sonde_alert_add(const char *expression,
                              void (*fn)(const struct sonde_alert *alert, void *arg),
                              void *arg);
/* Of this thread's last sonde_alert_add(); "" when it went well. */
SONDE_API const char *sonde_alert_error(void);

/* ---- Heap ----------------------------------------------------------------
 *
 * Under `sonde run`, keeps what is allocated now, by call site, under a name
 * ("epoch 1"); the report shows each snapshot and what changed since the one
 * before. Does nothing otherwise. Not for signal handlers. */
SONDE_API void sonde_heap_snapshot(const char *name);

/* ---- Measuring a function (E1) ------------------------------------------- */
struct sonde_bench_result {
    size_t runs, warmup, outliers;
    double mean_s, std_s, min_s, max_s, median_s, p95_s;
    double ci_low_s, ci_high_s; /* 95 % interval of the mean */
    double total_s;
    char note[160]; /* what to know about the numbers; "" when nothing */
};
/* Runs fn(arg) warmup + runs times (0 means the defaults 10 and 100; a negative
 * warmup means none) and times each run. Returns 0, −EINVAL or −ENOMEM. */
SONDE_API int sonde_bench(void (*fn)(void *), void *arg, int warmup, int runs,
                          struct sonde_bench_result *ret_result);

#ifdef __cplusplus
}
#endif
#endif
