/* filling.c: file systems that fill up under the program. */
#include "launch/filling.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static bool read_space(const char *path, uint64_t *ret_free, uint64_t *ret_total)
{
    struct statvfs s;
    if (statvfs(path, &s) != 0 || s.f_blocks == 0) /* a pseudo file system */
        return false;
    *ret_free = (uint64_t)s.f_bavail * s.f_frsize;
    *ret_total = (uint64_t)s.f_blocks * s.f_frsize;
    return true;
}

void filling_add(struct filling *filling, const char *path, bool is_shm)
{
    struct stat st;
    if (!path || !path[0] || strlen(path) >= FILLING_PATH ||
        filling->count == FILLING_MAX || stat(path, &st) != 0)
        return;
    for (unsigned i = 0; i < filling->count; i++)
        if (filling->place[i].device == st.st_dev)
            return;
    struct filling_place *p = &filling->place[filling->count];
    *p = (struct filling_place){ .is_shm = is_shm, .device = st.st_dev };
    (void)snprintf(p->path, sizeof p->path, "%s", path);
    if (!read_space(path, &p->first_free, &p->total))
        return;
    p->least_free = p->first_free;
    filling->count++;
}

void filling_look(struct filling *filling)
{
    for (unsigned i = 0; i < filling->count; i++) {
        struct filling_place *p = &filling->place[i];
        uint64_t left, total;
        if (read_space(p->path, &left, &total) && left < p->least_free)
            p->least_free = left;
    }
}

/* The last request may be larger than what was left, but a file system that is written
 * to the end has next to nothing: 2 %, 8 MiB at most. */
static bool is_full(const struct filling_place *p, uint64_t left)
{
    const uint64_t share = p->total / 50;
    return left <= (share < (8 << 20) ? share : 8 << 20);
}

const struct filling_place *filling_full(const struct filling *filling, bool is_shm)
{
    for (unsigned i = 0; i < filling->count; i++) {
        const struct filling_place *p = &filling->place[i];
        if (p->is_shm == is_shm && is_full(p, p->least_free))
            return p;
    }
    return NULL;
}
