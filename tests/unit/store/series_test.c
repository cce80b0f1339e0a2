/* series_test.c: series of experiments, in both shapes, and shapes that are none. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "store/series.h"

static int put(void *arg, const struct series_view *s)
{
    buf_printf(arg, "%s:", s->name);
    for (size_t i = 0; i < s->count; i++)
        buf_printf(arg, " %g=%g", s->steps[i], s->values[i]);
    if (s->left_out)
        buf_printf(arg, " -%zu", s->left_out);
    buf_puts(arg, ";");
    return 0;
}

static void expect(const char *json, const char *text)
{
    struct buf out = BUF_INIT;
    assert_int_equal(series_each(json, strlen(json), put, &out), 0);
    assert_string_equal(out.len ? out.data : "", text);
    buf_release(&out);
}

static void both_shapes_are_read(void **state)
{
    (void)state;
    expect("{}", "");
    expect("{\"loss\":[[10,0.5],[20,0.25]],\"a\":[3,4]}",
           "loss: 10=0.5 20=0.25;a: 0=3 1=4;");
    expect("{\"loss\":[[1,null],[2,3,99]]}", "loss: 1=nan 2=3;");
}

static void other_shapes_are_counted_not_guessed(void **state)
{
    (void)state;
    expect("{\"x\":[[1],[\"a\",2],{\"k\":[1]},[[1,2],3],\"t\",7]}", "x: 5=7 -5;");
}

static void what_is_no_object_of_lists_is_an_error(void **state)
{
    (void)state;
    static const char *const bad[] = { "", "[]", "{\"a\":1}", "{\"a\":[1,",
                                       "{\"a\":[[1" };
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(series_each(bad[i], strlen(bad[i]), put, &out),
                         SONDE_E_FORMAT);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_shapes_are_read),
        cmocka_unit_test(other_shapes_are_counted_not_guessed),
        cmocka_unit_test(what_is_no_object_of_lists_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
