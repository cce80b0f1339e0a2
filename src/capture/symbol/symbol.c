/* symbol.c: see symbol.h. */
#include "capture/symbol/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/files.h"
#include "base/strmap.h"
#include "capture/symbol/dwarf.h"
#include "capture/symbol/elffile.h"

struct symbol_module {
    int fd;
    struct elffile elf;
    struct dwarf *dwarf; /* NULL: only symbols */
    struct elfsyms syms;
    struct strmap demangled; /* mangled to plain; plain are in `texts` */
    struct arena texts;
};

/* ---- Opening -------------------------------------------------------------------------- */

/* The kernel maps the same image into every process. Its length is not told: what its
 * program headers say, in whole pages. */
static int open_vdso(void)
{
    const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    if (!image)
        return -ENOENT;
    Elf64_Ehdr h;
    memcpy(&h, image, sizeof h);
    if (h.e_ident[EI_CLASS] != ELFCLASS64)
        return -ENOENT;
    size_t len = h.e_shoff + (size_t)h.e_shnum * h.e_shentsize;
    if (len < sizeof h || len > 65536)
        return -ENOENT;
    const int fd = memfd_create("vdso", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    const int rc = fd_pwrite_full(fd, image, len, 0);
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    return fd;
}

static int open_file(const struct symbol_file *file)
{
    if (strcmp(file->path, "[vdso]") == 0)
        return open_vdso();
    if (file->path[0] != '/')
        return -ENOENT;
    /* Not blocking: a fifo may stand there by now. */
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    struct stat st;
    int rc = fstat(fd, &st) == 0 ? 0 : -errno;
    if (rc == 0 && !S_ISREG(st.st_mode))
        rc = SONDE_E_FORMAT;
    if (rc == 0 && !file->build_id_len && file->inode &&
        (uint64_t)st.st_ino != file->inode)
        rc = SONDE_E_STATE;
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    return fd;
}

static bool is_the_one(const struct symbol_file *file, const struct elffile *elf)
{
    if (file->build_id_len == 0)
        return true;
    /* The row may hold less of the id than the file. */
    return elf->build_id_len >= file->build_id_len &&
           memcmp(elf->build_id, file->build_id, file->build_id_len) == 0;
}

int symbol_open(const struct symbol_file *file, struct symbol_module **ret_module)
{
    struct symbol_module *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    arena_init(&m->texts);
    strmap_init(&m->demangled);
    m->fd = open_file(file);
    int rc = m->fd < 0 ? m->fd : elffile_read(m->fd, &m->elf);
    if (rc == 0 && !is_the_one(file, &m->elf))
        rc = SONDE_E_STATE;
    if (rc == 0) {
        /* Failing that, the symbol tables have to do. */
        if (dwarf_open(file->path, m->fd, &m->dwarf) < 0)
            m->dwarf = NULL;
        if (!m->dwarf)
            (void)elfsyms_read(&m->elf, &m->syms);
    }
    if (rc < 0)
        symbol_close(m);
    else
        *ret_module = m;
    return rc;
}

void symbol_close(struct symbol_module *m)
{
    if (!m)
        return;
    dwarf_close(m->dwarf);
    elfsyms_release(&m->syms);
    strmap_release(&m->demangled);
    arena_release(&m->texts);
    if (m->fd >= 0)
        (void)close(m->fd);
    free(m);
}

bool symbol_is_stripped(const struct symbol_module *m)
{
    return m->dwarf ? !dwarf_has_names(m->dwarf) : m->syms.count == 0;
}

bool symbol_has_lines(void)
{
#ifdef SONDE_HAVE_DW
    return true;
#else
    return false;
#endif
}

/* ---- Asking --------------------------------------------------------------------------- */

static const char *plain_name(struct symbol_module *m, const char *name)
{
    if (name[0] != '_' || name[1] != 'Z')
        return name;
    bool added;
    struct strmap_entry *e = strmap_enter(&m->demangled, name, strlen(name), &added);
    if (!e)
        return name;
    if (added) {
        char *text = symbol_demangle(name);
        e->ptr = text ? arena_strdup(&m->texts, text) : NULL;
        free(text);
    }
    return e->ptr ? e->ptr : name;
}

unsigned symbol_find(struct symbol_module *m, uint64_t offset,
                     struct symbol_frame *ret_frames, unsigned max)
{
    uint64_t address;
    if (max == 0 || !elffile_address(&m->elf, offset, &address))
        return 0;
    unsigned n = 0;
    if (m->dwarf) {
        n = dwarf_find(m->dwarf, address, ret_frames, max);
    } else {
        const char *name = elfsyms_find(&m->syms, address);
        ret_frames[0] = (struct symbol_frame){ name, "", 0, "", 0 };
        n = name[0] ? 1 : 0;
    }
    for (unsigned i = 0; i < n; i++)
        ret_frames[i].function = plain_name(m, ret_frames[i].function);
    return n;
}
