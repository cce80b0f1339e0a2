/* cfi_fuzz.c: unwinding tables of a hostile file, on a hostile stack. */
#include <stdint.h>
#include <string.h>

#include "capture/sample/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cfi *cfi;
    if (size < 64 || cfi_open(-1, data, size, &cfi) < 0)
        return 0;
    for (uint64_t offset = 0; offset < size; offset += 1 + size / 256) {
        struct cfi_row row;
        uint64_t regs[CFI_REGS];
        const struct cfi_memory stack = { data, 0x7ffe0000, size };
        bool end;
        for (unsigned i = 0; i < CFI_REGS; i++)
            regs[i] = 0x7ffe0000 + i * 8;
        if (cfi_find(cfi, offset, &row))
            (void)cfi_step(cfi, &row, &stack, regs, &end);
    }
    cfi_free(cfi);
    return 0;
}
