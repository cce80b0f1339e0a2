/* tape.h: memory of one training step: activations and scratch.
 *
 * A step asks for the same arrays in the same order each time, so the tape keeps what it
 * handed out and hands it out again: the first step allocates, the others do not.
 *
 *     float *hidden = tape_floats(tape, rows * width);   kept until tape_rewind()
 *     const size_t mark = tape_mark(tape);
 *     float *scratch = tape_floats(tape, n);
 *     tape_back(tape, mark);                              scratch may be reused
 *
 * Memory that is out ends the step: tape_floats() jumps to where the net entered it
 * (net.c), which returns −ENOMEM. Checking every array of every layer would bury what the
 * layers are here to show.
 */
#ifndef SONDE_MODEL_REF_TAPE_H
#define SONDE_MODEL_REF_TAPE_H

#include <setjmp.h>
#include <stddef.h>

struct tape_block {
    float *data;
    size_t floats;
};

struct tape {
    struct tape_block *blocks;
    size_t count, cap, next;
    size_t bytes; /* of all blocks */
    jmp_buf out_of_memory;
};

/* clang-format off */
#define TAPE_INIT { .blocks = NULL }
/* clang-format on */

void tape_release(struct tape *tape);

/* Not set to zero. Only while out_of_memory is set. */
float *tape_floats(struct tape *tape, size_t floats);

size_t tape_mark(const struct tape *tape);
void tape_back(struct tape *tape, size_t mark);
void tape_rewind(struct tape *tape);

#endif
