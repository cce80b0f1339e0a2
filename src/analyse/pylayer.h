/* pylayer.h: what the Python layer inside the program told of itself.
 *
 * Read from python.jsonl in the run directory: lines of JSON, appended by every Python
 * process of the run (python/sonde/_layer.py), hostile as everything there. A line that
 * cannot be read is skipped and counted.
 *
 *     {"kind":"interpreter","pid":P,"version":"3.11.2"}       each one, when it starts
 *     {"kind":"rank","pid":P,"rank":0,"world_size":2}
 *     {"kind":"exchange","pid":P,"comm_ns":N,"overlap_ns":N,"bytes":N,"buckets":N,…}
 *     {"kind":"torch","pid":P,"version":"…","cuda":"…" or null}
 *     {"kind":"model","pid":P,"name":"Net","parameters":…,"layers":{"Linear":2}}
 *     {"kind":"epoch","pid":P,"epoch":1,"start":S,"end":S,"steps":N,"samples":N}
 *     {"kind":"problem","pid":P,"where":"…","text":"…","number":N}
 */
#ifndef SONDE_ANALYSE_PYLAYER_H
#define SONDE_ANALYSE_PYLAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report;

/* What DistributedDataParallel's own timers say of one pass, on average. */
struct py_exchange {
    uint64_t comm_ns, overlap_ns; /* overlap: while backward still computes */
    uint64_t bytes, buckets, cap_bytes;
    bool looks_for_unused; /* find_unused_parameters */
};

struct py_interpreter {
    uint32_t pid;
    int rank, world_size;        /* −1: none */
    const char *version;         /* "" unknown */
    struct py_exchange exchange; /* comm_ns 0: none known */
};

struct py_epoch {
    uint32_t pid;
    uint64_t epoch, steps, samples; /* samples 0: unknown */
    double start_s, end_s;          /* since 1970 */
};

struct py_layers_of_type {
    const char *type;
    uint64_t count;
};
struct py_model {
    uint32_t pid;
    const char *name;
    uint64_t parameters, trainable, bytes, modules;
    struct py_layers_of_type *layers; /* most frequent first */
    size_t layer_count;
};

struct py_problem {
    uint32_t pid;
    uint64_t number; /* of this process's problems: those not told count as well */
    const char *where, *text;
};

struct py_layer {
    bool present; /* an interpreter of this run had the layer */
    struct py_interpreter *interpreters;
    size_t interpreter_count;
    struct py_epoch *epochs; /* of the main process, in order */
    size_t epoch_count;
    struct py_model *models; /* largest first */
    size_t model_count;
    struct py_problem *problems;
    size_t problem_count;
    const char *torch, *cuda; /* versions; "" unknown */
    uint64_t bad_lines;
    /* A Python process of the run had no layer though it was offered: 0 none, else its
     * pid, and why as far as the command line tells ("" unknown). */
    uint32_t without;
    const char *why_without;
};

/* Fills report->layer, and the ranks of report->processes. After pyprofile_read(). */
int pylayer_read(struct report *report);
/* Of one process; NULL: it has no layer. */
const struct py_interpreter *pylayer_interpreter(const struct report *report,
                                                 uint32_t pid);
/* What of it belongs to one process; after the main process is chosen. */
void pylayer_choose(struct report *report, uint32_t pid);
void pylayer_add_epoch(struct report *report, const struct py_epoch *epoch);

/* One line, for the fuzzer: true when it was understood. */
bool pylayer_take_line(struct report *report, const char *line, size_t len);

#endif
