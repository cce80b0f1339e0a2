/* io_fds.c: what a descriptor is: open, dup, pipe, close.
 *
 * Numbers are reused at once and by any thread, so what we know about a number is
 * forgotten before its close and set after the call that gave it. What a child of vfork
 * opens and closes is not noted: it runs in its parent's memory (io_vfork.c).
 *
 * open_now and the series over time count what this process opened and has not closed.
 */
#include "capture/interpose/io.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As libc exports them for fortified programs; no header does. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

/* ---- Noting it ---------------------------------------------------------------------------- */

/* What is known about a number, for those who change it; NULL where nothing is kept. */
static struct io_fd *known(int fd)
{
    struct io_state *s = io;
    if (inside_busy || !s || !s->on || (unsigned)fd >= IO_FDS || io_in_vfork())
        return NULL;
    return &s->fd[fd];
}

/* Points of the series are evenly spaced in time; when they are full every second one
 * goes and the space between them doubles. */
static void note_series(struct io_process_row *p, uint64_t now)
{
    if (now < p->series_start + p->series_count * p->series_ticks)
        return;
    if (p->series_count == IO_SERIES) {
        for (unsigned i = 0; i < IO_SERIES / 2; i++)
            p->series[i] = p->series[2 * i];
        p->series_ticks *= 2;
        p->series_count = IO_SERIES / 2;
        return;
    }
    /* Nothing was opened in the intervals in between: as before. */
    while (p->series_count < IO_SERIES &&
           now >= p->series_start + p->series_count * p->series_ticks)
        p->series[p->series_count++] = (uint32_t)p->open_now;
}

static void one_more(struct io_state *s, struct io_fd *f)
{
    struct io_process_row *p = s->process;
    f->flags |= IO_FD_OPENED;
    if (f->row)
        io_add(&f->row->opens, 1, false);
    io_add(&p->opens, 1, false);
    const uint64_t now = __atomic_add_fetch(&p->open_now, 1, __ATOMIC_RELAXED);
    if (now > p->open_most)
        p->open_most = now;
    io_lock(s);
    note_series(p, io_ticks());
    io_unlock(s);
}

/* The recorder lives in this library and calls libc as anybody does. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _etext[] __attribute__((visibility("hidden")));

static bool is_sondes(const void *caller)
{
    return (uintptr_t)caller >= (uintptr_t)__ehdr_start &&
           (uintptr_t)caller < (uintptr_t)_etext;
}

static void forget(struct io_fd *f)
{
    *f = (struct io_fd){ .owner = UINT16_MAX };
}

static void note_event(struct io_fd *f, enum io_way way, int fd, uint64_t start)
{
    const struct io_call c = { .fd = f, .row = f->row, .start = start, .alone = true };
    if (io->trace && f->row)
        io_event(&c, IO_READ, way, fd, IO_NO_PLACE, io_ticks() - start);
}

static void one_less(struct io_state *s, struct io_fd *f)
{
    if (!(f->flags & IO_FD_OPENED))
        return;
    note_event(f, IO_WAY_CLOSE, (int)(f - s->fd), io_ticks());
    if (f->row)
        io_add(&f->row->closes, 1, false);
    io_add(&s->process->closes, 1, false);
    (void)__atomic_fetch_sub(&s->process->open_now, 1, __ATOMIC_RELAXED);
}

void io_closing(int fd)
{
    struct io_fd *f = io && io->on && (unsigned)fd < IO_FDS ? &io->fd[fd] : NULL;
    if (!f || (!f->row && !f->flags)) /* never met */
        return;
    f = known(fd);
    if (!f)
        return;
    one_less(io, f);
    forget(f);
}

/* Some close by raw system calls (libuv does): what is not open any more at the end was
 * closed. */
void io_fds_finish(void)
{
    struct io_state *s = io;
    for (uint32_t fd = 0; fd <= s->fd_top; fd++) {
        struct io_fd *f = &s->fd[fd];
        if (!(f->flags & IO_FD_OPENED) || syscall(SYS_fcntl, fd, F_GETFD) >= 0)
            continue;
        one_less(s, f);
        forget(f);
    }
}

