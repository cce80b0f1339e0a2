/* locate.c: find _PyRuntime.
 *
 * It is in libpython3.X.so when the interpreter is built shared, else in the program.
 * Candidates are mapped files whose name has "python3" in it, and the program itself
 * (embedded interpreters). The ELF file is read from disk through /proc/PID/root, so
 * containers work; only its dynamic symbols and, failing that, .symtab are looked at.
 */
#include "capture/python/locate.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "capture/python/remote.h"

enum { SECTIONS_MAX = 512, SYMBOLS_MAX = 8 << 20, STRINGS_MAX = 64 << 20 };

/* ---- Symbols of an ELF file --------------------------------------------------------- */

struct wanted {
    const char *name;
    uint64_t value; /* 0: not found */
};

static bool read_at(int fd, uint64_t offset, void *to, size_t len)
{
    return offset <= INT64_MAX &&
           fd_pread_full(fd, to, len, (off_t)offset) == (ssize_t)len;
}

static void match(const Elf64_Sym *s, const char *strings, size_t len,
                  struct wanted *wanted, size_t count)
{
    if (s->st_value == 0 || s->st_shndx == SHN_UNDEF || s->st_name >= len)
        return;
    for (size_t i = 0; i < count; i++)
        if (!wanted[i].value && strcmp(strings + s->st_name, wanted[i].name) == 0)
            wanted[i].value = s->st_value;
}

static void search_table(int fd, const Elf64_Shdr *symbols, const Elf64_Shdr *strings,
                         struct wanted *wanted, size_t count)
{
    if (symbols->sh_size > (uint64_t)SYMBOLS_MAX * sizeof(Elf64_Sym) ||
        strings->sh_size == 0 || strings->sh_size > STRINGS_MAX)
        return;
    const size_t total = symbols->sh_size / sizeof(Elf64_Sym);
    char *text = malloc(strings->sh_size);
    Elf64_Sym *batch = malloc(4096 * sizeof *batch);
    if (text && batch && read_at(fd, strings->sh_offset, text, strings->sh_size)) {
        text[strings->sh_size - 1] = '\0';
        for (size_t at = 0; at < total; at += 4096) {
            const size_t n = total - at < 4096 ? total - at : 4096;
            if (!read_at(fd, symbols->sh_offset + at * sizeof *batch, batch,
                         n * sizeof *batch))
                break;
            for (size_t i = 0; i < n; i++)
                match(&batch[i], text, strings->sh_size, wanted, count);
        }
    }
    free(text);
    free(batch);
}

/* Address at which the file's first byte would be, were it all loaded: values of
 * symbols are relative to that minus the first segment's address. */
static bool first_address(int fd, const Elf64_Ehdr *head, uint64_t *ret_address)
{
    for (unsigned i = 0; i < head->e_phnum && i < 64; i++) {
        Elf64_Phdr p;
        if (!read_at(fd, head->e_phoff + (uint64_t)i * sizeof p, &p, sizeof p))
            return false;
        if (p.p_type == PT_LOAD) {
            *ret_address = p.p_vaddr - p.p_offset;
            return true;
        }
    }
    return false;
}

static int elf_symbols(const char *path, struct wanted *wanted, size_t count,
                       uint64_t *ret_first)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    Elf64_Ehdr head;
    Elf64_Shdr *sections = NULL;
    int rc = SONDE_E_FORMAT;
    if (!read_at(fd, 0, &head, sizeof head) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shnum > SECTIONS_MAX ||
        head.e_shentsize != sizeof *sections || !first_address(fd, &head, ret_first))
        goto done;
    sections = calloc(head.e_shnum + 1u, sizeof *sections);
    if (!sections ||
        !read_at(fd, head.e_shoff, sections, (size_t)head.e_shnum * sizeof *sections))
        goto done;
    rc = 0;
    static const uint32_t kinds[] = { SHT_DYNSYM, SHT_SYMTAB };
    for (unsigned k = 0; k < 2 && !wanted[0].value; k++)
        for (unsigned i = 0; i < head.e_shnum; i++)
            if (sections[i].sh_type == kinds[k] && sections[i].sh_link < head.e_shnum)
                search_table(fd, &sections[i], &sections[sections[i].sh_link], wanted,
                             count);
done:
    free(sections);
    (void)close(fd);
    return rc;
}

/* ---- Version ------------------------------------------------------------------------ */

/* "libpython3.11.so.1.0", "python3.11" → 11; 0 when the name does not tell. */
static unsigned minor_in_name(const char *path)
{
    const char *base = strrchr(path, '/');
    const char *p = strstr(base ? base : path, "python3.");
    unsigned minor = 0;
    return p && sscanf(p + strlen("python3."), "%u", &minor) == 1 ? minor : 0;
}

static unsigned minor_in_memory(pid_t pid, uint64_t address)
{
    uint32_t hex = 0;
    if (!address || remote_get(pid, address, &hex, sizeof hex) < 0 || hex >> 24 != 3)
        return 0;
    return hex >> 16 & 0xff;
}

/* ---- Maps --------------------------------------------------------------------------- */

static int try_file(pid_t pid, const char *path, uint64_t base,
                    struct python_place *ret_place)
{
    char rooted[1200];
    struct wanted wanted[] = { { "_PyRuntime", 0 }, { "Py_Version", 0 } };
    uint64_t first = 0;
    (void)snprintf(rooted, sizeof rooted, "/proc/%d/root%s", (int)pid, path);
    int rc = elf_symbols(rooted, wanted, 2, &first);
    if (rc < 0 || !wanted[0].value)
        return rc < 0 ? rc : SONDE_E_NOTFOUND;
    const uint64_t slide = base - first;
    unsigned minor = wanted[1].value ? minor_in_memory(pid, wanted[1].value + slide)
                                     : 0;
    if (!minor)
        minor = minor_in_name(path);
    if (!minor)
        return SONDE_E_UNSUPPORTED;
    *ret_place = (struct python_place){ .runtime = wanted[0].value + slide,
                                        .minor = minor };
    (void)snprintf(ret_place->path, sizeof ret_place->path, "%s", path);
    return 0;
}

static bool is_candidate(const char *path, const char *exe)
{
    const char *base = strrchr(path, '/');
    return base && (strcmp(path, exe) == 0 || strstr(base, "libpython3") ||
                    strncmp(base, "/python3", 8) == 0);
}

int python_locate(pid_t pid, struct python_place *ret_place)
{
    char name[64], exe[1024] = "", line[2048];
    (void)snprintf(name, sizeof name, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(name, exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    (void)snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "re");
    if (!maps)
        return -errno;
    int rc = SONDE_E_NOTFOUND;
    while (rc != 0 && fgets(line, sizeof line, maps)) {
        unsigned long long start, offset;
        int path_at = 0;
        if (sscanf(line, "%llx-%*x %*s %llx %*s %*s %n", &start, &offset, &path_at) <
                2 ||
            offset != 0 || path_at == 0 || line[path_at] != '/')
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (is_candidate(line + path_at, exe))
            rc = try_file(pid, line + path_at, start, ret_place);
    }
    (void)fclose(maps);
    return rc;
}
