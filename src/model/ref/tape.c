/* tape.c: see tape.h. */
#include "model/ref/tape.h"

#include <stdlib.h>

enum { ALIGNMENT = 64 }; /* a cache line, and the widest vectors */

void tape_release(struct tape *tape)
{
    for (size_t i = 0; i < tape->count; i++)
        free(tape->blocks[i].data);
    free(tape->blocks);
    *tape = (struct tape)TAPE_INIT;
}

static void out_of_memory(struct tape *tape)
{
    longjmp(tape->out_of_memory, 1);
}

static void add_block(struct tape *tape)
{
    if (tape->count == tape->cap) {
        const size_t cap = tape->cap ? 2 * tape->cap : 64;
        struct tape_block *more = realloc(tape->blocks, cap * sizeof *more);
        if (!more)
            out_of_memory(tape);
        tape->blocks = more;
        tape->cap = cap;
    }
    tape->blocks[tape->count++] = (struct tape_block){ .data = NULL };
}

static void grow(struct tape *tape, struct tape_block *block, size_t floats)
{
    const size_t line = ALIGNMENT / sizeof(float);
    const size_t wanted = (floats + line - 1) / line * line;
    free(block->data);
    tape->bytes -= block->floats * sizeof(float);
    block->floats = 0;
    block->data = aligned_alloc(ALIGNMENT, wanted * sizeof(float));
    if (!block->data)
        out_of_memory(tape);
    block->floats = wanted;
    tape->bytes += wanted * sizeof(float);
}

float *tape_floats(struct tape *tape, size_t floats)
{
    if (tape->next == tape->count)
        add_block(tape);
    struct tape_block *block = &tape->blocks[tape->next++];
    if (block->floats < floats || !block->data)
        grow(tape, block, floats ? floats : 1);
    return block->data;
}

size_t tape_mark(const struct tape *tape)
{
    return tape->next;
}

void tape_back(struct tape *tape, size_t mark)
{
    tape->next = mark;
}

void tape_rewind(struct tape *tape)
{
    tape->next = 0;
}
