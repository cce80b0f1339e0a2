/* io_looks.c: calls that ask what is there: stat, access, going through a folder.
 *
 * They move no bytes and have no row: they are counted for the zone that makes them, and
 * where the main thread makes them by hand in steps (io_steps.c), because a loop that
 * looks at ten thousand names for each batch loads, though it reads next to nothing.
 * Everywhere else they pass through.
 *
 * Programs built with a libc before 2.33 call __xstat and its kin instead of stat.
 */
#include "capture/interpose/io.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* As libc exports them; no header does any more. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);

/* `counts`: a name in a list is none by itself, what its listing took is. */
#define TIMED(counts, type, name, declaration, arguments)                              \
    REAL_OF(name);                                                                     \
    EXPORTED type name declaration                                                     \
    {                                                                                  \
        if (LIKELY(!io_looks_count()))                                                 \
            return REAL(name) arguments;                                               \
        const uint64_t start = io_ticks();                                             \
        type result = REAL(name) arguments;                                            \
        io_looked(counts, io_ticks() - start);                                         \
        return result;                                                                 \
    }
#define LOOK(type, name, declaration, arguments)                                       \
    TIMED(1, type, name, declaration, arguments)

LOOK(int, stat, (const char *path, struct stat *st), (path, st))
LOOK(int, stat64, (const char *path, struct stat64 *st), (path, st))
LOOK(int, lstat, (const char *path, struct stat *st), (path, st))
LOOK(int, lstat64, (const char *path, struct stat64 *st), (path, st))
LOOK(int, fstat, (int fd, struct stat *st), (fd, st))
LOOK(int, fstat64, (int fd, struct stat64 *st), (fd, st))
LOOK(int, fstatat, (int dir, const char *path, struct stat *st, int flags),
     (dir, path, st, flags))
LOOK(int, fstatat64, (int dir, const char *path, struct stat64 *st, int flags),
     (dir, path, st, flags))
LOOK(int, statx,
     (int dir, const char *path, int flags, unsigned mask, struct statx *st),
     (dir, path, flags, mask, st))
LOOK(int, __xstat, (int version, const char *path, struct stat *st),
     (version, path, st))
LOOK(int, __xstat64, (int version, const char *path, struct stat64 *st),
     (version, path, st))
LOOK(int, __lxstat, (int version, const char *path, struct stat *st),
     (version, path, st))
LOOK(int, __lxstat64, (int version, const char *path, struct stat64 *st),
     (version, path, st))
LOOK(int, __fxstat, (int version, int fd, struct stat *st), (version, fd, st))
LOOK(int, __fxstat64, (int version, int fd, struct stat64 *st), (version, fd, st))
LOOK(int, __fxstatat,
     (int version, int dir, const char *path, struct stat *st, int flags),
     (version, dir, path, st, flags))
LOOK(int, __fxstatat64,
     (int version, int dir, const char *path, struct stat64 *st, int flags),
     (version, dir, path, st, flags))
LOOK(int, access, (const char *path, int mode), (path, mode))
LOOK(int, faccessat, (int dir, const char *path, int mode, int flags),
     (dir, path, mode, flags))

/* ---- Folders ------------------------------------------------------------------------ */

LOOK(DIR *, opendir, (const char *path), (path))
LOOK(DIR *, fdopendir, (int fd), (fd))
TIMED(0, struct dirent *, readdir, (DIR * dir), (dir))
TIMED(0, struct dirent64 *, readdir64, (DIR * dir), (dir))
TIMED(0, int, closedir, (DIR * dir), (dir))
