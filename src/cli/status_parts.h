/* status_parts.h: pieces of the status line. */
#ifndef SONDE_CLI_STATUS_PARTS_H
#define SONDE_CLI_STATUS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "trace/reader.h"

/* Words with a dot between them, as many as fit. */
struct status_text {
    struct buf buf;
    size_t columns, room; /* used; there are */
    bool unicode;
};

void status_text_init(struct status_text *text, size_t room, bool unicode);
void status_text_release(struct status_text *text);
/* `between` NULL: the dot. Left out when it does not fit any more. */
void status_text_add(struct status_text *text, const char *between, const char *fmt,
                     ...) __attribute__((format(printf, 3, 4)));

/* Resident bytes of a process and all below it, at most `most` of them; NaN when it is
 * gone. Shared pages count in each. */
double tree_memory(pid_t pid, unsigned most);

/* How many steps the program said it would make, by a parameter of a usual name
 * (steps, max_steps, total_steps …); 0 unknown. */
uint64_t trace_planned_steps(const struct trace *trace);

#endif
