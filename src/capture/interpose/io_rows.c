/* io_rows.c: paths and zones get rows.
 *
 * All of it is the cold half of something: the first use of a descriptor, of a path, of
 * a zone. inside_busy is set while we are here, so a handler's calls pass through and
 * the lock is never waited for by the thread that holds it.
 *
 * A path is what /proc/self/fd says, or the absolute path the program gave. Sonde's own
 * files, those in the run directory, are put aside: nobody asked about them.
 *
 * The page cache is looked at before the first read of a regular file: cachestat(2), or
 * mincore(2) on a mapping nobody touches. Both only answer truthfully to those who own
 * the file or may write it; others are not told, and then we do not tell either.
 */
#include "capture/interpose/io.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LOOK_WINDOWS = 4, /* parts of a file that are looked at, … */
    LOOK_PAGES = 64,  /* … so many pages each */
    PAGE = 4096,
    /* of paths we have to ask for: handlers on small stacks get here */
    PATH_LONGEST = 1024,
};

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* ---- The table of rows ------------------------------------------------------------------ */

static uint64_t hash_path(const char *path, size_t len)
{
    uint64_t h = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)path[i]) * 0x100000001b3ULL;
    h ^= h >> 29;
    return h << 1 | 2; /* the lowest bit tells shared rows; never 0 or 1 */
}

static struct io_file_row *row_at(struct io_state *s, uint32_t index)
{
    return tables_row(&s->tables, IO_TABLES_FILES, index);
}

/* The place of the key: with its row, or free. NULL when all are taken. */
static uint32_t *find_slot(struct io_state *s, uint64_t key)
{
    for (uint32_t i = 0; i < IO_SLOTS; i++) {
        uint32_t *slot = &s->slot[((key >> 1) + i) % IO_SLOTS];
        if (*slot == 0 || row_at(s, *slot - 1)->key == key)
            return slot;
    }
    return NULL;
}

static struct io_file_row *new_row(struct io_state *s, uint64_t key, uint32_t path,
                                   unsigned io_class, uint32_t *ret_index)
{
    struct io_file_row *row = tables_append(&s->tables, IO_TABLES_FILES, ret_index);
    if (!row) {
        s->full = 1;
        return NULL;
    }
    row->path = path;
    row->io_class = (uint8_t)io_class;
    row->shared = key & 1;
    row->owner = key & 1 ? UINT16_MAX : (uint16_t)inside_thread();
    if (row->owner >= INSIDE_THREADS)
        row->owner = UINT16_MAX;
    __atomic_store_n(&row->key, key, __ATOMIC_RELEASE);
    return row;
}

static struct io_file_row *find(uint64_t key, uint32_t *ret_index)
{
    struct io_state *s = io;
    struct io_file_row *row = NULL;
    const uint32_t at = (uint32_t)(key >> 1) % IO_RECENT;
    io_lock(s);
    if (s->recent[at].key == key) {
        *ret_index = s->recent[at].index;
        row = s->recent[at].row;
    } else {
        const uint32_t *slot = find_slot(s, key);
        if (slot && *slot) {
            *ret_index = *slot - 1;
            row = row_at(s, *slot - 1);
            s->recent[at].key = key;
            s->recent[at].row = row;
            s->recent[at].index = *ret_index;
        }
    }
    io_unlock(s);
    return row;
}

/* The row of a key, made when there is none. `text` is kept for new rows unless `path`
 * is the place of it already. */
static struct io_file_row *enter(uint64_t key, const char *text, uint32_t path,
                                 unsigned io_class, uint32_t *ret_index)
{
    struct io_state *s = io;
    struct io_file_row *row = NULL;
    io_lock(s);
    uint32_t *slot = find_slot(s, key);
    if (slot && *slot) {
        *ret_index = *slot - 1;
        row = row_at(s, *ret_index);
    } else if (slot) {
        if (!path)
            path = tables_text(&s->tables, text, strlen(text));
        row = path ? new_row(s, key, path, io_class, ret_index) : NULL;
        if (row)
            *slot = *ret_index + 1;
    }
    io_unlock(s);
    return row;
}

/* ---- What a descriptor is ----------------------------------------------------------------- */

static bool starts(const char *path, const char *with)
{
    return strncmp(path, with, strlen(with)) == 0;
}

static enum io_class classify(int fd, const char *path, uint64_t *ret_size)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return IO_CLASS_UNKNOWN;
    if (starts(path, "/proc/") || starts(path, "/sys/"))
        return IO_CLASS_PROC;
    if (strcmp(path, IO_SHARED_MEMORY) == 0)
        return IO_CLASS_OTHER;
    switch (st.st_mode & S_IFMT) {
    case S_IFREG:
        *ret_size = (uint64_t)st.st_size;
        return IO_CLASS_FILE;
    case S_IFIFO:
        return IO_CLASS_PIPE;
    case S_IFSOCK:
        return IO_CLASS_SOCKET;
    case S_IFCHR:
        return starts(path, "/dev/pts/") || starts(path, "/dev/tty") ||
                       starts(path, "/dev/console")
                   ? IO_CLASS_TTY
                   : IO_CLASS_DEVICE;
    case S_IFBLK:
        return IO_CLASS_DEVICE;
    default:
        return IO_CLASS_OTHER;
    }
}

