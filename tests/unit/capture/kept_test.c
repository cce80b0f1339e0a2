/* Descriptors that monitors keep open in a program that may close them. */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "capture/monitor/kept.h"

static void a_file_is_read_again_and_again(void **state)
{
    (void)state;
    char text[256];
    struct scan s;
    int fd = kept_open("/proc", "%s", "self/stat");
    assert_true(fd >= 0);
    assert_true(kept_read(fd, text, sizeof text, &s));
    assert_true(kept_read(fd, text, sizeof text, &s));
    const int number = fd;
    kept_close(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(fcntl(number, F_GETFD), -1);
}

static void a_number_that_is_somebody_else_s_is_neither_read_nor_closed(void **state)
{
    (void)state;
    char text[256];
    struct scan s;
    int fd = kept_open("/proc", "%s", "self/stat");
    const int number = fd, other = open("/etc/passwd", O_RDONLY);
    assert_true(fd >= 0 && other >= 0);
    assert_int_equal(dup2(other, number), number);
    assert_false(kept_read(fd, text, sizeof text, &s));
    kept_close(&fd);
    assert_int_equal(fd, -1);
    assert_true(fcntl(number, F_GETFD) >= 0);
    (void)close(number);
    (void)close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_again_and_again),
        cmocka_unit_test(a_number_that_is_somebody_else_s_is_neither_read_nor_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
