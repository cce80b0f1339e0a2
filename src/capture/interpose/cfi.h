/* cfi.h: where the caller's frame is, for one instruction (x86-64).
 *
 * The tables can say more than compilers do. Kept here is what ordinary code needs: the
 * frame (CFA) is a distance from the stack or the frame pointer, the return address is
 * right below it, and the caller's frame pointer is unchanged or saved at a distance.
 *
 *     word    0 … 2    enum cfi_kind
 *             3        base is the frame pointer, else the stack pointer
 *             4        the frame pointer is saved
 *             5 … 21   distance of the frame from the base, in words
 *             22 … 31  where the frame pointer is, in words below the frame
 */
#ifndef SONDE_CAPTURE_INTERPOSE_CFI_H
#define SONDE_CAPTURE_INTERPOSE_CFI_H

#include <stdbool.h>
#include <stdint.h>

enum cfi_kind {
    CFI_NONE,
    CFI_RULE,
    CFI_FRAME_POINTER, /* no table: hope for frame pointers */
    CFI_SIGNAL,        /* the frame of a signal handler's caller, the kernel */
    CFI_OUTERMOST,     /* no caller */
    CFI_UNKNOWN,       /* more than we understand */
};

struct cfi_rule {
    uint32_t word;
};

static inline enum cfi_kind cfi_kind(struct cfi_rule r)
{
    return (enum cfi_kind)(r.word & 7);
}
static inline bool cfi_base_is_fp(struct cfi_rule r)
{
    return r.word >> 3 & 1;
}
static inline bool cfi_saves_fp(struct cfi_rule r)
{
    return r.word >> 4 & 1;
}
static inline uint64_t cfi_offset(struct cfi_rule r)
{
    return (uint64_t)(r.word >> 5 & 0x1ffff) * 8;
}
static inline uint64_t cfi_fp_below(struct cfi_rule r)
{
    return (uint64_t)(r.word >> 22) * 8;
}

/* Never CFI_NONE. No allocation; lock-free where libc is new enough. */
struct cfi_rule cfi_find(uint64_t pc);
bool cfi_takes_no_lock(void);

#endif
