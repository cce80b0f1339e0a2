/* elffile.c: see elffile.h. */
#include "capture/symbol/elffile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"

enum {
    MAX_HEADERS = 1024,
    MAX_NOTES = 65536,
    UNSIZED_MOST = 65536,
    MAX_SECTION = 256 << 20, /* symbols of the largest libraries take some 100 MiB */
};

static int read_at(int fd, void *ret_data, size_t len, uint64_t offset)
{
    if (offset > INT64_MAX - len)
        return SONDE_E_FORMAT;
    const ssize_t n = fd_pread_full(fd, ret_data, len, (off_t)offset);
    return n < 0 ? (int)n : (size_t)n == len ? 0 : SONDE_E_TRUNCATED;
}

static int check_head(const Elf64_Ehdr *h)
{
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return SONDE_E_FORMAT;
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
        return SONDE_E_UNSUPPORTED;
    if (h->e_phnum > MAX_HEADERS ||
        (h->e_phnum && h->e_phentsize != sizeof(Elf64_Phdr)))
        return SONDE_E_FORMAT;
    return 0;
}

static void read_build_id(struct elffile *f, const Elf64_Phdr *p)
{
    if (f->build_id_len || p->p_filesz < sizeof(Elf64_Nhdr) || p->p_filesz > MAX_NOTES)
        return;
    const size_t len = p->p_filesz;
    uint8_t *notes = malloc(len);
    if (!notes || read_at(f->fd, notes, len, p->p_offset) < 0) {
        free(notes);
        return;
    }
    for (size_t at = 0; len - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr n;
        memcpy(&n, notes + at, sizeof n);
        const size_t name = at + sizeof n;
        const size_t desc = name + (((size_t)n.n_namesz + 3) & ~(size_t)3);
        const size_t next = desc + (((size_t)n.n_descsz + 3) & ~(size_t)3);
        if (desc > len || (size_t)n.n_descsz > len - desc)
            break;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 &&
            memcmp(notes + name, "GNU", 4) == 0 && n.n_descsz <= sizeof f->build_id) {
            memcpy(f->build_id, notes + desc, n.n_descsz);
            f->build_id_len = n.n_descsz;
            break;
        }
        if (next > len)
            break;
        at = next;
    }
    free(notes);
}

int elffile_read(int fd, struct elffile *ret_file)
{
    struct elffile f = { .fd = fd };
    int rc = read_at(fd, &f.head, sizeof f.head, 0);
    if (rc == 0)
        rc = check_head(&f.head);
    for (unsigned i = 0; rc == 0 && i < f.head.e_phnum; i++) {
        Elf64_Phdr p;
        if (f.head.e_phoff > INT64_MAX / 2)
            return SONDE_E_FORMAT;
        rc = read_at(fd, &p, sizeof p, f.head.e_phoff + i * sizeof p);
        if (rc == 0 && p.p_type == PT_LOAD && f.load_count < ELFFILE_SEGMENTS)
            f.load[f.load_count++] = p;
        if (rc == 0 && p.p_type == PT_NOTE)
            read_build_id(&f, &p);
    }
    if (rc == 0)
        *ret_file = f;
    return rc == SONDE_E_TRUNCATED ? SONDE_E_FORMAT : rc;
}

bool elffile_address(const struct elffile *f, uint64_t offset, uint64_t *ret_address)
{
    for (unsigned i = 0; i < f->load_count; i++) {
        const Elf64_Phdr *p = &f->load[i];
        if (offset >= p->p_offset && offset - p->p_offset < p->p_filesz) {
            *ret_address = p->p_vaddr + (offset - p->p_offset);
            return true;
        }
    }
    return false;
}

/* ---- Symbols ----------------------------------------------------------------------- */

static int read_section(const struct elffile *f, uint64_t offset, uint64_t len,
                        void **ret_bytes)
{
    if (len == 0 || len > MAX_SECTION)
        return SONDE_E_LIMIT;
    void *bytes = malloc(len);
    int rc = bytes ? read_at(f->fd, bytes, len, offset) : -ENOMEM;
    if (rc < 0)
        free(bytes);
    else
        *ret_bytes = bytes;
    return rc;
}

static int read_header(const struct elffile *f, unsigned index, Elf64_Shdr *ret_header)
{
    if (index >= f->head.e_shnum || f->head.e_shoff > INT64_MAX / 2)
        return SONDE_E_FORMAT;
    return read_at(f->fd, ret_header, sizeof *ret_header,
                   f->head.e_shoff + index * sizeof *ret_header);
}

static int by_address(const void *a, const void *b)
{
    const struct elfsym *x = a, *y = b;
    return x->address != y->address ? (x->address < y->address ? -1 : 1)
           : x->size != y->size     ? (x->size < y->size ? -1 : 1)
                                    : 0;
}

static int take_symbols(const Elf64_Sym *raw, size_t count, struct elfsyms *s)
{
    s->list = malloc((count + 1) * sizeof *s->list);
    if (!s->list)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const unsigned type = ELF64_ST_TYPE(raw[i].st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) ||
            raw[i].st_shndx == SHN_UNDEF || raw[i].st_name >= s->names_len)
            continue;
        s->list[s->count++] = (struct elfsym){ raw[i].st_value, raw[i].st_size,
                                               raw[i].st_name };
    }
    qsort(s->list, s->count, sizeof *s->list, by_address);
    return 0;
}

static int read_table(const struct elffile *f, const Elf64_Shdr *table,
                      struct elfsyms *ret_syms)
{
    struct elfsyms s = { 0 };
    Elf64_Shdr strings;
    void *raw = NULL, *names = NULL;
    int rc = read_header(f, table->sh_link, &strings);
    if (rc == 0)
        rc = read_section(f, table->sh_offset, table->sh_size, &raw);
    if (rc == 0)
        rc = read_section(f, strings.sh_offset, strings.sh_size, &names);
    if (rc == 0) {
        s.names = names;
        s.names_len = strings.sh_size;
        s.names[s.names_len - 1] = '\0';
        rc = take_symbols(raw, table->sh_size / sizeof(Elf64_Sym), &s);
    }
    free(raw);
    if (rc < 0)
        elfsyms_release(&s);
    else
        *ret_syms = s;
    return rc;
}

int elfsyms_read(const struct elffile *f, struct elfsyms *ret_syms)
{
    if (f->head.e_shnum > MAX_HEADERS * 16 || f->head.e_shentsize != sizeof(Elf64_Shdr))
        return SONDE_E_NOTFOUND;
    static const uint32_t wanted[] = { SHT_SYMTAB, SHT_DYNSYM };
    for (unsigned w = 0; w < 2; w++)
        for (unsigned i = 0; i < f->head.e_shnum; i++) {
            Elf64_Shdr h;
            if (read_header(f, i, &h) < 0)
                return SONDE_E_FORMAT;
            if (h.sh_type == wanted[w] && read_table(f, &h, ret_syms) == 0)
                return 0;
        }
    return SONDE_E_NOTFOUND;
}

void elfsyms_release(struct elfsyms *s)
{
    free(s->list);
    free(s->names);
    *s = (struct elfsyms){ 0 };
}

const char *elfsyms_find(const struct elfsyms *s, uint64_t address)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->list[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return "";
    const struct elfsym *e = &s->list[low - 1];
    /* Assembly often has no sizes: it lasts until the next one then, within reason. */
    const uint64_t size = e->size ? e->size : UNSIZED_MOST;
    return address - e->address < size ? s->names + e->name : "";
}
