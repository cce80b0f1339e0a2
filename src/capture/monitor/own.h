/* own.h: how much of a process's memory is Sonde's: pages of files of the run directory
 * that it has mapped.
 *
 * maps tells where they are, pagemap which pages of those places are there. Neither
 * walks the rest of the process, so the cost does not grow with its size (smaps of a
 * process of 4 GiB takes 33 ms).
 */
#ifndef SONDE_CAPTURE_MONITOR_OWN_H
#define SONDE_CAPTURE_MONITOR_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct own_pages {
    uint64_t present;   /* in the resident set */
    uint64_t exclusive; /* of them, mapped by no other process: "private" in smaps */
};

/* False: not readable. `buffer` is scratch. */
bool own_pages_read(int maps_fd, int pagemap_fd, const char *run_dir, char *buffer,
                    size_t size, struct own_pages *ret_pages);

#endif
