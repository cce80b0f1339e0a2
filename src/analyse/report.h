/* report.h: a run, understood: what every presentation shows.
 *
 * Built once from a run directory; text, JSON, CSV and whatever comes print it and
 * decide nothing. Times are nanoseconds as double, moments int64_t since the epoch.
 * Unknown is NaN, −1, 0 for moments or "" for texts, never a number that could pass
 * for a measurement.
 */
#ifndef SONDE_ANALYSE_REPORT_H
#define SONDE_ANALYSE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/account.h"
#include "analyse/allocations.h"
#include "analyse/fits.h"
#include "analyse/functions.h"
#include "analyse/io.h"
#include "analyse/loaders.h"
#include "analyse/monitors.h"
#include "analyse/alerts.h"
#include "analyse/hangs.h"
#include "analyse/energy.h"
#include "analyse/findings.h"
#include "analyse/habits.h"
#include "analyse/operations.h"
#include "analyse/phases.h"
#include "analyse/pylayer.h"
#include "analyse/pyprofile.h"
#include "analyse/steps.h"
#include "analyse/syscalls.h"
#include "analyse/whatif.h"
#include "base/arena.h"
#include "store/run.h"
#include "store/triallog.h"

enum report_state {
    RUN_GOOD,    /* ended by itself with 0 */
    RUN_FAILED,  /* ended by itself, not with 0 */
    RUN_KILLED,  /* ended by a signal */
    RUN_LIVE,    /* goes on */
    RUN_UNKNOWN, /* gone, and nobody saw how */
    RUN_LEFT,    /* we were attached, or a session was stopped: it went on */
};

struct report_process {
    const char *file, *exe, *role; /* role: "main", "worker", … never "" */
    const char *damage;            /* "" or what the reader had to leave out */
    uint32_t pid, ppid;
    bool alive, exited, is_main;
    int rank; /* −1: none */
    int64_t start_ns, last_ns, first_event_ns;
    int64_t end_ns; /* the run's end for its program, else the last event */
    struct phase_split phases;
    double zone_ns; /* outermost zones of all threads */
    uint64_t threads, events, lost, filtered, truncated, steps, waits, self_folds;
    unsigned lost_reason;
    double wait_ns, ns_per_tick, clock_error_ns;
    double unrecorded_ns;  /* outside the window or paused, and recorded again */
    int64_t shut_since_ns; /* not recorded since; 0: it was until the end */
    uint64_t main_events;  /* of the main thread */
    double event_cost_ns;  /* NaN: not measured */
    uint64_t file_bytes, disk_bytes;
    bool timeline_complete;
};

/* What a thread was in the middle of. */
struct open_zone {
    const char *name, *file;
    int line;
    int64_t begin_ns;
};
struct open_thread {
    size_t process; /* index */
    uint32_t tid;
    const char *name; /* of the thread; "" unknown */
    bool is_main;
    int64_t last_ns; /* its last event */
    uint64_t steps;
    const struct open_zone *zones; /* outermost first */
    unsigned zone_count;
};

/* The operations of one component together (A6). */
struct component_sum {
    const char *name;
    uint64_t operations, calls;
    double total_ns; /* outermost ones only: nothing twice */
    double self_ns;
};

enum provenance_status { MEASURED, MODELLED, UNAVAILABLE };
struct provenance {
    const char *metric;
    enum provenance_status status;
    const char *method, *resolution; /* resolution may be "" */
};

/* An answer to "what if" (whatif.h). */
struct report_forecast {
    const char *text; /* as it was asked */
    struct settings settings;
    struct forecast forecast;
    double now_ns; /* a step as it was */
    /* From the first step to the last; step_mean_ns: the mean steady one as it was. */
    struct habits_forecast loop;
    double loop_now_ns, step_mean_ns; /* NaN: no steps were recorded */
    bool loader_known;
    struct report_forecast *next;
};

