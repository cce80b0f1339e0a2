/* merge.h: a native stack and the Python frames that ran in it, as one stack.
 *
 * Where the interpreter's loop stands in the native stack, the Python functions that it
 * was running stand in the merged one; what they called in C stays between them and the
 * functions that called them. A pure function: who knows what ran in which loop tells it
 * (struct merge_answer), and where that is not known, the merged stack says so.
 */
#ifndef SONDE_CAPTURE_SAMPLE_MERGE_H
#define SONDE_CAPTURE_SAMPLE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/sample/stacktab.h"

enum { MERGE_LOOPS = 64, MERGE_FRAMES = 160 };

/* A Python frame. */
struct merge_frame {
    uint32_t loop; /* which of the loops ran it; loop_count: further out than any that
                    * the native stack shows */
    uint32_t line, first_line;
    const char *name, *file; /* name "": one or more that are not known */
};

/* What is known of the Python in a native stack. All lists have the innermost first. */
struct merge_answer {
    unsigned loop_count;
    unsigned loops[MERGE_LOOPS]; /* which frames of the native stack */
    unsigned known_from; /* of the loops before this, what they ran is not known */
    unsigned frame_count;
    struct merge_frame frames[MERGE_FRAMES]; /* in the order of `loop` */
    bool moved;      /* the innermost line had moved on when it was looked for */
    bool gap;        /* of a loop that is known, callers are not */
    bool exact;      /* all of it was still the same then */
    bool has_python; /* without loops: the thread is in Python all the same */
    /* Without loops, of a stack that was cut: a loop further out, by the return address into
     * it and the stack pointer behind that. 0: none was found. */
    uint64_t resume_pc, resume_sp;
};

enum merge_kind { MERGE_NATIVE, MERGE_UNMERGED, MERGE_PARTLY, MERGE_WHOLE };
enum merge_kind merge_kind(const struct merge_answer *answer);

/* One place of the merged stack: of the native one, of Python's frames, or neither: a loop
 * of which nothing is known. */
enum merge_from { MERGE_FROM_NATIVE, MERGE_FROM_PYTHON, MERGE_FROM_UNKNOWN };
struct merge_place {
    enum merge_from from;
    unsigned
        at; /* index in that list; of an unknown one the loop's in the native stack */
};

/* Innermost first; at most `max`, the outermost are left out. Returns how many. */
unsigned merge_stacks(unsigned native_depth, const struct merge_answer *answer,
                      struct merge_place *ret_places, unsigned max);

#endif
