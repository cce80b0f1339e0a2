/* codes.h: the code objects of an interpreter, by address.
 *
 * A function's name, file and lines are read once. Addresses can be used again for other
 * code, so what is known of an address is checked against its head now and then. */
#ifndef SONDE_CAPTURE_PYTHON_CODES_H
#define SONDE_CAPTURE_PYTHON_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/python/layout.h"

struct code {
    uint64_t address;
    uint64_t head[4]; /* name, file, line table, first line: must stay the same */
    uint64_t checked_ns;
    uint64_t born_ns;  /* first seen */
    char *name, *file; /* owned, UTF-8, never NULL */
    uint8_t *lines;    /* owned */
    size_t lines_len;
    int first_line;
    uint32_t flags;  /* enum pystack_code_flags */
    bool line_known; /* the last answer: */
    int line;
    int64_t line_offset;
    uint64_t instructions, instructions_len; /* where they are; 0: not asked yet */
};

struct codes {
    pid_t pid;
    const struct python_layout *layout;
    uint64_t type; /* address of PyCode_Type, 0 until known */
    struct code *list;
    size_t count, cap;
    uint32_t *hash; /* index + 1; size is a power of two */
    size_t hash_size;
};

void codes_init(struct codes *ret_codes, pid_t pid, const struct python_layout *layout);
void codes_release(struct codes *codes);

/* The index of the code object at an address; −1 when there is none. */
long codes_find(struct codes *codes, uint64_t address, uint64_t now_ns);
/* The line of an instruction, `offset` bytes into the code; 0 unknown. */
int codes_line(struct codes *codes, long code, int64_t offset);
/* Where the instructions of a code object are, in bytes; false when that cannot be read. */
bool codes_instructions(struct codes *codes, long code, uint64_t *ret_start,
                        uint64_t *ret_len);

#endif
