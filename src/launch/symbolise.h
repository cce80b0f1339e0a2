/* symbolise.h: names for all addresses a run has kept.
 *
 * When a run has ended (or is adopted) symbolise_run() looks up the addresses of all its
 * files of tables and writes the answers to one more, of kind "symbols"
 * (trace/symbol_rows.h); readers use trace/symbols.h. Done then, because files are
 * replaced and containers go away.
 *
 * The files looked into are hostile, and elfutils reads them: that happens in a child
 * process with limits. When it dies of a file, the next child goes on behind that file.
 */
#ifndef SONDE_LAUNCH_SYMBOLISE_H
#define SONDE_LAUNCH_SYMBOLISE_H

#include <stddef.h>
#include <stdint.h>

#include "trace/control.h"

/* Returns the number of addresses that got a name, or negative. `control` may be NULL:
 * no budget. A run without addresses gets no file. */
int symbolise_run(const char *dir, struct control *control);

/* ---- A few addresses at once: the stack of a crash -------------------------------------- */

struct symbolise_frame {
    uint64_t address;
    char function[192]; /* "" unknown */
    char file[192];     /* of the source */
    char module[192];
    uint32_t line;    /* 0 unknown */
    uint32_t inlined; /* 1: into the next frame */
};

/* Names addresses of one process. `maps` is the text of its /proc/PID/maps. The first
 * address is an instruction, the others are return addresses. Fills ret_frames with at
 * least one frame per address (more where calls were inlined), as many as fit; returns
 * how many. Takes at most some seconds. */
int symbolise_addresses(const char *maps, const uint64_t *addresses, size_t count,
                        struct symbolise_frame *ret_frames, size_t max);

#endif
