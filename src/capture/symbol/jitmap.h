/* jitmap.h: names of generated code, as JITs write them to /tmp/perf-PID.map.
 *
 * "START SIZE name" a line, hexadecimal. Anybody can write to /tmp, so the file must be
 * a regular one of the owner given; what it says is used as text and for nothing else.
 */
#ifndef SONDE_CAPTURE_SYMBOL_JITMAP_H
#define SONDE_CAPTURE_SYMBOL_JITMAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct jitmap;

/* −ENOENT; −EPERM: it is somebody else's; SONDE_E_LIMIT: larger than 64 MiB. */
int jitmap_open(const char *path, uid_t owner, struct jitmap **ret_map);
int jitmap_parse(const char *text, size_t len, struct jitmap **ret_map);
void jitmap_free(struct jitmap *map);
size_t jitmap_count(const struct jitmap *map);
/* "" when unknown. Of several entries that cover the address the last written counts:
 * JITs throw code away and use its room again. */
const char *jitmap_find(const struct jitmap *map, uint64_t address);

#endif
