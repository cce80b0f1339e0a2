/* module_rows.h: rows that say which code lay where, for frames resolved later.
 *
 * A frame is a return address. The module is the row with the highest `start_ticks`
 * among those with start <= address < end; the place in its file is
 * address - start + offset, the address as the linker saw it address - bias.
 */
#ifndef SONDE_TRACE_MODULE_ROWS_H
#define SONDE_TRACE_MODULE_ROWS_H

#include <stdint.h>

#define MODULES_TABLE "modules"

enum { MODULE_BUILD_ID = 20, MODULE_ROWS_MAX = 4096 };

struct module_row {
    uint64_t start; /* the key: first address of an executable mapping */
    uint64_t end;
    uint64_t offset; /* in the file, of `start` */
    uint64_t bias;   /* what the loader added to the addresses in the file */
    uint64_t start_ticks;
    uint32_t path; /* a text */
    uint32_t build_id_len;
    uint8_t build_id[MODULE_BUILD_ID];
    uint8_t pad[4];
};
_Static_assert(sizeof(struct module_row) == 72, "on-disk layout");

#endif
