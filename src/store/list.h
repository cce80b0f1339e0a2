/* list.h: the runs of a store, and which of them a person means.
 *
 * Listing reads only run.json files: it is cheap however large the traces are.
 */
#ifndef SONDE_STORE_LIST_H
#define SONDE_STORE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "store/meta.h"

struct run_row {
    const char *dir;
    const char *id;       /* from run.json, else the directory's name */
    struct run_meta meta; /* meta.root is NULL here */
    int64_t started_ns;   /* of run.json, else the directory's change time */
    bool live;
    bool top_level; /* no trial, no part of another run, not logged */
};

struct run_list {
    struct arena arena;
    struct run_row *rows; /* newest first */
    size_t count, cap;
};

/* $SONDE_DIR, or ".sonde". */
const char *store_directory(void);

/* A store without runs, or none at all, gives an empty list. */
int run_list_read(const char *sonde_dir, struct run_list *ret_list);
void run_list_release(struct run_list *list);

/* Adds a run directory that is not in the store. Sort when all are there. */
int run_list_add_directory(struct run_list *list, const char *dir);
/* Adds what only the store remembers: a row whose dir is "". Sort when all are there. */
struct experiment;
int run_list_add(struct run_list *list, const struct experiment *e);
void run_list_sort(struct run_list *list);

/* Finds the run that `ref` means (NULL: "@last"): "@0" = "@last" the newest top-level
 * run, "@1" the one before; a path to a run directory or a trace; an exact id; a name
 * (the newest wins, which is noted); a unique beginning of an id. Appends the path to
 * ret_path. Appends to ret_note: on success what the person should know (mostly
 * nothing), on failure the whole message: what failed, on what, what to do.
 * SONDE_E_NOTFOUND, SONDE_E_AMBIGUOUS, SONDE_E_USAGE or a system error. */
int run_resolve(const char *sonde_dir, const char *ref, struct buf *ret_path,
                struct buf *ret_note);

#endif
