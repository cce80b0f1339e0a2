/* glue_test.c: what of a merged stack is shown. */
#include "unit.h"

#include <string.h>

#include "analyse/glue.h"

/* A name with '+' is Python's, with '*' the interpreter's; innermost first. */
static const char *kept(const char *const *names, unsigned count)
{
    static char text[512];
    struct glue_frame frames[32] = { { .name = "" } };
    bool keep[32];
    text[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        const bool marked = names[i][0] == '+' || names[i][0] == '*';
        frames[i] = (struct glue_frame){ names[i] + marked, names[i][0] == '+',
                                         names[i][0] == '*' };
    }
    glue_strip(frames, count, keep);
    for (unsigned i = 0; i < count; i++)
        if (keep[i]) {
            (void)strcat(text, text[0] ? " " : "");
            (void)strcat(text, frames[i].name);
        }
    return text;
}

#define KEPT(...)                                                                      \
    kept((const char *const[]){ __VA_ARGS__ },                                         \
         sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *))

static void how_the_interpreter_calls_is_left_out(void **state)
{
    (void)state;
    assert_string_equal(KEPT("deflate", "*cfunction_vectorcall_FASTCALL", "+key",
                             "*_PyFunction_Vectorcall", "*list_sort", "*builtin_sorted",
                             "*PyObject_Vectorcall", "+main", "*PyRun_SimpleFile",
                             "*main", "__libc_start_main", "_start"),
                        "deflate key list_sort builtin_sorted main");
}

static void code_without_a_name_stays_where_time_is_spent(void **state)
{
    (void)state;
    assert_string_equal(KEPT("*[python3.11]", "*[python3.11]", "+key", "*[python3.11]",
                             "*[python3.11]", "+main", "*[python3.11]"),
                        "[python3.11] key main");
}

static void code_of_others_stays_everywhere(void **state)
{
    (void)state;
    assert_string_equal(KEPT("sgemm", "[libmkl.so]", "at::linear", "+forward",
                             "pybind11::dispatch", "+main", "*Py_RunMain",
                             "embedding_main", "_start"),
                        "sgemm [libmkl.so] at::linear forward pybind11::dispatch main "
                        "embedding_main");
}

static void functions_named_alike_are_not_taken_for_glue(void **state)
{
    (void)state;
    assert_string_equal(KEPT("cfunction_of_mine", "+type_call", "+slot_tp_call"),
                        "cfunction_of_mine type_call slot_tp_call");
}

static void gaps_in_a_row_are_one_and_recursion_is_not(void **state)
{
    (void)state;
    assert_string_equal(KEPT("x", "+(unknown Python)", "*PyObject_Call",
                             "+(unknown Python)", "+f", "+f", "+(unknown Python)"),
                        "x (unknown Python) f f (unknown Python)");
}

static void a_stack_without_python_is_kept_whole(void **state)
{
    (void)state;
    assert_string_equal(KEPT("*PyObject_Call", "*main", "_start"),
                        "PyObject_Call main _start");
    assert_string_equal(kept(NULL, 0), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_the_interpreter_calls_is_left_out),
        cmocka_unit_test(code_without_a_name_stays_where_time_is_spent),
        cmocka_unit_test(code_of_others_stays_everywhere),
        cmocka_unit_test(functions_named_alike_are_not_taken_for_glue),
        cmocka_unit_test(gaps_in_a_row_are_one_and_recursion_is_not),
        cmocka_unit_test(a_stack_without_python_is_kept_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
