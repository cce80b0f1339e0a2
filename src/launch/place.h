/* place.h: where the live files of a run may lie.
 *
 * They are mapped, shared and locked by several processes, and must be there after a
 * SIGKILL: NFS, Lustre, FUSE, 9p and their like promise too little of that, and cost a
 * network round trip per page. On those the run lives in local scratch and is brought
 * home when the program has ended. SONDE_PLACE=scratch or direct overrides the choice,
 * SONDE_SCRATCH names the scratch (else XDG_RUNTIME_DIR, else TMPDIR, else /tmp).
 */
#ifndef SONDE_LAUNCH_PLACE_H
#define SONDE_LAUNCH_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place {
    char type[24]; /* "ext4", "nfs", or a number in hex */
    bool remote;   /* live files should not lie there */
    uint64_t free_bytes;
};

/* The file system of a path, or of the nearest directory above it that exists. */
int place_of(const char *path, struct place *ret_place);

/* Whether live files of a run in `dir` go to scratch. */
bool place_wants_scratch(const char *dir);
/* Makes DIR-in-scratch/sonde-<uid>-<id>, mode 0700. */
int place_make_scratch(const char *id, char *ret_path, size_t len);
/* Whether a path read from a run.json is the scratch of that run and ours: what is in
 * there gets copied and removed, and run.json is hostile input. */
bool place_is_scratch(const char *path, const char *id);
/* Copies every file from scratch to `home`, then removes scratch. On failure scratch
 * stays and what arrived stays too; nothing arrives half. */
int place_bring_home(const char *scratch, const char *home);

#endif
