/* References: scipy 1.17.1, stats.t.ppf and stats.t.cdf. */
#include "num/student.h"

#include <math.h>

#include "unit.h"

static void quantiles_agree_with_scipy(void **state)
{
    (void)state;
    static const struct {
        double p, df, t;
    } cases[] = {
        { 0.975, 1, 12.706204736174694 },       { 0.975, 2, 4.3026527297494619 },
        { 0.975, 3, 3.1824463052837078 },       { 0.975, 5, 2.5705818356363146 },
        { 0.975, 9, 2.2621571627982049 },       { 0.975, 10, 2.2281388519862739 },
        { 0.975, 29, 2.045229642132703 },       { 0.975, 99, 1.9842169515864174 },
        { 0.975, 150, 1.9759053308966201 },     { 0.975, 999, 1.9623414611334493 },
        { 0.975, 1e6, 1.959966356814107 },      { 0.975, 1e8, 1.9599640082627663 },
        { 0.95, 7, 1.8945786050900062 },        { 0.995, 4, 4.6040948713499921 },
        { 0.9995, 12, 4.3177912836062475 },     { 0.6, 3.7, 0.27216446429206953 },
        { 0.025, 19, -2.0930240544083101 },     { 0.999999, 8, 12.109834665510558 },
        { 0.975, 0.5, 164.55767348048818 },     { 0.995, 101, 2.6253859646684408 },
        { 0.975, INFINITY, 1.959963984540054 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_near(student_quantile(cases[i].p, cases[i].df), cases[i].t,
                    1e-9 * fabs(cases[i].t));
}

static void probabilities_agree_with_scipy(void **state)
{
    (void)state;
    assert_near(student_cdf(2.0, 5), 0.94903026058507078, 1e-12);
    assert_near(student_cdf(-1.3, 11.5), 0.10952666896632959, 1e-12);
    assert_near(student_cdf(0.1, 200), 0.53977775374783943, 1e-12);
    assert_near(student_cdf(12, 3), 0.99937749209960536, 1e-12);
    assert_near(student_cdf(0, 4), 0.5, 0);
}

static void the_quantile_undoes_the_probability(void **state)
{
    (void)state;
    for (double df = 1; df < 1e9; df *= 3.7)
        for (double p = 0.01; p < 1; p += 0.07)
            assert_near(student_cdf(student_quantile(p, df), df), p, 1e-9);
}

static void questions_without_an_answer_give_nan(void **state)
{
    (void)state;
    assert_true(isnan(student_quantile(0, 5)));
    assert_true(isnan(student_quantile(1, 5)));
    assert_true(isnan(student_quantile(0.5, 0)));
    assert_true(isnan(student_quantile(NAN, 5)));
    assert_true(isnan(student_cdf(NAN, 5)));
    assert_true(isnan(student_cdf(1, -1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_agree_with_scipy),
        cmocka_unit_test(probabilities_agree_with_scipy),
        cmocka_unit_test(the_quantile_undoes_the_probability),
        cmocka_unit_test(questions_without_an_answer_give_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