struct report {
    const struct run *run; /* borrowed: must outlive the report */
    struct arena arena;
    enum report_state state;
    int64_t start_ns, end_ns;         /* of the run */
    struct report_process *processes; /* oldest first */
    size_t process_count, process_cap;
    size_t files_left_out;     /* damaged beyond reading */
    size_t main_process;       /* index; SIZE_MAX without any */
    struct phase_split phases; /* of the main process's main thread */
    struct op_table ops;
    struct component_sum *components; /* longest first */
    size_t component_count;
    struct step_stats steps;
    struct step_series series;
    struct step_account account; /* steady steps, and what was none */
    struct report_monitors monitors;
    struct py_profile python;
    struct py_layer layer;    /* what the Python layer told */
    uint64_t optimizer_steps; /* of who makes the steps; 0: none seen */
    uint64_t last_step;       /* number of the last step, 0: none */
    struct op_value *metrics, *counters;
    struct run_pair *tags, *params;
    size_t tag_count, param_count;
    struct open_thread *threads; /* with open zones: live or cut off */
    size_t thread_count, thread_cap;
    uint64_t events, lost, filtered, truncated, orphan_ends, unbalanced;
    uint64_t deep_zones, holes, names_lost, paths_lost, texts_cut;
    unsigned lost_reason;
    double clock_error_ns, ns_per_tick; /* the worst of all traces; NaN without */
    struct energy energy;
    struct alert_summary alerts;
    struct hang_report hangs;
    struct hot_functions hot; /* sampled CPU time */
    struct allocations allocations;
    struct io_report io; /* files and sockets */
    struct syscall_report syscalls;
    struct loader_report loaders;
    const char *verdict, *why; /* why may be "" */
    const char *next;          /* what to do first; "" nothing */
    const char *since;         /* what became of the last run's advice; "" nothing */
    struct diagnosis diagnosis;
    struct batch_fit fits[FIT_PLACES]; /* how large a batch may get */
    struct report_forecast *forecasts; /* in the order they were asked for */
    struct trial_entry *trials;        /* cures that were measured (tune/trial.h) */
    size_t trial_count;
    double
        trial_offered_s; /* the first finding's cure could be measured: about so long;
                             * 0 it cannot */
    bool transforms_unknown; /* of the training loader */
    double readers_ns;       /* time of those who load data; 0: the main thread does */
    double hand_share;       /* of a step: loading without a loader; 0 none */
    double hand_cpu_share;   /* … of that, running; NaN unknown */
    double
        transform_of_load; /* of the time to load: work on what was read; NaN unknown */
    struct provenance *provenance;
    size_t provenance_count;
    const char **notes;
    size_t note_count;
};

int report_build(const struct run *run, struct report **ret_report);
/* Finds what is wrong with it: fills in report->diagnosis, and the verdict where rules
 * have one. report_build() did it with the defaults; again with other thresholds. */
int report_diagnose(struct report *report, const struct thresholds *thresholds);
/* Adds a forecast ("workers=4,prefetch=2"). −EINVAL: ret_error says what is wrong with the
 * words; SONDE_E_NOTFOUND: no loader was recorded. */
int report_what_if(struct report *report, const char *text,
                   char ret_error[WHATIF_ERROR_LEN]);
/* The trial of a finding's own cure, or of settings as they were asked for ("gc=40");
 * NULL: there was none. */
const struct trial_entry *report_trial_of(const struct report *report,
                                          const struct finding *finding);
const struct trial_entry *report_trial_asked(const struct report *report,
                                             const char *text);
void report_free(struct report *report);

/* Seconds the run took; NaN when unknown. */
double report_duration_s(const struct report *report);
/* Average CPU use in percent of one core; NaN when unknown. */
double report_cpu_percent(const struct report *report);
/* The most memory the run held at a time: of its largest process, or of all together
 * where pages shared between them could be counted once. NaN when unknown. */
double report_peak_rss_mb(const struct report *report);
/* Share of the run in which its cards had work, their mean; NaN without cards. */
double report_gpu_busy_share(const struct report *report);
/* What Sonde cost inside the program, in percent: the part of the sampled CPU time that
 * its code took (allocations, I/O, Python and all), or, where that is more or nothing was
 * sampled, the main thread's events at the price measured when its process began, and
 * its waits for space, of its time. NaN when neither is known. */
enum { REPORT_SAMPLES_FOR_OVERHEAD = 100 };
double report_overhead_percent(const struct report *report);
/* How long a thread had recorded nothing when the run ended (while it runs: when its
 * process was last heard of). */
double report_silent_ns(const struct report *report, const struct open_thread *thread);
/* The reasons in a bit set of enum lost_reason, in words: "disk full, …". */
const char *report_lost_words(unsigned reasons, char *ret_text, size_t len);
/* Its end is no news: exit 0, or a session that was stopped. */
bool report_ended_well(const struct report *report);
/* What a run that was left is: "attached", "session", "imported". */
const char *report_left_word(const struct report *report);
/* "exit 0", "exit 3 (error)", "killed by SIGKILL (oom_cgroup)", "running" … */
const char *report_state_words(const struct report *report, char *ret_text, size_t len);

#endif
