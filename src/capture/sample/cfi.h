/* cfi.h: unwinding rules of one module, from its .eh_frame.
 *
 * Compilers leave frame pointers out; what they always write (C++ exceptions need it) is
 * a table of how to find the caller's frame from any instruction. This reads the table
 * with its binary search index (.eh_frame_hdr) from the mapped file.
 *
 * Our own and not libdw's because it runs some hundred times a second in the supervisor:
 * a step takes tens of nanoseconds from the cache, and memory is bounded. The file is
 * hostile: every offset is checked. It may shrink while we read: call in guard_run().
 */
#ifndef SONDE_CAPTURE_SAMPLE_CFI_H
#define SONDE_CAPTURE_SAMPLE_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DWARF numbers of x86-64: rax rdx rcx rbx rsi rdi rbp rsp r8 … r15, return address. */
enum { CFI_REGS = 17, CFI_RBP = 6, CFI_RSP = 7, CFI_PC = 16 };

enum cfi_kind {
    CFI_SAME,
    CFI_UNDEFINED,
    CFI_AT_CFA,
    CFI_IS_CFA,
    CFI_REG,
    CFI_AT_EXPR,
    CFI_IS_EXPR
};

struct cfi_rule {
    uint8_t kind; /* enum cfi_kind */
    uint8_t reg;
    uint16_t expr_len;
    int32_t offset; /* from the CFA; of an expression, its place in the segment */
};

/* How to get from a frame to its caller's. */
struct cfi_row {
    struct cfi_rule cfa; /* CFI_REG: reg + offset; CFI_IS_EXPR */
    struct cfi_rule reg[CFI_REGS];
    bool signal_frame; /* the caller was interrupted, it did not call */
};

struct cfi;

/* From a file that is mapped, or from an image in memory (the vdso; NULL: from fd).
 * SONDE_E_NOTFOUND: no such table in it. The descriptor stays the caller's. */
int cfi_open(int fd, const void *image, size_t image_len, struct cfi **ret_cfi);
void cfi_free(struct cfi *cfi);

/* The rules at an offset of the file; false when there are none. */
bool cfi_find(const struct cfi *cfi, uint64_t file_offset, struct cfi_row *ret_row);

/* How far behind its function's first instruction an offset of the file is. */
bool cfi_start(const struct cfi *cfi, uint64_t file_offset, uint64_t *ret_distance);

/* Reads 8 bytes of the sampled stack. */
struct cfi_memory {
    const uint8_t *bytes;
    uint64_t start, len;
};
bool cfi_peek(const struct cfi_memory *memory, uint64_t address, uint64_t *ret_value);

/* Goes to the caller: changes `regs`. False when something needed is not there.
 * *ret_end: the outermost frame was reached. */
bool cfi_step(const struct cfi *cfi, const struct cfi_row *row,
              const struct cfi_memory *memory, uint64_t regs[CFI_REGS], bool *ret_end);
/* The same where not all registers are known: bit N of *known is register N. False also
 * when the caller's frame cannot be found without the unknown ones. */
bool cfi_step_known(const struct cfi *cfi, const struct cfi_row *row,
                    const struct cfi_memory *memory, uint64_t regs[CFI_REGS],
                    uint32_t *known, bool *ret_end);

#endif
