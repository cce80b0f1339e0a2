/* handload.h: loading that a program does with its own hands: no loader, no zone.
 *
 * A training loop that opens and decodes its files itself spends that time between zones.
 * The sampled Python stacks tell which functions do: those that call what reads (numpy's
 * load, PIL, json, os.path, …) and never train. All of their time is loading, decoding
 * too. Of a function that reads and also trains (a loop that is one function) only the
 * calls that read are. Both count below the function that trains: what is read before the
 * loop is another matter.
 *
 * What leaves no frame (open(), read(), pickle.load) is known from calls for files alone
 * (io.h). Where those say that every step opens several files, of which the program has
 * not written half itself, and no function is known to read, the one that has at least
 * half of the loop's time outside of training is taken for the reader; so it is where it
 * waits nearly all of that time, for no thread or process of the program's own: a client of
 * a store, with files or without. Otherwise what is made of the bytes is not known, and not
 * guessed.
 */
#ifndef SONDE_ANALYSE_HANDLOAD_H
#define SONDE_ANALYSE_HANDLOAD_H

#include <stdbool.h>
#include <stdint.h>

struct report;

struct handload {
    bool known;             /* there were stacks of a loop that trains */
    double wall_ns, cpu_ns; /* of the main thread; loading */
    double look_ns; /* of wall_ns: paths and what is at them, not what is in files */
    const char *file, *function;
    uint32_t line; /* where most of it is; file "": nowhere */
};

/* A run without Python stacks is none the worse. Texts go into the report's arena. */
int handload_read(struct report *report, struct handload *ret_load);
/* … of functions below the loop's that never train and prepare data, by their names (batches,
 * make_sample, augment, __getitem__, …), whether they read or not: what is made by hand of
 * data in memory. */
int handload_made(struct report *report, struct handload *ret_made);

#endif
