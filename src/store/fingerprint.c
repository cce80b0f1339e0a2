/* fingerprint.c: has the program changed since? */
#include "store/fingerprint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/strmap.h"

enum { MOST_FILES = 5000, MOST_DEPTH = 12 };
static const uint64_t MOST_BYTES = UINT64_C(512) << 20;

struct looking {
    struct strmap files;    /* real paths */
    struct strmap packages; /* "numpy-2.1.0.dist-info": what a Python has installed */
    int64_t newest_ns;      /* when a file was last written to */
    uint64_t bytes;
    bool too_much;
};

static bool is_source(const char *name)
{
    static const char *const ends[] = { ".py",   ".pyx",  ".pyi",  ".c",   ".h",
                                        ".cc",   ".cpp",  ".hpp",  ".cu",  ".cuh",
                                        ".rs",   ".go",   ".js",   ".ts",  ".java",
                                        ".jl",   ".lua",  ".sh",   ".so",  ".yml",
                                        ".yaml", ".toml", ".json", ".cfg", ".ini" };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
        if (strcmp(dot, ends[i]) == 0)
            return true;
    return false;
}

/* What runs leave behind is no source. */
static bool is_passed_over(const char *name)
{
    static const char *const names[] = { "__pycache__", "node_modules", "site-packages",
                                         "mlruns", "wandb" };
    if (name[0] == '.')
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static int add_file(struct looking *l, const char *path)
{
    struct stat st;
    char *real = realpath(path, NULL);
    int rc = 0;
    if (real && stat(real, &st) == 0 && S_ISREG(st.st_mode)) {
        bool added;
        if (!strmap_enter(&l->files, real, strlen(real), &added))
            rc = -ENOMEM;
        else if (added) {
            const int64_t written = (int64_t)st.st_mtim.tv_sec * 1000000000 +
                                    st.st_mtim.tv_nsec;
            l->bytes += (uint64_t)st.st_size;
            l->newest_ns = written > l->newest_ns ? written : l->newest_ns;
        }
        l->too_much |= l->files.count > MOST_FILES || l->bytes > MOST_BYTES;
    }
    free(real);
    return rc;
}

static int add_tree(struct looking *l, const char *path, unsigned depth)
{
    int rc = 0;
    DIR *dir = depth > MOST_DEPTH || l->too_much ? NULL : opendir(path);
    if (!dir)
        return 0;
    for (const struct dirent *e; rc == 0 && !l->too_much && (e = readdir(dir));) {
        struct stat st;
        struct buf below = BUF_INIT;
        if (is_passed_over(e->d_name) ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        path_join(&below, path, e->d_name);
        if (below.error)
            rc = below.error;
        else if (S_ISDIR(st.st_mode))
            rc = add_tree(l, below.data, depth + 1);
        else if (is_source(e->d_name))
            rc = add_file(l, below.data);
        buf_release(&below);
    }
    (void)closedir(dir);
    return rc;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), tail = strlen(end);
    return len >= tail && strcmp(text + len - tail, end) == 0;
}

static int add_package_names(struct looking *l, const char *path)
{
    int rc = 0;
    bool added;
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && rc == 0 && (e = readdir(dir));)
        if ((ends_with(e->d_name, ".dist-info") || ends_with(e->d_name, ".egg-info")) &&
            !strmap_enter(&l->packages, e->d_name, strlen(e->d_name), &added))
            rc = -ENOMEM;
    if (dir)
        (void)closedir(dir);
    return rc;
}

/* A library that was upgraded is a change too, though no source here tells of it. Names
 * and versions of what bin/python finds in lib/python*; the files would be too many. */
static int add_packages(struct looking *l, const char *program)
{
    struct buf bin = BUF_INIT, lib = BUF_INIT;
    int rc = 0;
    path_parent(&bin, program);
    path_join(&lib, bin.data, "../lib");
    DIR *dir = strncmp(path_base(program), "python", 6) == 0 && !lib.error
                   ? opendir(lib.data)
                   : NULL;
    for (const struct dirent *e; dir && rc == 0 && (e = readdir(dir));) {
        static const char *const kinds[] = { "site-packages", "dist-packages" };
        for (size_t i = 0; i < 2 && strncmp(e->d_name, "python", 6) == 0; i++) {
            struct buf path = BUF_INIT;
            buf_printf(&path, "%s/%s/%s", lib.data, e->d_name, kinds[i]);
            rc = path.error ? path.error : add_package_names(l, path.data);
            buf_release(&path);
        }
    }
    if (dir)
        (void)closedir(dir);
    buf_release(&bin);
    buf_release(&lib);
    return rc;
}

static int add_executable(struct looking *l, const char *path)
{
    const int rc = add_file(l, path);
    return rc < 0 ? rc : add_packages(l, path);
}

