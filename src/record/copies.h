/* copies.h: one recorder per process, however many copies of the library.
 *
 * The program, a preloaded object and a Python extension may each carry this
 * library. The first copy to be used becomes the recorder of the process; the others
 * reach it through this table. Layout rule: fields are only ever added at the end,
 * and a copy that meets another version keeps out of its way (stays off).
 */
#ifndef SONDE_RECORD_COPIES_H
#define SONDE_RECORD_COPIES_H

#include <stddef.h>
#include <stdint.h>

#include <sonde/sonde.h>
#include <sonde/tables.h>

#include "record/recorder.h"

enum { TABLE_VERSION = 1 };

struct table {
    uint32_t version, size;
    const volatile uint32_t *(*gate)(void);
    void (*begin)(struct sonde_site *site, struct sonde_lane **slot);
    void (*end)(struct sonde_site *site, struct sonde_lane **slot);
    struct sonde_site *(*site_named)(const struct site_spec *spec);
    void (*site_enable)(struct sonde_site *site, int enabled);
    void (*value)(const char *name, int kind, double value);
    void (*mark)(const char *name);
    void (*step)(uint64_t samples);
    void (*note)(const char *key, const char *value, unsigned flags);
    void (*thread_name)(const char *name);
    void (*operation_begin)(struct sonde_operation *op, const char *name, int phase,
                            const char *component, const char *tags);
    int (*operation_end)(struct sonde_operation *op, double threshold_mb);
    void (*span_begin)(struct sonde_span *span, struct sonde_site *site);
    void (*span_change)(struct sonde_span *span, int kind);
    int (*session_start)(const struct sonde_options *options);
    int (*session_stop)(void);
    int (*session_active)(void);
    const char *(*session_directory)(void);
    const char *(*session_error)(void);
    void (*pause)(int paused);
    int (*recording)(void);
    uint64_t (*lost)(void);
    void (*lane_follow)(struct sonde_lane **slot);
    uint64_t (*steps)(void);
    int (*monitor_start)(uint64_t interval_ns);
    int (*monitor_stop)(void);
    int (*monitor_stats)(const char *metric, const char *subject,
                         struct sonde_monitor_summary *ret_stats);
    int (*alert_add)(const char *expression,
                     void (*fn)(const struct sonde_alert *alert, void *arg), void *arg);
    const char *(*alert_error)(void);
    struct sonde_tables *(*tables_open)(const char *kind,
                                        const struct sonde_table *tables,
                                        unsigned count);
    void *(*tables_append)(struct sonde_tables *tables, unsigned table);
    void *(*tables_row)(struct sonde_tables *tables, unsigned table, uint32_t index);
    uint32_t (*tables_text)(struct sonde_tables *tables, const char *text);
    void (*role)(const char *role);
};

/* The recorder of this process: ours or another copy's. Never NULL. Also points this
 * copy's gate at it. */
const struct table *copies_table(void);
/* The same without the gate: for who does not record and makes no trace. */
const struct table *copies_meet(void);
/* Only libsonde-preload.so has it. */
void copies_preloaded(void) __attribute__((weak));

/* ---- What the recorder offers (the functions behind the table) ---- */
const volatile uint32_t *record_gate(void);
void record_begin(struct sonde_site *site, struct sonde_lane **slot);
void record_end(struct sonde_site *site, struct sonde_lane **slot);
struct sonde_site *record_site_named(const struct site_spec *spec);
void record_site_enable(struct sonde_site *site, int enabled);
void record_value(const char *name, int kind, double value);
void record_mark(const char *name);
void record_step(uint64_t samples);
void record_note(const char *key, const char *value, unsigned flags);
void record_thread_name(const char *name);
void operation_begin(struct sonde_operation *op, const char *name, int phase,
                     const char *component, const char *tags);
int operation_end(struct sonde_operation *op, double threshold_mb);
void span_begin(struct sonde_span *span, struct sonde_site *site);
void span_change(struct sonde_span *span, int kind);
int session_start(const struct sonde_options *options);
int session_stop(void);
int session_active(void);
const char *session_directory(void);
const char *session_error(void);
void record_pause(int paused);
int record_recording(void);
uint64_t record_lost(void);
uint64_t record_steps(void); /* begun in this process so far */

/* layers.c: files of tables and a role for layers above. */
struct sonde_tables *layer_tables_open(const char *kind,
                                       const struct sonde_table *given, unsigned count);
void *layer_tables_append(struct sonde_tables *t, unsigned table);
void *layer_tables_row(struct sonde_tables *t, unsigned table, uint32_t index);
uint32_t layer_tables_text(struct sonde_tables *t, const char *text);
void layer_role(const char *role);

/* capture/monitor/watch.c: a program that watches itself. */
int watch_start(uint64_t interval_ns);
int watch_stop(void);
int watch_stats(const char *metric, const char *subject,
                struct sonde_monitor_summary *ret_stats);
/* capture/monitor/alert_api.c */
int watch_alert_add(const char *expression,
                    void (*fn)(const struct sonde_alert *alert, void *arg), void *arg);
const char *watch_alert_error(void);

#endif
