#include "trace/git.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "unit.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static char top[64];

static void put(const char *name, const char *text)
{
    struct buf path = BUF_INIT, parent = BUF_INIT;
    path_join(&path, top, name);
    path_parent(&parent, path.data);
    assert_int_equal(dir_make(parent.data, 0700), 0);
    assert_int_equal(file_write_atomic(path.data, text, strlen(text), 0600), 0);
    buf_release(&path);
    buf_release(&parent);
}

static bool look(const char *name, struct git_state *ret_state)
{
    struct buf path = BUF_INIT;
    path_join(&path, top, name);
    const bool found = git_read(path.data, ret_state);
    buf_release(&path);
    return found;
}

static int set_up(void **state)
{
    (void)state;
    return unit_temp_dir(top) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(top);
}

static void a_loose_ref_wins_over_a_packed_one(void **state)
{
    (void)state;
    struct git_state git;
    put(".git/HEAD", "ref: refs/heads/main\n");
    put(".git/packed-refs", "# pack-refs\n" A " refs/heads/main\n");
    assert_true(look("", &git));
    assert_string_equal(git.commit, A);
    assert_string_equal(git.branch, "main");
    put(".git/refs/heads/main", B "\n");
    assert_true(look("", &git));
    assert_string_equal(git.commit, B);
}

static void a_packed_name_must_match_as_a_whole(void **state)
{
    (void)state;
    struct git_state git;
    put(".git/HEAD", "ref: refs/heads/x\n");
    put(".git/packed-refs", A " refs/heads/xy\n" A " refs/remotes/refs/heads/x\n" B
                              " refs/heads/x\n^" A "\n");
    assert_true(look("", &git));
    assert_string_equal(git.commit, B);
}

static void a_worktree_finds_refs_in_the_common_directory(void **state)
{
    (void)state;
    struct git_state git;
    put("tree/.git", "gitdir: ../repo/.git/worktrees/tree\n");
    put("repo/.git/worktrees/tree/HEAD", "ref: refs/heads/feature/x\n");
    put("repo/.git/worktrees/tree/commondir", "../..\n");
    put("repo/.git/refs/heads/feature/x", A "\n");
    put("tree/src/deep/file", "");
    assert_true(look("tree/src/deep", &git));
    assert_string_equal(git.commit, A);
    assert_string_equal(git.branch, "feature/x");
}

static void a_detached_head_has_no_branch(void **state)
{
    (void)state;
    struct git_state git;
    put(".git/HEAD", A "\n");
    assert_true(look("", &git));
    assert_string_equal(git.commit, A);
    assert_string_equal(git.branch, "");
}

static void before_the_first_commit_there_is_a_branch_only(void **state)
{
    (void)state;
    struct git_state git;
    put(".git/HEAD", "ref: refs/heads/main\n");
    assert_true(look("", &git));
    assert_string_equal(git.commit, "");
    assert_string_equal(git.branch, "main");
}

static void hostile_files_are_not_followed(void **state)
{
    (void)state;
    struct git_state git;
    put("secret", A "\n");
    put(".git/HEAD", "ref: ../secret\n");
    assert_false(look("", &git));
    put(".git/HEAD", "ref: refs/../../secret\n");
    assert_false(look("", &git));
    put(".git/HEAD", "ref: refs/heads/a\n");
    put(".git/refs/heads/a", "ref: refs/heads/a\n"); /* a circle ends */
    assert_true(look("", &git));
    assert_string_equal(git.commit, "");
    put(".git/refs/heads/a", "not a commit\n");
    assert_true(look("", &git));
    assert_string_equal(git.commit, "");
    put(".git/HEAD", "");
    assert_false(look("", &git));
    put(".git/HEAD", "ref: refs/heads/.invalid\n"); /* reftable */
    assert_false(look("", &git));
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(a_loose_ref_wins_over_a_packed_one),
        WITH_DIR(a_packed_name_must_match_as_a_whole),
        WITH_DIR(a_worktree_finds_refs_in_the_common_directory),
        WITH_DIR(a_detached_head_has_no_branch),
        WITH_DIR(before_the_first_commit_there_is_a_branch_only),
        WITH_DIR(hostile_files_are_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
