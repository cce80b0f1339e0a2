/* retain.c: how many run directories are kept. */
#include "store/retain.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/parse.h"
#include "base/strmap.h"
#include "store/list.h"

void retain_defaults(struct retain_limits *ret_limits)
{
    *ret_limits = (struct retain_limits){ .runs = 50, .bytes = UINT64_C(20) << 30 };
    const char *runs = getenv("SONDE_KEEP_RUNS");
    const char *size = getenv("SONDE_KEEP_SIZE");
    if (runs)
        (void)parse_uint(runs, &ret_limits->runs);
    if (size)
        (void)parse_size(size, &ret_limits->bytes);
    if (ret_limits->runs == 0)
        ret_limits->runs = UINT64_MAX;
    if (ret_limits->bytes == 0)
        ret_limits->bytes = UINT64_MAX;
}

/* Run directories are flat. */
uint64_t directory_bytes(const char *path)
{
    uint64_t sum = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    for (const struct dirent *e; (e = readdir(dir));) {
        struct stat st;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_blocks * 512;
    }
    (void)closedir(dir);
    return sum;
}

static int protect(void *arg, const struct baseline *b)
{
    return b->run ? strmap_put(arg, b->run, strlen(b->run), 1) : 0;
}

int retain_apply(const char *sonde_dir, const struct retain_limits *limits,
                 struct store *store, bool dry,
                 void (*each)(void *arg, const char *id, uint64_t bytes), void *arg,
                 struct retain_result *ret_result)
{
    struct strmap safe = STRMAP_INIT;
    struct retain_result result = { 0 };
    struct run_list list;
    int rc = run_list_read(sonde_dir, &list);
    if (rc < 0)
        return rc;
    if (store)
        rc = store_each_baseline(store, NULL, protect, &safe);
    if (rc < 0) /* not knowing what to protect, we remove nothing */
        goto done;
    for (size_t i = 0; i < list.count; i++) { /* newest first */
        const struct run_row *row = &list.rows[i];
        const uint64_t bytes = directory_bytes(row->dir);
        uint64_t is_safe = 0;
        if (row->live || row->meta.name[0] ||
            strmap_get(&safe, row->id, strlen(row->id), &is_safe)) {
            result.protected_runs++;
            continue;
        }
        /* The newest stays however large it is: somebody just made it. */
        if (result.kept == 0 || (result.kept < limits->runs && bytes <= limits->bytes &&
                                 result.kept_bytes <= limits->bytes - bytes)) {
            result.kept++;
            result.kept_bytes += bytes;
            continue;
        }
        if (each)
            each(arg, row->id, bytes);
        result.removed++;
        result.removed_bytes += bytes;
        if (dry)
            continue;
        if (file_remove_tree(row->dir) == 0 && store)
            (void)store_forget_directory(store, row->id);
    }
    *ret_result = result;
done:
    strmap_release(&safe);
    run_list_release(&list);
    return rc;
}
