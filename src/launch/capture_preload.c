/* capture_preload.c: puts libsonde-preload.so in front of the program's libraries.
 *
 * LD_PRELOAD is inherited, so that the whole tree has it. Ours goes first: what the
 * user preloads (another malloc) then stands behind it, where it is found by ours.
 *
 * AddressSanitizer ends programs in which it is not the first library. Its runtime is
 * told not to (verify_asan_link_order), and the library stays out of such programs by
 * itself; SONDE_TRACE tells it what to record event by event.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "launch/capture_list.h"
#include "launch/ownplace.h"
#include "trace/tables.h"

#define LIBRARY "libsonde-preload.so"

/* Where the library is, seen from the command: beside it in a build tree, else as
 * `make install` puts it. */
static const char *const places[] = { "%s/" LIBRARY, "%s/../lib/sonde/" LIBRARY,
                                      "%s/../lib64/sonde/" LIBRARY,
                                      "%s/../" SONDE_LIBDIR "/sonde/" LIBRARY, NULL };

static int set_trace(const struct capture_context *c)
{
    const bool all = c->level >= SONDE_COMPREHENSIVE;
    const struct capture_options *o = c->options;
    char list[32];
    (void)snprintf(list, sizeof list, "%s%s%s%s", all || o->trace_alloc ? ",alloc" : "",
                   all || o->trace_stacks ? ",stacks" : "",
                   all || o->trace_io ? ",io" : "", o->no_sites ? ",counts" : "");
    if (!list[0])
        return unsetenv("SONDE_TRACE") < 0 ? -errno : 0;
    return setenv("SONDE_TRACE", list + 1, 1) < 0 ? -errno : 0;
}

struct preload {
    struct capture_context context;
    pid_t pid;
};

static int prepare(const struct capture_context *c, void **ret_state)
{
    char path[4200];
    *ret_state = NULL;
    if (c->options->no_preload || c->level <= SONDE_BASIC)
        return 0;
    if (!ownplace_find(getenv("SONDE_PRELOAD_LIBRARY"), places, path, sizeof path)) {
        runfile_note(c->file, "allocations and I/O: " LIBRARY " was not found beside "
                              "the command (SONDE_PRELOAD_LIBRARY tells where it is)");
        return 0;
    }
    if (strpbrk(path, " :")) { /* these separate names in LD_PRELOAD */
        runfile_note(c->file, "allocations and I/O: the path of " LIBRARY
                              " has a blank or a colon, which LD_PRELOAD cannot name");
        return 0;
    }
    int rc = ownplace_prepend("LD_PRELOAD", path, ':');
    if (rc == 0)
        rc = ownplace_prepend("ASAN_OPTIONS", "verify_asan_link_order=0", ':');
    if (rc == 0)
        rc = set_trace(c);
    struct preload *p = rc == 0 ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return rc < 0 ? rc : -ENOMEM;
    p->context = *c;
    *ret_state = p;
    return 0;
}

/* ---- Whether it was seen ----------------------------------------------------------- */

/* Opens the program as execvp() would find it. */
static int open_program(const char *name)
{
    if (strchr(name, '/'))
        return open(name, O_RDONLY | O_CLOEXEC);
    const char *path = getenv("PATH");
    int fd = -1;
    while (path && *path && fd < 0) {
        char file[4096];
        const size_t len = strcspn(path, ":");
        const int n = snprintf(file, sizeof file, "%.*s/%s", (int)len, path, name);
        if (n > 0 && (size_t)n < sizeof file && access(file, X_OK) == 0)
            fd = open(file, O_RDONLY | O_CLOEXEC);
        path += len + (path[len] == ':');
    }
    return fd;
}

/* ELF without an interpreter: nobody who would preload anything. */
static bool is_static(int fd)
{
    ElfW(Ehdr) eh;
    ElfW(Phdr) ph;
    if (pread(fd, &eh, sizeof eh, 0) != sizeof eh || eh.e_phentsize != sizeof ph ||
        memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    for (unsigned i = 0; i < eh.e_phnum; i++)
        if (pread(fd, &ph, sizeof ph, (off_t)(eh.e_phoff + i * sizeof ph)) ==
                sizeof ph &&
            ph.p_type == PT_INTERP)
            return false;
    return true;
}

/* Why the loader will not preload anything into this program; NULL: it should. */
static const char *why_not(const char *name)
{
    const int fd = open_program(name);
    struct stat st;
    const char *why = NULL;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID)))
        why = "it is setuid or setgid";
    else if (is_static(fd))
        why = "it is statically linked";
    (void)close(fd);
    return why;
}

static int start(void *state, const struct capture_context *c)
{
    struct preload *p = state;
    if (p)
        p->pid = c->pid;
    return 0;
}

static bool was_seen(const struct preload *p)
{
    char part[32];
    bool seen = false;
    (void)snprintf(part, sizeof part, "-%d-", (int)p->pid);
    DIR *dir = opendir(p->context.dir);
    for (struct dirent *e; dir && !seen && (e = readdir(dir));)
        seen = tablefile_is_name(e->d_name, "heap") && strstr(e->d_name, part);
    if (dir)
        (void)closedir(dir);
    return seen;
}

/* Without a reason of its own it may be a program that allocates nothing. */
static void finish(void *state, int status)
{
    const struct preload *p = state;
    (void)status;
    if (p && p->pid && !was_seen(p) && p->context.file->command_len > 0) {
        const char *why = why_not(p->context.file->command[0]);
        if (why)
            runfile_note(p->context.file,
                         "allocations and I/O of the program were not seen: %s", why);
    }
}

const struct capture_ops capture_preload = {
    .name = "allocations and I/O",
    .prepare = prepare,
    .start = start,
    .finish = finish,
    .release = free,
};
