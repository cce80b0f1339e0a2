/* rundir.c: make the directory of a run. */
#include "launch/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"

/* Uniqueness is proved by mkdir; the number only has to be likely. */
static void new_id(char ret_id[RUN_ID_LEN])
{
    uint32_t bits;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits) {
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        bits = (uint32_t)now.tv_nsec * 2654435761u ^ (uint32_t)getpid();
    }
    (void)snprintf(ret_id, RUN_ID_LEN, "%08x", bits);
}

static int make_private(const char *path)
{
    if (mkdir(path, 0700) < 0)
        return -errno;
    return chmod(path, 0700) < 0 ? -errno : 0;
}

static int is_empty(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return -errno;
    int rc = 0;
    for (const struct dirent *e; rc == 0 && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = -ENOTEMPTY;
    (void)closedir(dir);
    return rc;
}

static int make_output(const char *output, struct buf *ret_path, bool *ret_created)
{
    struct buf parent = BUF_INIT;
    buf_puts(ret_path, output);
    while (ret_path->len > 1 && ret_path->data[ret_path->len - 1] == '/')
        buf_truncate(ret_path, ret_path->len - 1);
    path_parent(&parent, ret_path->data);
    int rc = parent.error ? parent.error : dir_make(parent.data, 0777);
    if (rc == 0)
        rc = make_private(ret_path->data);
    *ret_created = rc == 0;
    if (rc == -EEXIST)
        rc = is_empty(ret_path->data);
    buf_release(&parent);
    return rc;
}

static int make_in_store(const char *sonde_dir, char ret_id[RUN_ID_LEN],
                         struct buf *ret_path)
{
    struct buf runs = BUF_INIT;
    path_join(&runs, sonde_dir, "runs");
    const mode_t old = umask(077);
    int rc = runs.error ? runs.error : dir_make(runs.data, 0700);
    (void)umask(old);
    for (int tries = 0; rc == 0 && tries < 100; tries++) {
        new_id(ret_id);
        buf_clear(ret_path);
        path_join(ret_path, runs.data, ret_id);
        rc = ret_path->error ? ret_path->error : make_private(ret_path->data);
        if (rc == 0)
            break;
        if (rc == -EEXIST && tries < 99)
            rc = 0;
    }
    buf_release(&runs);
    return rc;
}

int rundir_create(const char *sonde_dir, const char *output, struct rundir *ret_dir)
{
    struct rundir dir = { .created = true };
    struct buf path = BUF_INIT;
    int rc;
    if (output) {
        new_id(dir.id);
        rc = make_output(output, &path, &dir.created);
    } else {
        rc = make_in_store(sonde_dir, dir.id, &path);
    }
    if (rc == 0) {
        dir.path = realpath(path.data, NULL);
        if (dir.path)
            *ret_dir = dir;
        else
            rc = -errno;
    }
    buf_release(&path);
    return rc;
}

static void empty_directory(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (const struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        struct buf entry = BUF_INIT;
        path_join(&entry, path, e->d_name);
        if (entry.error == 0)
            (void)file_remove_tree(entry.data);
        buf_release(&entry);
    }
    (void)closedir(dir);
}

void rundir_discard(struct rundir *dir)
{
    if (!dir->path)
        return;
    if (dir->created)
        (void)file_remove_tree(dir->path);
    else
        empty_directory(dir->path);
    rundir_release(dir);
}

void rundir_release(struct rundir *dir)
{
    free(dir->path);
    dir->path = NULL;
}

bool rundir_inside_run(void)
{
    const char *run = getenv("SONDE_RUN");
    if (!run || !*run)
        return false;
    struct buf path = BUF_INIT;
    struct stat st;
    path_join(&path, run, "control.sonde");
    const bool inside = path.error == 0 && stat(path.data, &st) == 0 &&
                        S_ISREG(st.st_mode);
    buf_release(&path);
    return inside;
}
