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

/* What is done with each symbol of a table. */
typedef void symbol_fn(void *arg, const Elf64_Sym *symbol, const char *name);

struct wanted_list {
    struct wanted *list;
    size_t count;
};

static bool read_at(int fd, uint64_t offset, void *to, size_t len)
{
    return offset <= INT64_MAX &&
           fd_pread_full(fd, to, len, (off_t)offset) == (ssize_t)len;
}

static void match(void *arg, const Elf64_Sym *s, const char *name)
{
    const struct wanted_list *w = arg;
    for (size_t i = 0; i < w->count; i++)
        if (!w->list[i].value && strcmp(name, w->list[i].name) == 0)
            w->list[i].value = s->st_value;
}

static void search_table(int fd, const Elf64_Shdr *symbols, const Elf64_Shdr *strings,
                         symbol_fn *each, void *arg)
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
                if (batch[i].st_value && batch[i].st_shndx != SHN_UNDEF &&
                    batch[i].st_name < strings->sh_size)
                    each(arg, &batch[i], text + batch[i].st_name);
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

/* Calls `each` for the symbols of one kind of table, then of the next until `enough`. */
struct symbol_search {
    symbol_fn *each;
    void *arg;
    bool (*enough)(const void *arg);
    uint64_t first;
};

static int elf_symbols(const char *path, struct symbol_search *search)
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
        head.e_shentsize != sizeof *sections ||
        !first_address(fd, &head, &search->first))
        goto done;
    sections = calloc(head.e_shnum + 1u, sizeof *sections);
    if (!sections ||
        !read_at(fd, head.e_shoff, sections, (size_t)head.e_shnum * sizeof *sections))
        goto done;
    rc = 0;
    static const uint32_t kinds[] = { SHT_DYNSYM, SHT_SYMTAB };
    for (unsigned k = 0; k < 2 && !search->enough(search->arg); k++)
        for (unsigned i = 0; i < head.e_shnum; i++)
            if (sections[i].sh_type == kinds[k] && sections[i].sh_link < head.e_shnum)
                search_table(fd, &sections[i], &sections[sections[i].sh_link],
                             search->each, search->arg);
done:
    free(sections);
    (void)close(fd);
    return rc;
}

static bool has_first(const void *arg)
{
    const struct wanted_list *w = arg;
    return w->list[0].value != 0;
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
    struct wanted_list list = { wanted, 2 };
    struct symbol_search search = { match, &list, has_first, 0 };
    (void)snprintf(rooted, sizeof rooted, "/proc/%d/root%s", (int)pid, path);
    const int rc = elf_symbols(rooted, &search);
    if (rc < 0 || !wanted[0].value)
        return rc < 0 ? rc : SONDE_E_NOTFOUND;
    const uint64_t slide = base - search.first;
    unsigned minor = wanted[1].value ? minor_in_memory(pid, wanted[1].value + slide)
                                     : 0;
    if (!minor)
        minor = minor_in_name(path);
    if (!minor)
        return SONDE_E_UNSUPPORTED;
    *ret_place = (struct python_place){ .runtime = wanted[0].value + slide,
                                        .minor = minor,
                                        .slide = slide };
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

/* ---- The loop ----------------------------------------------------------------------- */

struct ranges {
    struct python_range *list;
    unsigned count, max;
};

/* Compilers call the parts they move away "name.cold" and the like. */
static void match_loop(void *arg, const Elf64_Sym *s, const char *name)
{
    static const char loop[] = "_PyEval_EvalFrameDefault";
    struct ranges *r = arg;
    const char after = strncmp(name, loop, sizeof loop - 1) == 0 ? name[sizeof loop - 1]
                                                                 : 'x';
    if ((after != '\0' && after != '.') || s->st_size == 0 || r->count == r->max)
        return;
    for (unsigned i = 0; i < r->count; i++)
        if (r->list[i].start == s->st_value)
            return;
    r->list[r->count++] = (struct python_range){ s->st_value,
                                                 s->st_value + s->st_size };
}

static bool never(const void *arg)
{
    (void)arg;
    return false;
}

unsigned python_locate_loop(pid_t pid, const struct python_place *place,
                            struct python_range *ret_ranges, unsigned max)
{
    char rooted[1200];
    struct ranges ranges = { ret_ranges, 0, max };
    struct symbol_search search = { match_loop, &ranges, never, 0 };
    (void)snprintf(rooted, sizeof rooted, "/proc/%d/root%s", (int)pid, place->path);
    if (elf_symbols(rooted, &search) < 0)
        return 0;
    for (unsigned i = 0; i < ranges.count; i++) {
        ret_ranges[i].start += place->slide;
        ret_ranges[i].end += place->slide;
    }
    return ranges.count;
}
