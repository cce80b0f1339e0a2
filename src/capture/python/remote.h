/* remote.h: memory of another process, read without stopping it.
 *
 * A call costs 1.5 µs however much it brings, so everything that can be asked at once is
 * asked at once. What comes back is hostile: the process changes it while we read. */
#ifndef SONDE_CAPTURE_PYTHON_REMOTE_H
#define SONDE_CAPTURE_PYTHON_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct remote_piece {
    uint64_t address;
    void *to;
    size_t len;
};
enum { REMOTE_PIECES = 64 };

/* All pieces, or −EFAULT, −ESRCH, −EPERM … At most REMOTE_PIECES. */
int remote_read(pid_t pid, const struct remote_piece *pieces, size_t count);
/* One piece. */
int remote_get(pid_t pid, uint64_t address, void *to, size_t len);
/* As much of it as is mapped from its start; the number of bytes, or an error. */
ssize_t remote_some(pid_t pid, uint64_t address, void *to, size_t len);

/* Whether [address, address + size) lies in [base, base + len). Addresses come out of
 * memory that changes while we copy it: a sum of them may wrap around. */
static inline bool remote_within(uint64_t address, size_t size, uint64_t base,
                                 size_t len)
{
    return size <= len && address >= base && address - base <= len - size;
}

/* A number at an offset of bytes we have; 0 outside. */
static inline uint64_t word_at(const uint8_t *bytes, size_t len, size_t offset)
{
    uint64_t value = 0;
    if (offset + sizeof value <= len)
        __builtin_memcpy(&value, bytes + offset, sizeof value);
    return value;
}
static inline uint32_t half_at(const uint8_t *bytes, size_t len, size_t offset)
{
    uint32_t value = 0;
    if (offset + sizeof value <= len)
        __builtin_memcpy(&value, bytes + offset, sizeof value);
    return value;
}

#endif
