/* modules.c: which code lies where. See trace/module_rows.h.
 *
 * Read from /proc/self/maps when a frame is met that lies in no known module: no
 * dlopen() to stand in front of (it looks at its caller), no lock of the loader.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/interpose/inside.h"
#include "trace/module_rows.h"

struct line {
    uint64_t start, end, offset, inode;
    bool readable, executable;
    const char *path; /* "" when it has none; "[vdso]" is one too */
    size_t path_len;
    const char *text; /* all of it, without its end */
    size_t text_len;
};

/* ---- Lines of /proc/self/maps ----------------------------------------------------- */

static const char *hex(const char *p, uint64_t *ret_value)
{
    uint64_t v = 0;
    for (;; p++) {
        const unsigned d = *p >= '0' && *p <= '9'   ? (unsigned)(*p - '0')
                           : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a' + 10)
                                                    : 16;
        if (d == 16)
            break;
        v = v << 4 | d;
    }
    *ret_value = v;
    return p;
}

/* "start-end perms offset dev inode   path" */
static void parse_line(const char *p, const char *end, struct line *ret_line)
{
    ret_line->text = p;
    ret_line->text_len = (size_t)(end - p);
    p = hex(p, &ret_line->start);
    p = hex(p + 1, &ret_line->end);
    ret_line->readable = p[1] == 'r';
    ret_line->executable = p[3] == 'x';
    p = hex(p + 6, &ret_line->offset);
    p = memchr(p + 1, ' ', (size_t)(end - p - 1)); /* behind the device */
    for (ret_line->inode = 0; p && ++p < end && *p >= '0' && *p <= '9';)
        ret_line->inode = ret_line->inode * 10 + (uint64_t)(*p - '0');
    while (p && p < end && *p == ' ')
        p++;
    ret_line->path = p ? p : end;
    ret_line->path_len = p ? (size_t)(end - p) : 0;
}

/* Calls `each` for every line until it says stop. Raw system calls: ours are not to be
 * captured, and cancellation has no business here. */
static void each_line(bool (*each)(const struct line *, void *), void *arg)
{
    char text[8192];
    size_t have = 0;
    const long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps",
                            O_RDONLY | O_CLOEXEC, 0);
    bool more = fd >= 0;
    while (more) {
        const long n = syscall(SYS_read, fd, text + have, sizeof text - have);
        if (n <= 0)
            break;
        have += (size_t)n;
        (void)__atomic_fetch_add(&inside_own_bytes, (uint64_t)n, __ATOMIC_RELAXED);
        char *p = text, *end;
        while (more && (end = memchr(p, '\n', (size_t)(text + have - p)))) {
            struct line line;
            parse_line(p, end, &line);
            more = each(&line, arg);
            p = end + 1;
        }
        have -= (size_t)(p - text);
        memmove(text, p, have);
        if (have == sizeof text)
            break; /* no line is that long */
    }
    if (fd >= 0)
        (void)syscall(SYS_close, fd);
}

/* ---- Build ids, from the mapped file ---------------------------------------------- */

struct refresh {
    struct inside_modules *modules;
    uint64_t head; /* where the first mapping of the current file is */
    size_t head_len;
    char path[512]; /* of that file */
};

static void note_build_id(const char *p, size_t len, struct module_row *row)
{
    while (len >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, p, sizeof note);
        const size_t name = (note.n_namesz + 3u) & ~3u,
                     desc = (note.n_descsz + 3u) & ~3u;
        if (sizeof note + name + desc > len || note.n_descsz > len)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(p + sizeof note, "GNU", 4) == 0) {
            row->build_id_len = note.n_descsz < MODULE_BUILD_ID_MAX
                                    ? (uint8_t)note.n_descsz
                                    : MODULE_BUILD_ID_MAX;
            memcpy(row->build_id, p + sizeof note + name, row->build_id_len);
            return;
        }
        p += sizeof note + name + desc;
        len -= sizeof note + name + desc;
    }
}

/* The first mapping of a module begins with its ELF header; program headers and notes
 * lie in the same mapping with every linker we know, and are left out otherwise. */
static void read_head(const struct refresh *r, struct module_row *row)
{
    const char *base = (const char *)(uintptr_t)r->head;
    const ElfW(Ehdr) *eh = (const ElfW(Ehdr) *)(uintptr_t)r->head;
    if (r->head_len < sizeof *eh || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
        eh->e_phentsize != sizeof(ElfW(Phdr)) ||
        eh->e_phoff + (uint64_t)eh->e_phnum * sizeof(ElfW(Phdr)) > r->head_len)
        return;
    const ElfW(Phdr) *ph = (const ElfW(Phdr) *)(uintptr_t)(base + eh->e_phoff);
    for (unsigned i = 0; i < eh->e_phnum && !row->build_id_len; i++)
        if (ph[i].p_type == PT_NOTE && ph[i].p_offset + ph[i].p_filesz <= r->head_len)
            note_build_id(base + ph[i].p_offset, ph[i].p_filesz, row);
}

