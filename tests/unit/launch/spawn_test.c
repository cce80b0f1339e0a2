#include "launch/spawn.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/child.h"
#include "unit.h"

static struct signals found;

static int run_program(char *const *argv, struct child *ret_child, bool *ret_no_exec)
{
    const struct spawn_options options = {
        .argv = argv,
        .signals = &found,
        .null_stdin = true,
    };
    *ret_child = (struct child){ 0 };
    const int rc = spawn(&options, &ret_child->pid, ret_no_exec);
    while (rc == 0 && !child_wait(ret_child, CHILD_FOREVER))
        ;
    return rc;
}

static void a_program_runs_and_its_status_comes_back(void **state)
{
    (void)state;
    struct child child;
    bool no_exec;
    char *argv[] = { "sh", "-c", "exit 42", NULL };
    assert_int_equal(run_program(argv, &child, &no_exec), 0);
    assert_int_equal(WEXITSTATUS(child.status), 42);
    assert_true(child.usage.ru_maxrss > 0);
    assert_false(child.interrupted);
}

static void a_program_that_does_not_exist_gives_the_childs_errno(void **state)
{
    (void)state;
    struct child child;
    bool no_exec = false;
    char *missing[] = { "/no/such/program", NULL };
    assert_int_equal(run_program(missing, &child, &no_exec), -ENOENT);
    assert_true(no_exec);
    char *directory[] = { "/", NULL };
    assert_int_equal(run_program(directory, &child, &no_exec), -EACCES);
    assert_true(no_exec);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left behind */
    assert_int_equal(errno, ECHILD);
}

static void an_empty_input_ends_a_reader(void **state)
{
    (void)state;
    struct child child;
    bool no_exec;
    char *argv[] = { "cat", NULL };
    assert_int_equal(run_program(argv, &child, &no_exec), 0);
    assert_int_equal(child.status, 0);
}

static void waiting_has_a_limit(void **state)
{
    (void)state;
    char *argv[] = { "sleep", "30", NULL };
    const struct spawn_options options = { .argv = argv, .signals = &found };
    struct child child = { 0 };
    bool no_exec;
    assert_int_equal(spawn(&options, &child.pid, &no_exec), 0);
    assert_false(child_wait(&child, 1000));
    (void)kill(getpid(), SIGTERM); /* taken, and passed on */
    for (int i = 0; i < 100 && !child_wait(&child, 100000); i++)
        ;
    assert_true(child.ended && child.interrupted);
    assert_int_equal(WTERMSIG(child.status), SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_runs_and_its_status_comes_back),
        cmocka_unit_test(a_program_that_does_not_exist_gives_the_childs_errno),
        cmocka_unit_test(an_empty_input_ends_a_reader),
        cmocka_unit_test(waiting_has_a_limit),
    };
    signals_take(&found);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
