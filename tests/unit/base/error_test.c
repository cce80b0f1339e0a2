#include "base/error.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

static void own_errors_have_their_own_texts(void **state)
{
    (void)state;
#define CHECK(name, value, text) assert_string_equal(error_text(SONDE_E_##name), text);
    SONDE_ERRORS(CHECK)
#undef CHECK
}

static void system_errors_read_well_inside_a_sentence(void **state)
{
    (void)state;
    assert_string_equal(error_text(-ENOENT), "no such file or directory");
    assert_string_equal(error_text(-EACCES), "permission denied");
}

static void success_and_unknown_numbers_have_texts_too(void **state)
{
    (void)state;
    assert_string_equal(error_text(0), "success");
    assert_string_equal(error_text(7), "success");
    assert_string_equal(error_text(-9999), "unknown error");
    assert_non_null(strstr(error_text(-3999), "3999"));
}

static void no_own_error_collides_with_an_errno(void **state)
{
    (void)state;
#define CHECK(name, value, text) assert_true((value) <= -4096);
    SONDE_ERRORS(CHECK)
#undef CHECK
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_errors_have_their_own_texts),
        cmocka_unit_test(system_errors_read_well_inside_a_sentence),
        cmocka_unit_test(success_and_unknown_numbers_have_texts_too),
        cmocka_unit_test(no_own_error_collides_with_an_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
