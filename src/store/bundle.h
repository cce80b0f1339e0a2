/* bundle.h: a run in one file, opened.
 *
 * A bundle is a gzip'd tar (POSIX ustar, so that `tar xzf` opens it too):
 *
 *     sonde.bundle.json     first: {"schema":"sonde.bundle/1","run":…,"redacted":…}
 *     run.json, control.sonde, *.sonde, *.tables, *.txt
 *
 * regular files without folders. Written by present/export/bundle.c. Bundles come by
 * mail: hostile input. Whatever is in one, nothing is written but plain files of plain
 * names into a fresh folder of ours, and no more than BUNDLE_MOST bytes, nor more than
 * BUNDLE_RATIO times the bundle's size (BUNDLE_FREE bytes are always fine).
 */
#ifndef SONDE_STORE_BUNDLE_H
#define SONDE_STORE_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define BUNDLE_FIRST  "sonde.bundle.json"
#define BUNDLE_SCHEMA "sonde.bundle/1"
#define BUNDLE_MOST   (UINT64_C(8) << 30)
#define BUNDLE_FREE   (UINT64_C(256) << 20)
enum { BUNDLE_RATIO = 200, BUNDLE_FILES = 70000, BUNDLE_BLOCK = 512 };

/* One header of a tar file. */
struct bundle_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
    char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8];
    char prefix[155], pad[12];
};
_Static_assert(sizeof(struct bundle_header) == BUNDLE_BLOCK, "POSIX");

unsigned bundle_checksum(const struct bundle_header *header);
/* Whether a file of a run may be called so; the only names that are unpacked. */
bool bundle_is_name(const char *name);

/* Looks at the beginning of the file. */
bool bundle_is(const char *path);
/* Unpacks into a folder made for it (0700, in TMPDIR), which the caller removes.
 * SONDE_E_FORMAT, _TRUNCATED, _LIMIT; nothing is left behind then. */
int bundle_unpack(const char *path, struct buf *ret_dir);

#endif
