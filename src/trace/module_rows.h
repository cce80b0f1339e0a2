/* module_rows.h: which files were mapped where in a process.
 *
 * Every file of tables that keeps code addresses has a table MODULES_TABLE of these
 * rows, so that launch/symbolise.c can turn the addresses into names when the program
 * is gone. A row is appended when a mapping that can hold code is first seen and is
 * never changed. Addresses are reused after dlclose: of several rows that cover an
 * address the last one counts.
 *
 * The address inside the file is address - start + file_offset. Paths that are no
 * files: "[vdso]"; "" for code that no file backs (a JIT), which is looked up in
 * /tmp/perf-PID.map with the pid of the head of the file of tables.
 *
 * Files that keep addresses as the process saw them (allocation sites) have besides a
 * table FRAMES_TABLE with every distinct one; what the symboliser finds is kept under
 * the address (symbol_rows.h).
 */
#ifndef SONDE_TRACE_MODULE_ROWS_H
#define SONDE_TRACE_MODULE_ROWS_H

#include <stdint.h>

#define MODULES_TABLE "modules"

enum { MODULE_BUILD_ID_MAX = 20 };

struct module_row {
    uint64_t start, end;  /* addresses: start <= a < end */
    uint64_t file_offset; /* of `start` */
    uint64_t inode;       /* of the file; 0: unknown. Tells that it was replaced */
    uint32_t path;        /* place of the text, absolute */
    uint8_t build_id_len; /* 0: unknown */
    uint8_t pad[3];
    uint8_t build_id[MODULE_BUILD_ID_MAX];
    uint32_t reserved;
};
_Static_assert(sizeof(struct module_row) == 64, "on-disk layout");

#define FRAMES_TABLE "frames"

/* Any row may begin with this one. */
struct frame_row {
    uint64_t address; /* a return address: behind the call that is meant */
};

#endif