void io_opened(int fd, const char *path, uint64_t start, const void *caller)
{
    const int saved = errno;
    if (inside_busy || inside_resolving || (unsigned)fd >= IO_FDS || !inside_ready()) {
        errno = saved;
        return;
    }
    const uint64_t took = io_ticks() - start;
    inside_busy++;
    struct io_state *s = io;
    if (!s && io_set_up())
        s = io;
    if (s && s->on && !io_in_vfork()) {
        struct io_fd *f = &s->fd[fd];
        one_less(s,
                 f); /* the number is free again, though nobody was seen to close it */
        forget(f);
        if ((uint32_t)fd > s->fd_top)
            s->fd_top = (uint32_t)fd;
        if (is_sondes(caller))
            f->flags = IO_FD_ASIDE;
        else
            io_resolve_given(f, fd, path);
        if (!(f->flags & IO_FD_ASIDE)) {
            one_more(s, f);
            io_add(&s->process->open_ticks, took, false);
            io_file_opened(fd, f, took);
            note_event(f, IO_WAY_OPEN, fd, start);
        }
    }
    inside_busy--;
    errno = saved;
}

void io_doubled(int from, int to)
{
    const int saved = errno;
    struct io_fd *f = known(from);
    if (f && (unsigned)to < IO_FDS && from != to) {
        struct io_fd *t = &io->fd[to];
        inside_busy++;
        if (!f->row)
            io_resolve(f, from, NULL);
        one_less(io, t);
        if ((uint32_t)to > io->fd_top)
            io->fd_top = (uint32_t)to;
        *t = *f;
        t->stream = NULL;
        t->pending = 0;
        t->flags &= (uint8_t)~IO_FD_OPENED;
        if (!(t->flags & IO_FD_ASIDE))
            one_more(io, t);
        inside_busy--;
    }
    errno = saved;
}

void io_renamed(int fd, const char *name)
{
    struct io_fd *f = known(fd);
    if (!f)
        return;
    const int saved = errno;
    inside_busy++;
    const uint8_t opened = f->flags & IO_FD_OPENED;
    if (opened && f->row)
        io_add(&f->row->opens, (uint64_t)-1, false);
    forget(f);
    io_resolve(f, fd, name);
    f->flags |= opened;
    if (opened && f->row)
        io_add(&f->row->opens, 1, false);
    inside_busy--;
    errno = saved;
}

static int opened(int fd, const char *path, uint64_t start, const void *caller)
{
    if (LIKELY(fd >= 0))
        io_opened(fd, path, start, caller);
    else if (!inside_busy && io && io->on)
        io_add(&io->process->open_errors, 1, false);
    return fd;
}

/* ---- open --------------------------------------------------------------------------------- */

static bool has_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

/* A path we can make sense of, NULL: one below some other directory. */
static const char *below(int dir, const char *path)
{
    return dir == AT_FDCWD || path[0] == '/' ? path : NULL;
}

#define OPEN(name)                                                                     \
    REAL_OF(name);                                                                     \
    EXPORTED int name(const char *path, int flags, ...)                                \
    {                                                                                  \
        va_list more;                                                                  \
        va_start(more, flags);                                                         \
        const mode_t mode = has_mode(flags) ? va_arg(more, mode_t) : 0;                \
        va_end(more);                                                                  \
        const uint64_t start = io_ticks();                                             \
        return opened(REAL(name)(path, flags, mode), path, start, IO_CALLER);          \
    }
#define OPENAT(name)                                                                   \
    REAL_OF(name);                                                                     \
    EXPORTED int name(int dir, const char *path, int flags, ...)                       \
    {                                                                                  \
        va_list more;                                                                  \
        va_start(more, flags);                                                         \
        const mode_t mode = has_mode(flags) ? va_arg(more, mode_t) : 0;                \
        va_end(more);                                                                  \
        const uint64_t start = io_ticks();                                             \
        return opened(REAL(name)(dir, path, flags, mode), below(dir, path), start,     \
                      IO_CALLER);                                                      \
    }