/* The first word is looked up as execvp does. */
static int add_program(struct looking *l, const char *name, const char *cwd)
{
    struct buf path = BUF_INIT;
    int rc = 0;
    if (strchr(name, '/')) {
        path_join(&path, cwd, name);
        rc = path.error ? path.error : add_executable(l, path.data);
        buf_release(&path);
        return rc;
    }
    for (const char *p = getenv("PATH"); p && *p;) {
        const size_t len = strcspn(p, ":");
        buf_clear(&path);
        buf_append(&path, p, len);
        buf_printf(&path, "/%s", name);
        if (path.error == 0 && access(path.data, X_OK) == 0) {
            rc = add_executable(l, path.data);
            break;
        }
        p += len + (p[len] == ':');
    }
    buf_release(&path);
    return rc;
}

static bool is_system_directory(const char *dir)
{
    static const char *const places[] = { "/",        "/bin",       "/usr",
                                          "/usr/bin", "/usr/local", "/usr/local/bin",
                                          "/tmp",     "/home",      "/root" };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strcmp(dir, places[i]) == 0)
            return true;
    return false;
}

static int add_word(struct looking *l, const char *word, const char *cwd)
{
    struct buf path = BUF_INIT, parent = BUF_INIT;
    struct stat st;
    path_join(&path, cwd, word);
    int rc = path.error;
    if (rc == 0 && stat(path.data, &st) == 0 && S_ISREG(st.st_mode)) {
        rc = add_file(l, path.data);
        path_parent(&parent, path.data);
        if (rc == 0 && parent.error == 0 && !is_system_directory(parent.data))
            rc = add_tree(l, parent.data, 0);
    }
    buf_release(&path);
    buf_release(&parent);
    return rc;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct hash {
    uint64_t a, b;
};

static void mix(struct hash *h, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++) {
        h->a = (h->a ^ p[i]) * UINT64_C(0x100000001b3);
        h->b = (h->b + p[i] + 1) * UINT64_C(0x9e3779b97f4a7c15);
        h->b ^= h->b >> 29;
    }
}

static int mix_file(struct hash *h, const char *path)
{
    static char block[1 << 16];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n;
    while ((n = fd_read_full(fd, block, sizeof block)) > 0)
        mix(h, block, (size_t)n);
    (void)close(fd);
    return n < 0 ? (int)n : 0;
}

/* By name, so that the order of directories does not matter. NULL: no memory. */
static const char **sorted(const struct strmap *map)
{
    const char **names = calloc(map->count ? map->count : 1, sizeof *names);
    for (size_t i = 0; names && i < map->count; i++)
        names[i] = map->entries[i].key;
    if (names)
        qsort(names, map->count, sizeof *names, by_path);
    return names;
}

static int hash_packages(const struct looking *l, struct hash *h)
{
    const char **names = sorted(&l->packages);
    for (size_t i = 0; names && i < l->packages.count; i++)
        mix(h, names[i], strlen(names[i]) + 1);
    free(names);
    return names ? 0 : -ENOMEM;
}

static int hash_all(struct looking *l, const char *cwd, struct hash *h)
{
    int rc = hash_packages(l, h);
    const size_t n = l->files.count;
    const char **paths = sorted(&l->files);
    if (!paths)
        return -ENOMEM;
    const size_t root = strlen(cwd);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        /* Below the working directory by its relative name: trees may move. */
        const bool below = strncmp(paths[i], cwd, root) == 0;
        const char *name = below ? paths[i] + root : paths[i];
        mix(h, name, strlen(name) + 1);
        rc = mix_file(h, paths[i]);
    }
    free(paths);
    return rc;
}

int fingerprint_of(char *const *command, size_t count, const char *cwd,
                   char ret_text[FINGERPRINT_LEN], int64_t *ret_newest_ns)
{
    struct looking l = { .files = STRMAP_INIT, .packages = STRMAP_INIT };
    struct hash h = { UINT64_C(0xcbf29ce484222325), 42 };
    char *real = realpath(cwd, NULL);
    const char *root = real ? real : cwd;
    int rc = count ? add_program(&l, command[0], root) : 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = add_word(&l, command[i], root);
    if (rc == 0 && !is_system_directory(root))
        rc = add_tree(&l, root, 0);
    ret_text[0] = '\0';
    if (rc == 0 && !l.too_much) {
        rc = hash_all(&l, root, &h);
        if (rc == 0)
            (void)snprintf(ret_text, FINGERPRINT_LEN, "%016llx%016llx",
                           (unsigned long long)h.a, (unsigned long long)h.b);
    }
    if (ret_newest_ns)
        *ret_newest_ns = l.newest_ns;
    strmap_release(&l.files);
    strmap_release(&l.packages);
    free(real);
    return rc == -ENOMEM ? rc : 0;
}
