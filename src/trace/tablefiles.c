/* tablefiles.c: see tablefiles.h. */
#include "trace/tablefiles.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/files.h"

struct names {
    char **names;
    size_t count, cap;
};

static int add_name(struct names *n, const char *name)
{
    if (n->count == n->cap) {
        const size_t cap = n->cap ? n->cap * 2 : 16;
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers it is */
        char **more = realloc(n->names, cap * sizeof *more);
        if (!more)
            return -ENOMEM;
        n->names = more;
        n->cap = cap;
    }
    n->names[n->count] = strdup(name);
    return n->names[n->count] ? (n->count++, 0) : -ENOMEM;
}

/* The moment in the name has the same number of digits until the year 2286. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_names(const char *path, const char *kind, struct names *n)
{
    int rc = 0;
    DIR *dir = opendir(path);
    for (const struct dirent *e;
         dir && rc == 0 && n->count < TABLEFILES_MOST && (e = readdir(dir));)
        if (tablefile_is_name(e->d_name, kind))
            rc = add_name(n, e->d_name);
    if (dir)
        (void)closedir(dir);
    if (n->count)
        qsort(n->names, n->count, sizeof *n->names, by_name);
    return rc;
}

static void release_names(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->names[i]);
    free(n->names);
}

static int open_in(const char *dir, const char *name, struct tablefile **ret_file)
{
    struct buf path = BUF_INIT;
    path_join(&path, dir, name);
    const int rc = path.error ? path.error : tablefile_open(path.data, ret_file);
    buf_release(&path);
    return rc;
}

int tablefiles_each(const char *dir, const char *kind, tablefile_fn *each, void *arg)
{
    struct names n = { 0 };
    int rc = list_names(dir, kind, &n);
    for (size_t i = 0; rc == 0 && i < n.count; i++) {
        struct tablefile *file = NULL;
        const int opened = open_in(dir, n.names[i], &file);
        rc = opened == -ENOMEM ? opened : each(arg, n.names[i], file, opened);
        tablefile_free(file);
    }
    release_names(&n);
    return rc;
}

int tablefiles_newest(const char *dir, const char *kind, struct buf *ret_name,
                      struct tablefile **ret_file)
{
    struct names n = { 0 };
    int rc = list_names(dir, kind, &n);
    int opened = -ENOENT;
    for (size_t i = n.count; rc == 0 && opened < 0 && opened != -ENOMEM && i-- > 0;) {
        opened = open_in(dir, n.names[i], ret_file);
        if (opened == 0 && ret_name) {
            buf_puts(ret_name, n.names[i]);
            rc = ret_name->error;
        }
    }
    if (rc < 0 && opened == 0)
        tablefile_free(*ret_file);
    release_names(&n);
    return rc < 0 ? rc : opened;
}
