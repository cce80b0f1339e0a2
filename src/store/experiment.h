/* experiment.h: one experiment as the store keeps it.
 *
 * A run that Sonde profiled, a trial of the tuner, or a result that somebody logged:
 * identity, a few numbers that every experiment may have (core fields), and facts
 * under names of its own: parameters, metrics, tags. Facts travel as JSON objects of
 * plain values, the form in which they arrive, lie in the database and are read by
 * others. Unknown is NaN or NULL, never 0.
 */
#ifndef SONDE_STORE_EXPERIMENT_H
#define SONDE_STORE_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"

enum fact_kind { FACT_PARAM, FACT_METRIC, FACT_TAG, FACT_KINDS };
/* "params", "metrics", "tags" */
extern const char *const fact_kind_names[FACT_KINDS];

enum value_type { VALUE_NONE, VALUE_BOOL, VALUE_INT, VALUE_FLOAT, VALUE_TEXT };

struct value {
    enum value_type type;
    int64_t integer; /* bool: 0 or 1 */
    double number;   /* of bool, int and float */
    const char *text;
    size_t len;
};

/* Numbers that every experiment may have; columns of the table `runs`. */
#define CORE_FIELDS_LIST(X)                                                            \
    X(DURATION_S, duration_s)                                                          \
    X(MEMORY_PEAK_MB, memory_peak_mb)                                                  \
    X(MEMORY_AVG_MB, memory_avg_mb)                                                    \
    X(GPU_MEMORY_PEAK_MB, gpu_memory_peak_mb)                                          \
    X(GPU_MEMORY_AVG_MB, gpu_memory_avg_mb)                                            \
    X(GPU_PERCENT_PEAK, gpu_percent_peak)                                              \
    X(GPU_PERCENT_AVG, gpu_percent_avg)                                                \
    X(CPU_PERCENT_AVG, cpu_percent_avg)                                                \
    X(ENERGY_J, energy_j)                                                              \
    X(STEP_MS, step_ms)                                                                \
    X(SAMPLES_PER_S, samples_per_s)                                                    \
    X(DATA_LOADING_S, data_loading_s)                                                  \
    X(MODEL_CREATION_S, model_creation_s)                                              \
    X(TRAINING_S, training_s)                                                          \
    X(EFFICIENCY, efficiency)                                                          \
    X(ACCURACY_PER_S, accuracy_per_s)

enum core_field {
#define CORE_ENUM(upper, lower) CORE_##upper,
    CORE_FIELDS_LIST(CORE_ENUM)
#undef CORE_ENUM
        CORE_FIELDS
};
extern const char *const core_names[CORE_FIELDS];
/* The field called so, −1 without; "duration" and "max_memory"'s kin are understood. */
int core_find(const char *name, size_t len);

/* Texts are borrowed, NULL where there is none. */
struct experiment {
    int64_t seq; /* of the store: grows with every put; 0 before */
    const char *id;
    const char *kind; /* "run", "trial", "log" */
    const char *name, *parent, *command, *document, *directory;
    const char *cause;             /* DESIGN §6 */
    int64_t started_ns;            /* since the epoch; 0 unknown */
    int exit_code;                 /* −1 unknown or none */
    int64_t bytes;                 /* of the run directory; −1 unknown */
    bool partial;                  /* its profile is still to be read from the run */
    double core[CORE_FIELDS];      /* NaN unknown */
    const char *facts[FACT_KINDS]; /* JSON objects of plain values */
    size_t facts_len[FACT_KINDS];
    const char *series; /* {"loss":[[step,value],…]} or {"loss":[value,…]} */
    size_t series_len;
    const char *profile; /* a sonde.report/1 document */
    size_t profile_len;
};

void experiment_init(struct experiment *ret_experiment);

/* Efficiency and accuracy per second from what is known (A10): accuracy /
 * (seconds × MB of peak memory), accuracy / seconds. NaN where something is missing. */
void experiment_derive(struct experiment *e);

/* A new id: 16 hex digits for logged experiments. */
enum { EXPERIMENT_ID_LEN = 17 };
int experiment_new_id(char ret_id[EXPERIMENT_ID_LEN]);
/* What an id may look like: 1 to 128 characters without blanks, quotes, slashes and
 * controls, not beginning with '@' or '.'. */
bool experiment_id_is_good(const char *id, size_t len);

/* ---- Facts -------------------------------------------------------------------------- */

/* Calls `each` for every plain value of a JSON object; null is no value. Stops when it
 * returns non-zero and returns that. SONDE_E_FORMAT for anything but such an object. */
typedef int (*fact_fn)(void *arg, const char *key, size_t key_len,
                       const struct value *value);
int facts_each(const char *json, size_t len, struct arena *scratch, fact_fn each,
               void *arg);

/* The value under the key, type VALUE_NONE without. Text lies in `arena`. */
struct value facts_get(const struct experiment *e, enum fact_kind kind, const char *key,
                       struct arena *arena);

/* What somebody typed behind "key=": 32, 1e-3, true; anything else is text. */
struct value value_from_text(const char *text, size_t len);
/* The text "NaN" or "Infinity" of a metric becomes the number it stands for. */
void value_fix_metric(struct value *value);
/* Appends as JSON. Floats keep a point or exponent so that they stay floats; NaN and
 * infinities, which JSON lacks, become texts: see value_fix_metric(). */
void value_write(struct buf *out, const struct value *value);
/* Appends "key":value, a comma before it unless it is the first. */
void fact_write(struct buf *out, const char *key, const struct value *value);

/* ---- JSON lines --------------------------------------------------------------------- */

/* Reads one experiment: an object with any of
 *   id name parent document started (ISO 8601 or seconds since the epoch)
 *   core fields by name     params metrics tags (objects)     series (object)
 * Unknown keys are errors: a misspelt "metric" must not vanish. Nested objects of
 * parameters become "a.b", lists texts. Values whose name says they are secrets are
 * redacted. Texts lie in the arena or in the line. On failure the message says what is
 * wrong. */
int experiment_parse(const char *line, size_t len, struct arena *arena,
                     struct experiment *ret_experiment, struct buf *ret_message);

/* "2026-11-15T16:54:06.5Z" and its kin, or a date alone; UTC unless it says otherwise. */
bool moment_parse(const char *text, int64_t *ret_ns);

/* Appends it as such a line. */
void experiment_write(struct buf *out, const struct experiment *e);

#endif
