// link: none
/* nfs_everywhere: a library before others in which every file system is an NFS. */
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { NFS = 0x6969 }; /* linux/magic.h */

int statfs(const char *path, struct statfs *ret)
{
    const int rc = (int)syscall(SYS_statfs, path, ret);
    if (rc == 0)
        ret->f_type = NFS;
    return rc;
}

int statfs64(const char *path, struct statfs64 *ret)
{
    const int rc = (int)syscall(SYS_statfs, path, ret);
    if (rc == 0)
        ret->f_type = NFS;
    return rc;
}