#define PLAIN(name, declaration, arguments, path)                                      \
    REAL_OF(name);                                                                     \
    EXPORTED int name declaration                                                      \
    {                                                                                  \
        const uint64_t start = io_ticks();                                             \
        return opened(REAL(name) arguments, path, start, IO_CALLER);                   \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
PLAIN(__open_2, (const char *path, int flags), (path, flags), path)
PLAIN(__open64_2, (const char *path, int flags), (path, flags), path)
PLAIN(__openat_2, (int dir, const char *path, int flags), (dir, path, flags),
      below(dir, path))
PLAIN(__openat64_2, (int dir, const char *path, int flags), (dir, path, flags),
      below(dir, path))
PLAIN(creat, (const char *path, mode_t mode), (path, mode), path)
PLAIN(creat64, (const char *path, mode_t mode), (path, mode), path)
/* The names are made up by the call: ask. */
PLAIN(mkstemp, (char *template), (template), NULL)
PLAIN(mkstemp64, (char *template), (template), NULL)
PLAIN(mkostemp, (char *template, int flags), (template, flags), NULL)
PLAIN(mkostemp64, (char *template, int flags), (template, flags), NULL)
PLAIN(mkstemps, (char *template, int suffix), (template, suffix), NULL)
PLAIN(mkstemps64, (char *template, int suffix), (template, suffix), NULL)

/* ---- chdir -------------------------------------------------------------------------------- */

REAL_OF(chdir);
EXPORTED int chdir(const char *path)
{
    const int result = REAL(chdir)(path);
    if (result == 0)
        io_moved();
    return result;
}

REAL_OF(fchdir);
EXPORTED int fchdir(int fd)
{
    const int result = REAL(fchdir)(fd);
    if (result == 0)
        io_moved();
    return result;
}

/* ---- dup, pipe ------------------------------------------------------------------------------ */

REAL_OF(dup);
EXPORTED int dup(int fd)
{
    const int to = REAL(dup)(fd);
    if (to >= 0)
        io_doubled(fd, to);
    return to;
}

/* What `to` was before is closed on the way, without a close(). */
static int doubled_onto(int from, int to, int result)
{
    const int saved = errno;
    if (result >= 0 && from != to) {
        io_closing(to);
        io_doubled(from, to);
    }
    errno = saved;
    return result;
}

REAL_OF(dup2);
EXPORTED int dup2(int fd, int to)
{
    return doubled_onto(fd, to, REAL(dup2)(fd, to));
}

REAL_OF(dup3);
EXPORTED int dup3(int fd, int to, int flags)
{
    return doubled_onto(fd, to, REAL(dup3)(fd, to, flags));
}

/* One argument or none, an int or a pointer: passed on as it came. */
#define FCNTL(name)                                                                    \
    REAL_OF(name);                                                                     \
    EXPORTED int name(int fd, int command, ...)                                        \
    {                                                                                  \
        va_list more;                                                                  \
        va_start(more, command);                                                       \
        void *argument = va_arg(more, void *);                                         \
        va_end(more);                                                                  \
        const int result = REAL(name)(fd, command, argument);                          \
        if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC))         \
            io_doubled(fd, result);                                                    \
        return result;                                                                 \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

static int opened_both(int result, const int ends[2], uint64_t start)
{
    if (result == 0) {
        io_opened(ends[0], io_pipe, start, NULL);
        io_opened(ends[1], io_pipe, start, NULL);
    }
    return result;
}

REAL_OF(pipe);
EXPORTED int pipe(int ends[2])
{
    const uint64_t start = io_ticks();
    return opened_both(REAL(pipe)(ends), ends, start);
}

REAL_OF(pipe2);
EXPORTED int pipe2(int ends[2], int flags)
{
    const uint64_t start = io_ticks();
    return opened_both(REAL(pipe2)(ends, flags), ends, start);
}

/* ---- close ---------------------------------------------------------------------------------- */

REAL_OF(close);
EXPORTED int close(int fd)
{
    if (!inside_busy)
        io_closing(fd);
    return REAL(close)(fd);
}

/* Sonde's own descriptors may be among them: the file of tables is opened again when it
 * has to grow (trace/tables.c). */
static void closing_range(unsigned first, unsigned last)
{
    if (inside_busy || !io || !io->on)
        return;
    for (unsigned fd = first; fd < IO_FDS && fd <= last; fd++)
        if (io->fd[fd].row || io->fd[fd].flags)
            io_closing((int)fd);
}

REAL_OF(close_range);
EXPORTED int close_range(unsigned first, unsigned last, int flags)
{
    if (!(flags & 4 /* CLOSE_RANGE_CLOEXEC: not yet */))
        closing_range(first, last);
    return REAL(close_range)(first, last, flags);
}

REAL_OF(closefrom);
EXPORTED void closefrom(int first)
{
    closing_range(first < 0 ? 0 : (unsigned)first, UINT32_MAX);
    REAL(closefrom)(first);
}
