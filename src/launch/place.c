/* place.c: where the live files of a run may lie. */
#include "launch/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"

/* From statfs(2) and linux/magic.h. */
static const struct {
    uint32_t magic;
    const char *name;
    bool remote;
} known[] = {
    { 0xef53, "ext4", false },      { 0x58465342, "xfs", false },
    { 0x9123683e, "btrfs", false }, { 0x2fc12fc1, "zfs", false },
    { 0x01021994, "tmpfs", false }, { 0x794c7630, "overlay", false },
    { 0xf2f52010, "f2fs", false },  { 0xca451a4e, "bcachefs", false },
    { 0x858458f6, "ramfs", false }, { 0x6969, "nfs", true },
    { 0x65735546, "fuse", true },   { 0x01021997, "9p", true },
    { 0x0bd00bd0, "lustre", true }, { 0xff534d42, "cifs", true },
    { 0xfe534d42, "smb2", true },   { 0x517b, "smb", true },
    { 0x00c36400, "ceph", true },   { 0x47504653, "gpfs", true },
    { 0x19830326, "beegfs", true }, { 0x5346414f, "afs", true },
    { 0x786f4256, "vboxsf", true }, { 0xaad7aaea, "panfs", true },
    { 0x61756673, "aufs", false },  { 0x7461636f, "ocfs2", true },
    { 0x01161970, "gfs2", true },   { 0x73757245, "coda", true },
};

int place_of(const char *path, struct place *ret_place)
{
    struct buf at = BUF_INIT, up = BUF_INIT;
    struct statfs s = { 0 };
    int rc;
    buf_puts(&at, path);
    while ((rc = at.error                  ? at.error
                 : statfs(at.data, &s) < 0 ? -errno
                                           : 0) == -ENOENT &&
           strcmp(at.data, "/") != 0 && strcmp(at.data, ".") != 0) {
        buf_clear(&up);
        path_parent(&up, at.data);
        buf_clear(&at);
        buf_puts(&at, up.data);
    }
    buf_release(&at);
    buf_release(&up);
    if (rc < 0)
        return rc;
    struct place p = { .free_bytes = (uint64_t)s.f_bavail * (uint64_t)s.f_bsize };
    (void)snprintf(p.type, sizeof p.type, "%#lx", (unsigned long)(uint32_t)s.f_type);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].magic == (uint32_t)s.f_type) {
            (void)snprintf(p.type, sizeof p.type, "%s", known[i].name);
            p.remote = known[i].remote;
        }
    *ret_place = p;
    return 0;
}

bool place_wants_scratch(const char *dir)
{
    const char *wish = getenv("SONDE_PLACE");
    struct place place;
    if (wish && strcmp(wish, "scratch") == 0)
        return true;
    if (wish && strcmp(wish, "direct") == 0)
        return false;
    return place_of(dir, &place) == 0 && place.remote;
}

static const char *scratch_root(void)
{
    static const char *const names[] = { "SONDE_SCRATCH", "XDG_RUNTIME_DIR", "TMPDIR" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        struct place place;
        if (value && value[0] == '/' && place_of(value, &place) == 0 &&
            (i == 0 || !place.remote) && access(value, W_OK | X_OK) == 0)
            return value;
    }
    return "/tmp";
}

int place_make_scratch(const char *id, char *ret_path, size_t len)
{
    const int n = snprintf(ret_path, len, "%s/sonde-%u-%s", scratch_root(),
                           (unsigned)getuid(), id);
    if (n < 0 || (size_t)n >= len)
        return -ENAMETOOLONG;
    /* Fails when it exists: nobody prepares a directory for us in /tmp. */
    if (mkdir(ret_path, 0700) < 0)
        return -errno;
    return chmod(ret_path, 0700) < 0 ? -errno : 0;
}

bool place_is_scratch(const char *path, const char *id)
{
    char name[64];
    struct stat st = { 0 };
    (void)snprintf(name, sizeof name, "sonde-%u-%s", (unsigned)getuid(), id);
    return path[0] == '/' && strlen(id) == 8 && strcmp(path_base(path), name) == 0 &&
           lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() &&
           (st.st_mode & 077) == 0;
}

/* ---- Home ------------------------------------------------------------------------------- */

static int copy_bytes(int from, int to)
{
    static char block[1 << 18];
    off_t size = 0;
    for (;;) {
        /* Traces have holes; network disks need not store them. */
        const off_t data = lseek(from, size, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return 0;
        if (data >= 0)
            size = data;
        const ssize_t n = pread(from, block, sizeof block, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        const int rc = fd_pwrite_full(to, block, (size_t)n, size);
        if (rc < 0)
            return rc;
        size += n;
    }
}

/* Beside its place first: nothing arrives half. */
static int copy_file(const char *from, const char *to)
{
    struct buf beside = BUF_INIT;
    struct stat st = { 0 };
    buf_printf(&beside, "%s.coming", to);
    int rc = beside.error;
    const int source = rc < 0 ? -1 : open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const int target = source < 0
                           ? -1
                           : open(beside.data,
                                  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                                  0600);
    if (source < 0 || target < 0 || fstat(source, &st) < 0)
        rc = rc < 0 ? rc : -errno;
    if (rc == 0)
        rc = copy_bytes(source, target);
    if (rc == 0 && (ftruncate(target, st.st_size) < 0 || fsync(target) < 0))
        rc = -errno;
    if (source >= 0)
        (void)close(source);
    if (target >= 0 && close(target) < 0 && rc == 0)
        rc = -errno; /* NFS tells of a full disk here */
    if (rc == 0 && rename(beside.data, to) < 0)
        rc = -errno;
    if (rc < 0 && target >= 0)
        (void)unlink(beside.data);
    buf_release(&beside);
    return rc;
}

int place_bring_home(const char *scratch, const char *home)
{
    DIR *dir = opendir(scratch);
    int rc = dir ? 0 : -errno;
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        struct buf from = BUF_INIT, to = BUF_INIT;
        path_join(&from, scratch, e->d_name);
        path_join(&to, home, e->d_name);
        const int one = from.error ? from.error
                        : to.error ? to.error
                                   : copy_file(from.data, to.data);
        if (rc == 0)
            rc = one;
        buf_release(&from);
        buf_release(&to);
    }
    if (dir)
        (void)closedir(dir);
    return rc < 0 ? rc : file_remove_tree(scratch);
}
