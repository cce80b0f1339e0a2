/* crc32c.h: CRC-32C (Castagnoli), by the processor's instruction where it has one. */
#ifndef SONDE_TRACE_CRC32C_H
#define SONDE_TRACE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of `len` bytes, continuing from `crc` (0 to begin). */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

/* The checksum of an event block's words: the CRC of the four CRCs of its quarters.
 * Four independent chains keep the processor's CRC unit busy; one would wait for
 * itself, and this is paid for every event. */
uint32_t crc32c_words(const uint64_t *words, size_t count);

#endif
