/* filling.h: file systems that fill up under the program.
 *
 * A full /dev/shm kills by SIGBUS, a full disk by an error the program may or may not
 * print; and what filled it is often gone with the process that filled it. So the least
 * free space is remembered while it runs. Looking costs one statvfs each.
 */
#ifndef SONDE_LAUNCH_FILLING_H
#define SONDE_LAUNCH_FILLING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { FILLING_MAX = 8, FILLING_PATH = 256 };

struct filling_place {
    char path[FILLING_PATH];
    bool is_shm;
    dev_t device;
    uint64_t total, least_free; /* bytes */
    uint64_t first_free;        /* when the program started */
};

struct filling {
    struct filling_place place[FILLING_MAX];
    unsigned count;
};

/* Adds the file system of a path, once each; without room or path, does nothing. */
void filling_add(struct filling *filling, const char *path, bool is_shm);
void filling_look(struct filling *filling);
/* One that was as good as full at some moment of the run; NULL: none. */
const struct filling_place *filling_full(const struct filling *filling, bool is_shm);

#endif
