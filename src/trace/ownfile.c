/* ownfile.c: create, and find again. */
#include "trace/ownfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/clock.h"

enum { HIGH_FD = 900, ATTEMPTS = 16 };

static int move_up(int fd)
{
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return fd;
    (void)close(fd);
    return high;
}

static int create_once(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    (void)fchmod(fd, 0600); /* whatever the umask left of it */
    return move_up(fd);
}

void ownfile_park(int *fd)
{
    if (*fd < 0 || *fd >= HIGH_FD)
        return;
    (void)close(*fd);
    *fd = -1;
}

int ownfile_create(const char *dir, const char *prefix, uint64_t start_ns,
                   const char *suffix, char *ret_path, size_t path_size, int *ret_fd,
                   struct ownfile_id *ret_id)
{
    int fd = -EEXIST;
    for (unsigned attempt = 0; attempt < ATTEMPTS && fd == -EEXIST; attempt++) {
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
            random = (uint32_t)ticks_now() + attempt;
        int n = snprintf(ret_path, path_size, "%s/%s%llu-%u-%08x%s", dir, prefix,
                         (unsigned long long)start_ns, (unsigned)getpid(), random,
                         suffix);
        if (n < 0 || (size_t)n >= path_size)
            return -ENAMETOOLONG;
        fd = create_once(ret_path);
    }
    struct stat st;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) != 0) {
        const int rc = -errno;
        (void)unlink(ret_path);
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    *ret_id = (struct ownfile_id){ st.st_dev, st.st_ino };
    return 0;
}

static int is_it(int fd, const struct ownfile_id *id)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == id->dev &&
           st.st_ino == id->ino;
}

void ownfile_close(int *fd, const struct ownfile_id *id)
{
    if (is_it(*fd, id))
        (void)close(*fd);
    *fd = -1;
}

int ownfile_check(int *fd, const struct ownfile_id *id, const char *path)
{
    if (is_it(*fd, id))
        return 0;
    const int again = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (again < 0)
        return -errno;
    if (!is_it(again, id)) {
        (void)close(again);
        return -ESTALE;
    }
    *fd = move_up(again); /* the old number is somebody else's: leave it */
    return 0;
}

void ownfile_exe(char *ret_name, size_t size)
{
    char exe[1024];
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0)
        return;
    exe[n] = '\0';
    const char *slash = strrchr(exe, '/');
    snprintf(ret_name, size, "%s", slash ? slash + 1 : exe);
}
