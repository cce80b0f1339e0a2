/* sharedtree.c: see sharedtree.h. */
#include "cli/sharedtree.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"

enum { FILE_MOST = 1 << 16 };

/* Whether `text` names the tree, or something in it; not one that only begins alike. */
static bool names_tree(const char *text, const char *top)
{
    const size_t len = strlen(top);
    for (const char *at = text; (at = strstr(at, top)); at += len)
        if (strchr("/:;\"' \n", at[len])) /* or the end */
            return true;
    return false;
}

static void say(struct buf *out, const char *what, const char *why)
{
    buf_printf(out, "%s%s %s: both sides may use this tree's", out->len ? "; " : "",
               what, why);
}

/* A virtual environment within the tree is an environment, not its code. */
static bool is_environment(const char *entry)
{
    const char *root = getenv("VIRTUAL_ENV");
    return root && root[0] && strncmp(entry, root, strlen(root)) == 0;
}

static bool entry_names_tree(const char *value, const char *top)
{
    bool found = false;
    for (const char *at = value; *at && !found;) {
        const size_t len = strcspn(at, ":");
        struct buf entry = BUF_INIT;
        buf_append(&entry, at, len);
        found = len && !entry.error && !is_environment(entry.data) &&
                names_tree(entry.data, top);
        buf_release(&entry);
        at += len + (at[len] == ':');
    }
    return found;
}

static void look_at_variables(const char *top, struct buf *out)
{
    static const char *const names[] = { "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD",
                                         "PATH" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && entry_names_tree(value, top))
            say(out, names[i], "names this tree");
    }
}

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), tail = strlen(end);
    return len >= tail && strcmp(text + len - tail, end) == 0;
}

/* What pip leaves in site-packages for a package that stays where it is. */
static bool is_link(const char *name)
{
    return ends_with(name, ".pth") || ends_with(name, ".egg-link") ||
           strncmp(name, "__editable__", 12) == 0;
}

static void look_at_packages(const char *place, const char *top, struct buf *out)
{
    DIR *dir = opendir(place);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        struct buf path = BUF_INIT, text = BUF_INIT;
        path_join(&path, place, e->d_name);
        if (is_link(e->d_name) && path.error == 0 &&
            file_read_all(path.data, FILE_MOST, &text) == 0 && text.len &&
            names_tree(text.data, top))
            say(out, e->d_name, "installs a package from this tree in place");
        buf_release(&path);
        buf_release(&text);
    }
    if (dir)
        (void)closedir(dir);
}

/* Of the environment that is active, where pip installs to. */
static void look_at_environment(const char *top, struct buf *out)
{
    const char *root = getenv("VIRTUAL_ENV");
    struct buf lib = BUF_INIT;
    path_join(&lib, root && root[0] ? root : "/usr/local", "lib");
    DIR *dir = lib.error ? NULL : opendir(lib.data);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        static const char *const kinds[] = { "site-packages", "dist-packages" };
        for (size_t i = 0; i < 2 && strncmp(e->d_name, "python", 6) == 0; i++) {
            struct buf place = BUF_INIT;
            buf_printf(&place, "%s/%s/%s", lib.data, e->d_name, kinds[i]);
            if (!place.error)
                look_at_packages(place.data, top, out);
            buf_release(&place);
        }
    }
    if (dir)
        (void)closedir(dir);
    buf_release(&lib);
}

void sharedtree_words(const char *top, char *const *argv, struct buf *out)
{
    if (!top[0])
        return;
    for (size_t i = 0; argv[i]; i++)
        if (names_tree(argv[i], top)) {
            buf_printf(out,
                       "'%s' is named by its absolute path: both sides use that one",
                       argv[i]);
            break;
        }
    look_at_variables(top, out);
    look_at_environment(top, out);
}
