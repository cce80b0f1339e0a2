/* elf_fuzz.c: our own reader of ELF files: headers, build id, symbols. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "capture/symbol/elffile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("elf", MFD_CLOEXEC);
    struct elffile file;
    struct elfsyms syms;
    if (fd < 0)
        return 0;
    if (fd_pwrite_full(fd, data, size, 0) == 0 && elffile_read(fd, &file) == 0) {
        uint64_t address = 0;
        (void)elffile_address(&file, size / 2, &address);
        if (elfsyms_read(&file, &syms) == 0) {
            for (size_t i = 0; i < syms.count && i < 100; i++)
                (void)strlen(elfsyms_find(&syms, syms.list[i].address));
            (void)strlen(elfsyms_find(&syms, address));
            elfsyms_release(&syms);
        }
    }
    (void)close(fd);
    return 0;
}
