/* gitref.c: another commit of this repository, checked out beside it for a while.
 *
 * A worktree: git's own way to have two commits at once. The one we stand in is not
 * touched. Hooks and the like of the repository are the user's own, as is the build
 * command, which a shell reads.
 */
#include "cli/gitref.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "cli/cli.h"
#include "cli/leftovers.h"
#include "launch/child.h"

static const uint64_t GRACE_NS = UINT64_C(2) * 1000000000;

/* In the new process. Signals stay blocked when nobody may disturb it. */
static void become(char *const *argv, const char *dir, int out, bool quiet,
                   bool undisturbed)
{
    sigset_t none;
    (void)sigemptyset(&none);
    if (!undisturbed)
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(out, STDOUT_FILENO) < 0 || (dir && chdir(dir) < 0))
        _exit(127);
    const int null = open("/dev/null", O_RDWR);
    if (null >= 0 && quiet)
        (void)dup2(null, STDERR_FILENO);
    (void)execvp(argv[0], argv);
    _exit(127);
}

/* Runs a program and waits. Its output goes to `out`, or to stderr when that is NULL.
 * The exit status, or −1. */
static int run(char *const *argv, const char *dir, struct buf *out)
{
    int pipes[2] = { -1, -1 };
    if (out && pipe2(pipes, O_CLOEXEC) < 0)
        return -1;
    const pid_t pid = fork();
    if (pid == 0)
        become(argv, dir, out ? pipes[1] : STDERR_FILENO, out != NULL, true);
    if (out)
        (void)close(pipes[1]);
    char block[4096];
    ssize_t n;
    while (out && (n = read(pipes[0], block, sizeof block)) != 0)
        if (n > 0)
            buf_append(out, block, (size_t)n);
        else if (errno != EINTR)
            break;
    if (out)
        (void)close(pipes[0]);
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void trim(struct buf *text)
{
    while (text->len &&
           (text->data[text->len - 1] == '\n' || text->data[text->len - 1] == '\r'))
        buf_truncate(text, text->len - 1);
}

static bool resolve(const char *ref, struct buf *ret_commit)
{
    struct buf name = BUF_INIT;
    buf_printf(&name, "%s^{commit}", ref);
    char *argv[] = { "git",     "rev-parse", "--verify", "--quiet", "--end-of-options",
                     name.data, NULL };
    const bool found = run(argv, NULL, ret_commit) == 0;
    trim(ret_commit);
    buf_release(&name);
    return found && ret_commit->len >= 40 && ret_commit->len <= 64;
}

bool gitref_is(const char *ref)
{
    struct buf commit = BUF_INIT;
    const bool is = ref[0] && ref[0] != '-' && resolve(ref, &commit);
    buf_release(&commit);
    return is;
}

static bool make_place(struct gitref *g)
{
    const char *tmp = getenv("TMPDIR");
    char *name = NULL;
    if (asprintf(&name, "%s/sonde-check-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp") <
        0)
        return false;
    const bool made = mkdtemp(name) != NULL;
    if (made)
        buf_puts(&g->place, name);
    free(name);
    return made;
}

static bool check_out(struct gitref *g)
{
    struct buf prefix = BUF_INIT;
    path_join(&g->tree, g->place.data, "tree");
    char *add[] = { "git",     "worktree",   "add",     "--detach",
                    "--quiet", g->tree.data, g->commit, NULL };
    char *where[] = { "git", "rev-parse", "--show-prefix", NULL };
    char *top[] = { "git", "rev-parse", "--show-toplevel", NULL };
    (void)run(top, NULL, &g->top);
    trim(&g->top);
    const bool good = run(add, NULL, NULL) == 0;
    if (good)
        (void)run(where, NULL, &prefix);
    trim(&prefix);
    path_join(&g->cwd, g->tree.data, prefix.len ? prefix.data : ".");
    buf_release(&prefix);
    return good;
}

/* The user's own program: it gets the signals that come, and may take its time. */
static bool build_there(struct gitref *g, const char *ref, const char *build)
{
    char *argv[] = { "/bin/sh", "-c", (char *)(uintptr_t)build, NULL };
    struct child child = { .pid = fork() };
    if (child.pid == 0)
        become(argv, g->cwd.data, STDERR_FILENO, false, false);
    while (child.pid > 0 && !child_wait(&child, CHILD_FOREVER))
        ;
    if (child.interrupted) {
        g->ended_by = child.asked.signal ? child.asked.signal : SIGINT;
        leftovers_end(GRACE_NS);
        return false;
    }
    const bool exited = child.pid > 0 && WIFEXITED(child.status);
    if (exited && WEXITSTATUS(child.status) == 0)
        return true;
    cli_error("--build failed with status %d in the tree of '%s'",
              exited ? WEXITSTATUS(child.status) : -1, ref);
    return false;
}

bool gitref_open(struct gitref *g, const char *ref, const char *build)
{
    struct buf commit = BUF_INIT;
    *g = (struct gitref){
        .place = BUF_INIT, .tree = BUF_INIT, .cwd = BUF_INIT, .top = BUF_INIT
    };
    bool good = resolve(ref, &commit);
    if (good)
        (void)snprintf(g->commit, sizeof g->commit, "%s", commit.data);
    else
        cli_error("'%s' is no commit here", ref);
    buf_release(&commit);
    if (good && (!make_place(g) || !check_out(g))) {
        cli_error("cannot check out '%s' beside this tree (see git's message)", ref);
        good = false;
    }
    return good && (!build || build_there(g, ref, build));
}

void gitref_release(struct gitref *g)
{
    if (g->tree.len) {
        struct buf out = BUF_INIT;
        char *argv[] = { "git", "worktree", "remove", "--force", g->tree.data, NULL };
        const int status = run(argv, NULL, &out);
        if (g->place.len)
            (void)file_remove_tree(g->place.data);
        char *prune[] = { "git", "worktree", "prune", NULL };
        if (status != 0) /* what is gone is forgotten at least */
            (void)run(prune, NULL, &out);
        buf_release(&out);
    }
    if (g->place.len)
        (void)file_remove_tree(g->place.data);
    buf_release(&g->place);
    buf_release(&g->tree);
    buf_release(&g->cwd);
    buf_release(&g->top);
}
