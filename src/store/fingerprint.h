/* fingerprint.h: has the program changed since?
 *
 * A number over the content of everything a command might run: the files among its
 * words, every source file below its working directory and below the directories of
 * those files, and the versions of packages its Python has. Too much rather than too little: a baseline is only rerun when nothing
 * changed, for rerunning a command in an edited tree would compare the change with
 * itself.
 */
#ifndef SONDE_STORE_FINGERPRINT_H
#define SONDE_STORE_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

enum { FINGERPRINT_LEN = 33 };

/* 32 hex digits; "" when there are more files than can be looked at (5,000, 512 MiB) or
 * one cannot be read: then nothing is known to be unchanged. 0 or −ENOMEM.
 * *ret_newest_ns (NULL: not wanted): when the newest of the files was written to. */
int fingerprint_of(char *const *command, size_t count, const char *cwd,
                   char ret_text[FINGERPRINT_LEN], int64_t *ret_newest_ns);

#endif