/* What goes by one name whoever it is, without asking for its path, which takes
 * microseconds: batches of torch's data loaders come in shared memory, each tensor in a
 * file of its own that is gone in a moment. NULL: its path tells. */
static const char *name_of_kind(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return NULL;
    if (S_ISSOCK(st.st_mode))
        return io_socket;
    return S_ISREG(st.st_mode) && io->memory_device && st.st_dev == io->memory_device
               ? IO_SHARED_MEMORY
               : NULL;
}

/* Pipes and sockets are many and have numbers for names: one row each kind. Sockets get
 * better names when they connect (io_net.c). */
const char io_pipe[] = "pipe:[", io_socket[] = "socket:[";

/* Source and code of installed modules: `import torch` reads two thousand of them, and
 * the rows for paths are meant for data. */
static bool is_module(const char *path)
{
    const size_t len = strlen(path);
    const bool code = (len > 3 && strcmp(path + len - 3, ".py") == 0) ||
                      (len > 4 && strcmp(path + len - 4, ".pyc") == 0);
    return code && (strstr(path, "/site-packages/") ||
                    strstr(path, "/dist-packages/") || strstr(path, "/lib/python3"));
}

static const char *common_name(const char *path)
{
    return starts(path, "pipe:[")     ? "(pipes)"
           : starts(path, "socket:[") ? "(sockets)"
           : is_module(path)          ? "(installed modules)"
                                      : path;
}

static bool is_sondes(const char *path)
{
    const char *dir = inside_dir();
    const size_t len = dir ? strlen(dir) : 0;
    return len > 1 && strncmp(path, dir, len) == 0 && path[len] == '/';
}

/* By hand: snprintf takes more stack than some handlers have. */
static void put_number(char *end, int number)
{
    char digits[12];
    int n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (n > 0)
        *end++ = digits[--n];
    *end = '\0';
}

static void ask_path(int fd, char ret_path[PATH_LONGEST])
{
    static const char folder[] = "/proc/self/fd/";
    char link[sizeof folder + 12];
    memcpy(link, folder, sizeof folder);
    put_number(link + sizeof folder - 1, fd);
    const ssize_t n = readlink(link, ret_path, PATH_LONGEST - 1);
    if (n > 0)
        ret_path[n] = '\0';
    else
        memcpy(ret_path, "(unknown)", sizeof "(unknown)");
}

static void use_row(struct io_fd *f, struct io_file_row *row, uint32_t index)
{
    f->index = row ? index : 0;
    f->io_class = row ? row->io_class : IO_CLASS_OTHER;
    f->owner = row ? row->owner : UINT16_MAX;
    if (!row || f->io_class != IO_CLASS_FILE || row->cache_pages)
        f->flags |= IO_FD_LOOKED;
    if (!row)
        f->shared = io->other;
    __atomic_store_n(&f->row, row ? row : io->other, __ATOMIC_RELEASE);
}

static void put_aside(struct io_fd *f)
{
    f->flags = IO_FD_ASIDE;
    f->owner = UINT16_MAX;
}

void io_resolve(struct io_fd *f, int fd, const char *path)
{
    char asked[PATH_LONGEST];
    uint64_t size = 0;
    uint32_t index = 0;
    if (f->flags & IO_FD_ASIDE)
        return;
    if (!path)
        path = name_of_kind(fd);
    if (!path) {
        ask_path(fd, asked);
        path = asked;
    }
    if (is_sondes(path)) {
        put_aside(f);
        return;
    }
    const char *name = common_name(path);
    const uint64_t key = hash_path(name, strlen(name));
    struct io_file_row *row = find(key, &index);
    if (!row && io->full)
        io_add(&io->process->files_refused, 1, false);
    if (!row && !io->full) {
        const enum io_class io_class = classify(fd, path, &size);
        row = enter(key, name, 0, io_class, &index);
        if (row && name == path) /* many have no size */
            row->file_bytes = size;
    }
    use_row(f, row, index);
}

/* To ask for each path in /proc would take microseconds; most are below the working
 * directory, which seldom changes. */
static bool join(const char *path, char ret_path[PATH_LONGEST])
{
    struct io_state *s = io;
    bool joined = false;
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    const size_t len = strlen(path);
    if (len == 0 || strstr(path, ".."))
        return false;
    io_lock(s);
    if (!s->cwd_len) {
        const long n = syscall(SYS_getcwd, s->cwd, sizeof s->cwd);
        s->cwd_len = n > 1 && s->cwd[0] == '/' ? (uint32_t)n - 1 : 0;
    }
    if (s->cwd_len && s->cwd_len + 1 + len < PATH_LONGEST) {
        memcpy(ret_path, s->cwd, s->cwd_len);
        ret_path[s->cwd_len] = '/';
        memcpy(ret_path + s->cwd_len + 1, path, len + 1);
        joined = true;
    }
    io_unlock(s);
    return joined;
}

