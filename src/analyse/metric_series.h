/* metric_series.h: the course of a run's metrics and counters (sonde_metric,
 * sonde_counter, sonde.metric …), for the store.
 *
 * From the retained events. A series has at most METRIC_POINTS points: when there were
 * more, of each four neighbours the least and the most stay, and the last of all, so that
 * no peak is lost. A point knows the step it belongs to: how many steps had begun on its
 * thread; where a thread has none, its number among the metric's own records, from 0.
 *
 * Curves of two processes laid into one another would be neither's. Where processes are
 * ranks each has its own: "loss" is that of the lowest rank which told it, "loss@rank1",
 * "loss@rank2" … are the others'. Of processes without a rank the first is followed. A
 * counter gives way to a metric of its name. What was recorded before the retained events
 * is missing, and `partial` says so.
 */
#ifndef SONDE_ANALYSE_METRIC_SERIES_H
#define SONDE_ANALYSE_METRIC_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/report.h"
#include "base/buf.h"
#include "trace/reader.h"

enum { METRIC_POINTS = 10000, METRIC_SERIES = 128 };

struct metric_point {
    int64_t time_ns;
    uint64_t step;
    unsigned lane;
    double value; /* may be NaN or infinite: a loss that diverged */
};

struct metric_series {
    char *name; /* "loss", "loss@rank1" */
    char *told; /* as the program calls it */
    enum value_kind kind;
    bool partial;     /* older records are no longer in the trace */
    uint64_t records; /* that were met */
    struct metric_point *points;
    size_t count, cap;
    struct metric_point last;
    size_t process; /* it belongs to, counted from 1 */
};

struct metric_list {
    struct metric_series items[METRIC_SERIES];
    size_t count;
    uint64_t left_out; /* names beyond METRIC_SERIES */
    size_t processes;
    int rank; /* of the one that is being added */
};

/* All traces of the report's run, those of low ranks first. Those that cannot be read are
 * passed over. */
int metric_list_read(const struct report *report, struct metric_list *ret_list);
/* One more process, of this rank or −1; then finish. */
int metric_list_add(struct metric_list *list, const struct trace *trace, int rank);
void metric_list_finish(struct metric_list *list);
/* At most so many points of each, chosen as above. */
void metric_list_limit(struct metric_list *list, size_t points);
void metric_list_release(struct metric_list *list);

/* {"loss":[[step,value],…],…}; what is no number becomes null. */
int metric_list_write(const struct metric_list *list, struct buf *out);

#endif
