/* crc32c.h: CRC-32C (Castagnoli), by the processor's instruction where it has one. */
#ifndef SONDE_TRACE_CRC32C_H
#define SONDE_TRACE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of `len` bytes, continuing from `crc` (0 to begin). */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

#endif
