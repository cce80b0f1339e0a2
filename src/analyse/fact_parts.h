/* fact_parts.h: who reads which facts. Private to analyse/. */
#ifndef SONDE_ANALYSE_FACT_PARTS_H
#define SONDE_ANALYSE_FACT_PARTS_H

#include <stdint.h>

#include "analyse/facts.h"
#include "base/buf.h"

struct hot_functions;
struct pipeline;
struct py_profile;
struct report;
struct step_account;

void facts_of_time(struct report *report, struct facts *facts);
void facts_of_loader(struct report *report, struct facts *facts);
void facts_of_machine(struct report *report, struct facts *facts);
void facts_of_memory(struct report *report, struct facts *facts);
void facts_of_files(struct report *report, struct facts *facts);
void facts_of_python(struct report *report, struct facts *facts);
void facts_of_shapes(struct report *report, struct facts *facts);
/* After shapes: what batches of samples of one length would take (facts_lengths.c). */
void facts_of_lengths(const struct report *report, struct facts *facts);
void facts_of_hand(struct report *report, struct facts *facts);
/* After hand, which takes loading from what steps have outside of phases. */
void facts_of_own(struct report *report, struct facts *facts);
void facts_of_native(struct report *report, struct facts *facts);
void facts_of_ranks(struct report *report, struct facts *facts);
void facts_of_cards(struct report *report, struct facts *facts);
/* Last: what cures would bring follows from all the others (gains.c). */
void facts_of_gains(struct report *report, struct facts *facts);
void gains_of_pipeline(const struct pipeline *pipeline, struct facts *facts);
/* Of the time to make a batch: what the same predictions leave of it without its files
 * (`opens`: few large ones), or with larger reads alone. NaN: not known. */
double gains_left_without_files(const struct pipeline *pipeline,
                                const struct facts *facts, bool opens);

/* fmin() takes the number that is known; what is unknown must stay unknown. */
static inline double at_most(double value, double most)
{
    return value > most ? most : value;
}

/* Pages of files that a process has mapped, libraries above all: the kernel takes them back
 * before it kills. 0 when not known. */
double mapped_files_mb(const struct report *report, uint32_t pid);

/* CPU time of threads that spin until they are given work. */
double native_spin_ns(const struct hot_functions *hot);
/* … of it the kernel's part: looking for somebody else to run. */
double native_yield_ns(const struct hot_functions *hot);
/* Of what the main process computes in the loop: cut into pieces for all of its threads. 0:
 * nothing is, or nobody knows. */
double native_pieces_share(const struct report *report);

/* What the main thread waited for the GIL in the loop. */
double python_gil_wait_ns(const struct py_profile *profile, double loop_ns);
/* Of the loop: CPU time of the main thread, which before and behind it used `busy` of its
 * time. NaN: no loop. */
double python_main_cpu_share(const struct py_profile *profile,
                             const struct step_account *account, double busy);

/* Reads that are part of what a small file costs, however little is in it. */
static inline double fact_small_reads(const struct facts *facts)
{
    return facts->v[FACT_READ_KB] < 64 ? facts->v[FACT_READ_SHARE] : 0;
}

/* Share of the time to load that goes with the number of files: calls, and at least as
 * long again for what a program does around each: paths, objects, close(). */
static inline double fact_of_calls(const struct facts *facts)
{
    return at_most(2 * (facts->v[FACT_OPEN_SHARE] + fact_small_reads(facts)), 1);
}

/* Keeps a text as a place; an empty one, or want of memory, leaves it unknown. */
void fact_place(struct report *report, struct facts *facts, enum fact_place place,
                const struct buf *text);

#endif
