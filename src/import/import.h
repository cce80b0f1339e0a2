/* import.h: other tools' profiles become runs.
 *
 * A run that was imported is a run directory like any other: traces, run.json, so that
 * every verb works on it. What the other tool did not know stays unknown.
 *
 *     chrome    chrome://tracing JSON: torch.profiler (Kineto), our own export, Perfetto's
 *               legacy form …; also gzipped
 *     cprofile  Python's cProfile dumps (.prof): functions, their calls and own time
 *     folded    "a;b;c 42" lines, as flame graphs are made of
 *
 * Files come from anywhere: no input may crash this, write outside the run directory or
 * take unbounded memory.
 */
#ifndef SONDE_IMPORT_IMPORT_H
#define SONDE_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum import_kind { IMPORT_DETECT, IMPORT_CHROME, IMPORT_CPROFILE, IMPORT_FOLDED };

struct import_options {
    enum import_kind kind;
    const char *sonde_dir, *output; /* as for rundir_create() */
    const char *name;               /* NULL: the file's */
    const char *const *tags;        /* "key=value" */
    size_t tag_count;
    double rate_hz; /* of folded stacks: samples per second; 0 = 100 */
    /* Called now and then with a share of 0 to 1; NULL: nobody asks. */
    void (*progress)(void *arg, double share);
    void *progress_arg;
    /* Told of the run's folder when there is one; `made`: it was not there before. NULL:
     * nobody asks. */
    void (*begun)(const char *dir, bool made);
};

struct import_result {
    enum import_kind kind;
    char id[9];
    char *dir; /* owned */
    uint64_t events, processes, steps;
    uint64_t left_out; /* events that could not be placed */
    char problem[200]; /* after an error: what is wrong, and where */
};

int import_file(const char *path, const struct import_options *options,
                struct import_result *ret_result);
void import_result_release(struct import_result *result);

const char *import_kind_name(enum import_kind kind);

#endif
