/* git.c: which commit a directory stands at, read from git's own files.
 *
 *     .git/HEAD            "ref: refs/heads/main" or a commit
 *     .git/refs/heads/main a commit, when the ref is loose
 *     .git/packed-refs     "<commit> refs/heads/main" lines otherwise
 *     .git                 a file "gitdir: PATH" in worktrees and submodules;
 *     PATH/commondir       then names the directory that holds the refs
 *
 * All of it is somebody else's input: sizes are bounded, a commit must be hex, a ref
 * must stay below refs/.
 */
#include "trace/git.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/files.h"

enum { SMALL_FILE = 4096, PACKED_MAX = 64 << 20, MAX_PARENTS = 128 };

/* First line of a small file, without its newline; false when unreadable. */
static bool read_line(const char *dir, const char *name, struct buf *ret_line)
{
    struct buf path = BUF_INIT;
    path_join(&path, dir, name);
    buf_clear(ret_line);
    const bool good = path.error == 0 &&
                      file_read_all(path.data, SMALL_FILE, ret_line) == 0;
    if (good)
        buf_truncate(ret_line, strcspn(ret_line->data, "\r\n"));
    buf_release(&path);
    return good;
}

static bool is_commit(const char *text, size_t len)
{
    return (len == 40 || len == 64) && strspn(text, "0123456789abcdef") >= len;
}

static bool take_commit(const char *text, size_t len, struct git_state *state)
{
    if (!is_commit(text, len))
        return false;
    (void)snprintf(state->commit, sizeof state->commit, "%.*s", (int)len, text);
    return true;
}

static bool is_safe_ref(const char *ref)
{
    return strncmp(ref, "refs/", 5) == 0 && !strstr(ref, "..");
}

/* Joins, and resolves relative to `dir` where git does. */
static void join_into(struct buf *out, const char *dir, const char *path)
{
    struct buf joined = BUF_INIT;
    path_join(&joined, dir, path);
    buf_clear(out);
    buf_puts(out, joined.data);
    buf_release(&joined);
}

/* Finds the git directory of `start` or of a parent. */
static bool find_git_dir(const char *start, struct buf *ret_dir)
{
    struct buf dir = BUF_INIT, dot_git = BUF_INIT, line = BUF_INIT;
    bool found = false;
    buf_puts(&dir, start);
    for (int i = 0; i < MAX_PARENTS && !found; i++) {
        struct stat st;
        join_into(&dot_git, dir.data, ".git");
        if (stat(dot_git.data, &st) == 0) {
            if (S_ISDIR(st.st_mode)) {
                join_into(ret_dir, dir.data, ".git");
                found = true;
            } else if (read_line(dir.data, ".git", &line) &&
                       strncmp(line.data, "gitdir: ", 8) == 0) {
                join_into(ret_dir, dir.data, line.data + 8);
                found = true;
            }
        }
        if (strcmp(dir.data, "/") == 0 || !strchr(dir.data, '/'))
            break;
        struct buf parent = BUF_INIT;
        path_parent(&parent, dir.data);
        buf_clear(&dir);
        buf_puts(&dir, parent.data);
        buf_release(&parent);
    }
    buf_release(&dir);
    buf_release(&dot_git);
    buf_release(&line);
    return found;
}

static bool find_packed(const char *dir, const char *ref, struct git_state *state)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    bool found = false;
    path_join(&path, dir, "packed-refs");
    if (path.error == 0 && file_read_all(path.data, PACKED_MAX, &text) == 0) {
        const size_t len = strlen(ref);
        for (const char *at = strstr(text.data, ref); at && !found;
             at = strstr(at + len, ref)) {
            const char *line = at;
            while (line > text.data && line[-1] != '\n')
                line--;
            const bool whole = (at[len] == '\n' || at[len] == '\0') && at > line &&
                               at[-1] == ' ';
            found = whole && take_commit(line, (size_t)(at - 1 - line), state);
        }
    }
    buf_release(&path);
    buf_release(&text);
    return found;
}

/* A ref may name another; five of them are more than anybody has. */
static void resolve_ref(const char *git_dir, const char *common_dir, const char *ref,
                        struct git_state *state)
{
    struct buf line = BUF_INIT, name = BUF_INIT;
    buf_puts(&name, ref);
    for (int i = 0; i < 5 && is_safe_ref(name.data); i++) {
        if (!read_line(git_dir, name.data, &line) &&
            !read_line(common_dir, name.data, &line)) {
            (void)find_packed(common_dir, name.data, state);
            break;
        }
        if (strncmp(line.data, "ref: ", 5) != 0) {
            (void)take_commit(line.data, line.len, state);
            break;
        }
        buf_clear(&name);
        buf_puts(&name, line.data + 5);
    }
    buf_release(&line);
    buf_release(&name);
}

bool git_read(const char *dir, struct git_state *ret_state)
{
    struct buf git_dir = BUF_INIT, common_dir = BUF_INIT, line = BUF_INIT;
    struct git_state state = { 0 };
    bool known = false;
    if (!find_git_dir(dir, &git_dir))
        goto done;
    if (read_line(git_dir.data, "commondir", &line))
        join_into(&common_dir, git_dir.data, line.data);
    else
        buf_puts(&common_dir, git_dir.data);

    if (!read_line(git_dir.data, "HEAD", &line))
        goto done;
    if (strcmp(line.data, "ref: refs/heads/.invalid") == 0)
        goto done; /* the refs are in a reftable, which we do not read */
    if (strncmp(line.data, "ref: ", 5) == 0 && is_safe_ref(line.data + 5)) {
        known = true;
        if (strncmp(line.data + 5, "refs/heads/", 11) == 0)
            (void)snprintf(state.branch, sizeof state.branch, "%s", line.data + 16);
        resolve_ref(git_dir.data, common_dir.data, line.data + 5, &state);
    } else {
        known = take_commit(line.data, line.len, &state);
    }
    if (known)
        *ret_state = state;
done:
    buf_release(&git_dir);
    buf_release(&common_dir);
    buf_release(&line);
    return known;
}
