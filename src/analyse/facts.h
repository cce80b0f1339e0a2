/* facts.h: what rules judge: numbers about a run, each known or NaN, and the places in
 * the program they are about.
 *
 * Taken from the finished report once; rules are functions of facts alone, so that a
 * test can state any run it likes. Comparisons with NaN are false: a rule that asks
 * `fact > limit` is silent about what nobody measured.
 */
#ifndef SONDE_ANALYSE_FACTS_H
#define SONDE_ANALYSE_FACTS_H

#include <stdbool.h>

struct report;

enum fact {
    FACT_NONE, /* ends lists */
#define FACT(name, metric, unit, source) FACT_##name,
#include "analyse/fact_list.h"
#undef FACT
    FACT_COUNT
};

struct fact_info {
    const char *metric, *unit, *source;
};
extern const struct fact_info fact_infos[FACT_COUNT];

/* Places and names, "" when not known: "train.py:41", "decode (data.py:57)". */
enum fact_place {
    PLACE_LOADER,    /* where the loader is made */
    PLACE_DATASET,   /* its class: "Pictures (data.py:12)" */
    PLACE_TRANSFORM, /* the line samples spend most time at */
    PLACE_SLOWEST, /* the slowest samples, by index or file, and what they took */
    PLACE_COLLATE,
    PLACE_LEAK,
    PLACE_ALLOC,    /* most bytes allocated */
    PLACE_COLLECT,  /* the line that calls the garbage collector */
    PLACE_LOG,      /* the line that logs */
    PLACE_LOG_FILE, /* what is written to */
    PLACE_READ,     /* the file or folder with most read time */
    PLACE_GIL,      /* the thread that holds the GIL while main waits */
    PLACE_BLAS,     /* the library */
    PLACE_OPTIMIZER,
    PLACE_SYNC,
    PLACE_LOCK,   /* the line that waits for a lock */
    PLACE_HOLDER, /* where others compute most meanwhile */
    PLACE_CHECKPOINT,
    PLACE_EVALUATION, /* the line that evaluates longest */
    PLACE_STARTUP,
    PLACE_HOT,    /* the main thread's hottest line */
    PLACE_FD,     /* the path that is open most often */
    PLACE_OBJECT, /* the object whose reference counts are written */
    PLACE_OVERHEAD,
    PLACE_COUNT
};

struct facts {
    double v[FACT_COUNT];
    const char *source[FACT_COUNT]; /* NULL: as fact_infos says */
    const char *place[PLACE_COUNT];
};

/* All unknown. */
void facts_init(struct facts *facts);
/* Texts live in the report's arena. Fails only for want of memory. */
int facts_read(struct report *report, struct facts *ret_facts);

/* Of batches that are sorted by length: neighbours differ little, and so much of them is
 * still padding (ticket_router, enzyme_classes, cured). */
#define STILL_PADDED 0.03

static inline bool fact_known(const struct facts *facts, enum fact fact)
{
    return facts->v[fact] == facts->v[fact];
}

#endif