void io_resolve_given(struct io_fd *f, int fd, const char *path)
{
    char joined[PATH_LONGEST];
    if (path && path[0] != '/' && path != io_pipe && path != io_socket)
        path = join(path, joined) ? joined : NULL;
    io_resolve(f, fd, path);
}

void io_moved(void)
{
    struct io_state *s = io;
    if (inside_busy || !s || !s->on)
        return;
    inside_busy++;
    io_lock(s);
    s->cwd_len = 0;
    io_unlock(s);
    inside_busy--;
}

void io_resolve_shared(struct io_fd *f)
{
    struct io_file_row *own = f->row;
    struct io_file_row *shared = NULL;
    if (own && own != io->other)
        shared = enter(own->key | 1, "", own->path, own->io_class, &f->shared_index);
    __atomic_store_n(&f->shared, shared ? shared : io->other, __ATOMIC_RELEASE);
}

/* ---- The page cache ---------------------------------------------------------------------- */

struct seen_pages {
    uint64_t pages, warm;
};

static bool ask_cachestat(int fd, uint64_t offset, uint64_t len,
                          struct seen_pages *seen)
{
    const uint64_t range[2] = { offset, len };
    uint64_t stat[5] = { 0 }; /* nr_cache, dirty, writeback, evicted, recently */
    if (syscall(SYS_cachestat, fd, range, stat, 0) != 0)
        return false;
    seen->pages += (len + PAGE - 1) / PAGE;
    seen->warm += stat[0];
    return true;
}

static bool ask_mincore(int fd, uint64_t offset, uint64_t len, struct seen_pages *seen)
{
    unsigned char in_core[LOOK_PAGES];
    const long p = syscall(SYS_mmap, NULL, len, PROT_READ, MAP_SHARED, fd, offset);
    if (p == -1)
        return false;
    const bool told = mincore((void *)p, len, in_core) == 0;
    for (uint64_t i = 0; told && i < (len + PAGE - 1) / PAGE; i++) {
        seen->pages++;
        seen->warm += in_core[i] & 1;
    }
    (void)syscall(SYS_munmap, p, len);
    return told;
}

static bool worth_looking(int fd, const struct stat *st)
{
    const long mode = syscall(SYS_fcntl, fd, F_GETFL) & O_ACCMODE;
    if (mode == O_WRONLY || st->st_size == 0)
        return false; /* nobody is going to read it */
    return mode != O_RDONLY || geteuid() == 0 || geteuid() == st->st_uid;
}

static void look_at_windows(int fd, uint64_t size, struct seen_pages *seen)
{
    const uint64_t window = LOOK_PAGES * PAGE;
    const uint64_t windows = size <= window ? 1 : LOOK_WINDOWS;
    for (uint64_t i = 0; i < windows; i++) {
        uint64_t at = windows > 1 ? (size - window) / (windows - 1) * i : 0;
        at -= at % PAGE;
        const uint64_t len = size - at < window ? size - at : window;
        if (!ask_cachestat(fd, at, len, seen) && !ask_mincore(fd, at, len, seen))
            return;
    }
}

void io_look(struct io_fd *f, int fd)
{
    struct stat st;
    struct io_file_row *row = f->row;
    struct seen_pages seen = { 0, 0 };
    f->flags |= IO_FD_LOOKED;
    if (row == io->other || row->cache_pages || fstat(fd, &st) != 0 ||
        !worth_looking(fd, &st))
        return;
    look_at_windows(fd, (uint64_t)st.st_size, &seen);
    row->cache_warm = seen.warm;
    row->cache_pages = seen.pages;
}

/* ---- Zones --------------------------------------------------------------------------------- */

static struct io_zone_row *zone_row(uint64_t key)
{
    uint32_t index;
    struct io_zone_row *row = tables_append(&io->tables, IO_TABLES_ZONES, &index);
    if (row)
        __atomic_store_n(&row->key, key, __ATOMIC_RELEASE);
    return row;
}

/* NULL when there is no room: the call counts for its file alone. */
struct io_zone *io_zone_resolve(uint32_t zone)
{
    struct io_state *s = io;
    struct io_zone *z = &s->zone[zone];
    io_lock(s);
    if (!z->row) {
        z->owner = inside_thread() < INSIDE_THREADS ? inside_thread() : UINT32_MAX;
        __atomic_store_n(&z->row, zone_row(zone + 1), __ATOMIC_RELEASE);
    }
    if (z->row && z->owner != inside_thread() && !z->shared)
        __atomic_store_n(&z->shared, zone_row((zone + 1) | 1ULL << 32),
                         __ATOMIC_RELEASE);
    io_unlock(s);
    return z->row ? z : NULL;
}
