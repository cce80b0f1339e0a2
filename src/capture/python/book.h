/* book.h: where sampled Python stacks are kept: a file of tables (trace/pystack_rows.h).
 *
 * Functions, frames, paths are interned: a stack that was seen before costs a look-up per
 * frame and no space. When there is no room, time goes to path 0, "(other stacks)". */
#ifndef SONDE_CAPTURE_PYTHON_BOOK_H
#define SONDE_CAPTURE_PYTHON_BOOK_H

#include <stdint.h>

#include "capture/python/python.h"
#include "trace/pystack_rows.h"
#include "trace/tables.h"

struct book;

int book_new(const char *dir, struct control *control, uint64_t period_ns,
             struct book **ret_book);
void book_free(struct book *book);
struct pystack_info_row *book_info(struct book *book);

/* A thread; NULL when there is no room. */
struct pystack_task_row *book_task(struct book *book, uint32_t pid, uint32_t tid,
                                   const char *name, uint32_t flags,
                                   uint32_t *ret_task);
/* The path of a stack. `codes` maps the process's code numbers to ours (book_codes). */
struct book_codes {
    uint32_t *rows; /* by code number of the process: row + 1; owned */
    size_t count;
};
void book_codes_release(struct book_codes *codes);
uint32_t book_path(struct book *book, const struct python *python,
                   struct book_codes *codes, const struct python_thread *thread);
void book_add(struct book *book, uint32_t path, uint32_t task, uint64_t wall_ns,
              uint64_t cpu_ns);

#endif