/* ---- New modules ------------------------------------------------------------------ */

static bool is_known(const struct inside_modules *m, uint64_t address)
{
    const uint32_t count = __atomic_load_n(&m->count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        if (address >= m->known[i].start && address < m->known[i].end)
            return true;
    return false;
}

static void add_module(struct refresh *r, const struct line *line)
{
    struct inside_modules *m = r->modules;
    uint32_t index;
    struct module_row *row = m->count < INSIDE_MODULES
                                 ? tables_append(m->tables, m->table, &index)
                                 : NULL;
    if (!row)
        return;
    struct module_row fresh = { .end = line->end,
                                .file_offset = line->offset,
                                .inode = line->inode };
    fresh.path = tables_text(m->tables, line->path, line->path_len);
    read_head(r, &fresh);
    memcpy((char *)row + 8, (char *)&fresh + 8, sizeof fresh - 8);
    __atomic_store_n(&row->start, line->start, __ATOMIC_RELEASE);
    m->known[m->count].start = line->start;
    m->known[m->count].end = line->end;
    __atomic_store_n(&m->count, m->count + 1, __ATOMIC_RELEASE);
}

static bool on_line(const struct line *line, void *arg)
{
    struct refresh *r = arg;
    if (line->path_len && line->offset == 0 && line->readable &&
        line->path_len < sizeof r->path) {
        memcpy(r->path, line->path, line->path_len);
        r->path[line->path_len] = '\0';
        r->head = line->start;
        r->head_len = line->end - line->start;
    }
    const bool same = strncmp(r->path, line->path, line->path_len) == 0 &&
                      r->path[line->path_len] == '\0';
    if (!same || !line->path_len)
        r->head_len = 0;
    if (line->executable && !is_known(r->modules, line->start))
        add_module(r, line);
    return true;
}

/* Code made at run time lies in no module: look ever more seldom, at most once a second
 * in the end. */
static uint64_t pause_ms(const struct inside_modules *m)
{
    return m->looks < 100 ? m->looks * 10 : 1000;
}

void inside_modules(struct inside_modules *m, const uint64_t *frames, unsigned count)
{
    unsigned i = 0;
    while (i < count && is_known(m, frames[i]))
        i++;
    if ((i == count && !inside_modules_missed(m)) || inside_sealed)
        return;
    const uint64_t now = inside_now_ms(); /* ticks_per_ns() would take a millisecond */
    if (now - m->looked_ms < pause_ms(m) || !inside_lock(&m->lock)) {
        __atomic_store_n(&m->missed, true, __ATOMIC_RELAXED);
        return;
    }
    __atomic_store_n(&m->missed, false, __ATOMIC_RELAXED);
    m->looked_ms = now;
    m->looks++;
    struct refresh r = { .modules = m, .path = "" };
    each_line(on_line, &r);
    inside_unlock(&m->lock);
}

/* ---- As text ---------------------------------------------------------------------- */

struct copy {
    char *to;
    size_t len, size;
};

static bool copy_line(const struct line *line, void *arg)
{
    struct copy *c = arg;
    if (!line->executable || line->text_len + 1 > c->size - c->len)
        return true;
    memcpy(c->to + c->len, line->text, line->text_len);
    c->len += line->text_len;
    c->to[c->len++] = '\n';
    return true;
}

size_t inside_code_lines(char *ret_text, size_t size)
{
    struct copy c = { .to = ret_text, .size = size };
    if (!inside_sealed)
        each_line(copy_line, &c);
    return c.len;
}

/* ---- The mapping around an address ------------------------------------------------ */

struct around {
    uint64_t address, start, end;
};

static bool is_around(const struct line *line, void *arg)
{
    struct around *a = arg;
    if (a->address < line->start || a->address >= line->end)
        return true;
    a->start = line->start;
    a->end = line->readable ? line->end : line->start;
    return false;
}

bool inside_mapping(uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
    struct around a = { .address = address };
    if (!inside_sealed)
        each_line(is_around, &a);
    if (!a.end)
        return false;
    *ret_start = a.start;
    *ret_end = a.end;
    return true;
}
