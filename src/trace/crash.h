/* crash.h: read what a process left when it faulted (crash_rows.h). Hostile input. */
#ifndef SONDE_TRACE_CRASH_H
#define SONDE_TRACE_CRASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/crash_rows.h"

struct crash_frame {
    uint64_t address;
    uint64_t offset;  /* in the module's file */
    char module[128]; /* its path, "" where no file is mapped */
};

struct crash {
    int signal, code;
    uint32_t pid, tid;
    uint64_t address;
    uint64_t shm_free; /* UINT64_MAX unknown */
    unsigned frame_count;
    struct crash_frame frame[CRASH_FRAMES];
};

int crash_read(const char *path, struct crash *ret_crash);
/* The same from memory. */
int crash_parse(const void *bytes, size_t len, struct crash *ret_crash);
bool crash_is_name(const char *name);

/* Finds the module of an address in the text of /proc/PID/maps, which need not end
 * with a NUL; false: none. */
bool crash_find_module(const char *maps, size_t len, uint64_t address,
                       struct crash_frame *ret_frame);

#endif
