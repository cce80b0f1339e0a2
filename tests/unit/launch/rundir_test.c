#include "launch/rundir.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "unit.h"

static char top[64];

static int set_up(void **state)
{
    (void)state;
    return unit_temp_dir(top) && chdir(top) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return chdir("/") == 0 ? file_remove_tree(top) : -1;
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void runs_get_distinct_ids_and_private_directories(void **state)
{
    (void)state;
    struct rundir a, b;
    const mode_t old = umask(0777);
    assert_int_equal(rundir_create("store", NULL, &a), 0);
    assert_int_equal(rundir_create("store", NULL, &b), 0);
    (void)umask(old);
    assert_string_not_equal(a.id, b.id);
    assert_int_equal(strlen(a.id), 8);
    assert_int_equal(strspn(a.id, "0123456789abcdef"), 8);
    assert_string_equal(path_base(a.path), a.id);
    assert_int_equal(a.path[0], '/');
    assert_int_equal(mode_of(a.path), 0700);
    assert_int_equal(mode_of("store/runs"), 0700);
    rundir_release(&a);
    rundir_release(&b);
}

static void an_output_may_be_new_or_empty_but_not_used(void **state)
{
    (void)state;
    struct rundir dir;
    assert_int_equal(rundir_create("store", "a/b//", &dir), 0);
    assert_true(dir.created);
    rundir_release(&dir);
    assert_int_equal(rundir_create("store", "a/b", &dir), 0);
    assert_false(dir.created);
    rundir_release(&dir);
    assert_int_equal(file_write_atomic("a/b/x", "", 0, 0600), 0);
    assert_int_equal(rundir_create("store", "a/b", &dir), -ENOTEMPTY);
    assert_true(rundir_create("store", "a/b/x", &dir) < 0);
    assert_true(rundir_create("store", "a/b/x/y", &dir) < 0);
    assert_false(path_is_dir("store"));
}

static void discarding_removes_only_what_was_made(void **state)
{
    (void)state;
    struct rundir made, found;
    assert_int_equal(rundir_create("store", NULL, &made), 0);
    char *path = strdup(made.path);
    assert_int_equal(file_write_atomic("store/x", "", 0, 0600), 0);
    rundir_discard(&made);
    assert_false(path_is_dir(path));
    assert_true(path_is_dir("store/runs"));
    free(path);

    assert_int_equal(mkdir("mine", 0755), 0);
    assert_int_equal(rundir_create("store", "mine", &found), 0);
    assert_int_equal(file_write_atomic("mine/trace", "", 0, 0600), 0);
    rundir_discard(&found);
    assert_true(path_is_dir("mine"));
    assert_int_equal(rmdir("mine"), 0);
}

static void inside_a_run_means_a_directory_with_a_control_file(void **state)
{
    (void)state;
    (void)unsetenv("SONDE_RUN");
    assert_false(rundir_inside_run());
    (void)setenv("SONDE_RUN", "", 1);
    assert_false(rundir_inside_run());
    (void)setenv("SONDE_RUN", "run", 1);
    assert_false(rundir_inside_run());
    assert_int_equal(mkdir("run", 0700), 0);
    assert_false(rundir_inside_run());
    assert_int_equal(file_write_atomic("run/control.sonde", "", 0, 0600), 0);
    assert_true(rundir_inside_run());
    (void)unsetenv("SONDE_RUN");
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(runs_get_distinct_ids_and_private_directories),
        WITH_DIR(an_output_may_be_new_or_empty_but_not_used),
        WITH_DIR(discarding_removes_only_what_was_made),
        WITH_DIR(inside_a_run_means_a_directory_with_a_control_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
