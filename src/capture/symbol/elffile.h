/* elffile.h: the little of an ELF file that is needed without elfutils.
 *
 * Read with pread into memory of our own, every number checked: no byte of the file is
 * trusted, and a file that shrinks meanwhile is only shorter.
 */
#ifndef SONDE_CAPTURE_SYMBOL_ELFFILE_H
#define SONDE_CAPTURE_SYMBOL_ELFFILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ELFFILE_SEGMENTS = 16 };

struct elffile {
    int fd;
    Elf64_Ehdr head;
    Elf64_Phdr load[ELFFILE_SEGMENTS]; /* PT_LOAD only */
    unsigned load_count;
    uint8_t build_id[64];
    size_t build_id_len;
};

/* Keeps the descriptor, which stays the caller's. Little-endian 64-bit files only:
 * SONDE_E_UNSUPPORTED for others, SONDE_E_FORMAT for what is no ELF file. */
int elffile_read(int fd, struct elffile *ret_file);
/* The virtual address of an offset; false when no segment holds it. */
bool elffile_address(const struct elffile *file, uint64_t offset,
                     uint64_t *ret_address);

/* The functions of .symtab or .dynsym, sorted. */
struct elfsym {
    uint64_t address, size;
    uint32_t name;
};
struct elfsyms {
    struct elfsym *list;
    size_t count;
    char *names;
    size_t names_len;
};
int elfsyms_read(const struct elffile *file, struct elfsyms *ret_syms);
void elfsyms_release(struct elfsyms *syms);
/* "" when none covers the address. */
const char *elfsyms_find(const struct elfsyms *syms, uint64_t address);

#endif
