#include "demo/train.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demo/dataset.h"
#include "demo/scratch.h"

#include "unit.h"

static const struct train_options small = {
    .seed = 7, .steps = 640, .pictures = 2048, .held_out = 400
};

static char temp[64];

static int temp_setup(void **state)
{
    (void)state;
    if (!unit_temp_dir(temp))
        return -1;
    return setenv("TMPDIR", temp, 1);
}

static int temp_teardown(void **state)
{
    (void)state;
    (void)unsetenv("TMPDIR");
    return rmdir(temp); /* fails when the demo left something behind */
}

static unsigned entries_in_temp(void)
{
    unsigned count = 0;
    DIR *dir = opendir(temp);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        count += e->d_name[0] != '.';
    (void)closedir(dir);
    return count;
}

static void it_learns(void **state)
{
    (void)state;
    struct train_result result;
    assert_int_equal(train_run(&small, &result), 0);
    assert_int_equal(result.steps, 640);
    assert_int_equal(result.epochs, 10);
    assert_true(result.last_loss < 0.6 * result.first_loss);
    assert_true(result.accuracy > 0.6); /* chance is 0.1 */
}

static void the_same_seed_learns_the_same_weights(void **state)
{
    (void)state;
    struct train_options options = small;
    options.steps = 40;
    struct train_result first, second, other;
    assert_int_equal(train_run(&options, &first), 0);
    assert_int_equal(train_run(&options, &second), 0);
    options.seed = 8;
    assert_int_equal(train_run(&options, &other), 0);
    assert_true(first.checksum == second.checksum);
    assert_true(first.checksum != other.checksum);
}

static void too_few_pictures_for_a_batch_are_refused(void **state)
{
    (void)state;
    struct train_result result;
    const struct train_options options = { .pictures = 31 };
    assert_int_equal(train_run(&options, &result), -EINVAL);
}

static void a_signal_ends_it_as_usual_and_leaves_nothing_behind(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        struct train_result result;
        (void)train_run(&(struct train_options){ .steps = 100000 }, &result);
        _exit(1);
    }
    while (entries_in_temp() == 0)
        (void)usleep(1000);
    (void)usleep(100000);
    int status = 0;
    assert_int_equal(kill(child, SIGTERM), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_int_equal(entries_in_temp(), 0);
}

static void a_file_cut_short_is_no_data_set(void **state)
{
    (void)state;
    assert_int_equal(scratch_open(), 0);
    const char *path = scratch_file("pictures.bin");
    struct dataset dataset;
    struct scan scan;
    assert_int_equal(dataset_generate(path, 1, 3), 0);
    assert_int_equal(dataset_open(path, &dataset), 0);
    assert_int_equal(dataset_read(&dataset, 2, &scan), 0);
    assert_int_equal(dataset_read(&dataset, 3, &scan), -EINVAL);
    dataset_close(&dataset);
    assert_int_equal(truncate(path, 9000), 0);
    assert_int_equal(dataset_open(path, &dataset), -EINVAL);
    scratch_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_learns, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(the_same_seed_learns_the_same_weights,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(too_few_pictures_for_a_batch_are_refused,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(
            a_signal_ends_it_as_usual_and_leaves_nothing_behind, temp_setup,
            temp_teardown),
        cmocka_unit_test_setup_teardown(a_file_cut_short_is_no_data_set, temp_setup,
                                        temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
