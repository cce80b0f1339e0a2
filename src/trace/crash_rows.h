/* crash_rows.h: what a process leaves when it faults: crash-PID.fault in the run.
 *
 *     0      struct crash_record
 *     512    the text of /proc/self/maps at that moment, as much as fits 64 KiB
 *
 * Written by a signal handler with write() alone (capture/interpose/crash.c), so it is
 * no file of tables: nothing here may lock, map or allocate.
 */
#ifndef SONDE_TRACE_CRASH_ROWS_H
#define SONDE_TRACE_CRASH_ROWS_H

#include <stdint.h>

#define CRASH_MAGIC  0x31746c7561666473ULL /* "sdfault1" */
#define CRASH_SUFFIX ".fault"

enum { CRASH_FRAMES = 48, CRASH_MAPS_MAX = 65536 };

struct crash_record {
    uint64_t magic;
    uint32_t signal;
    int32_t code; /* si_code */
    uint32_t pid, tid;
    uint64_t address, pc, sp, bp;
    uint64_t shm_free; /* bytes free in /dev/shm; UINT64_MAX unknown */
    uint32_t zone;     /* site of the innermost open zone, 0 none */
    uint32_t frame_count;
    uint64_t frame[CRASH_FRAMES]; /* return addresses, innermost first; [0] is pc */
    uint64_t reserved[7];
};
_Static_assert(sizeof(struct crash_record) == 512, "on-disk layout");

#endif
