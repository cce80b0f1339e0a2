/* bench.c: how long does a function take? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void sort_some(void *arg)
{
    static int numbers[10000];
    memcpy(numbers, arg, sizeof numbers);
    qsort(numbers, 10000, sizeof *numbers, compare);
}

int main(void)
{
    static int numbers[10000];
    for (int i = 0; i < 10000; i++)
        numbers[i] = rand() / 2;

    struct sonde_bench_result r;
    if (sonde_bench(sort_some, numbers, 0, 0, &r) < 0) /* 10 warm-up, 100 runs */
        return 1;
    printf("%.3f ms ± %.3f, 95 %% interval %.3f … %.3f, median %.3f, p95 %.3f\n",
           1e3 * r.mean_s, 1e3 * r.std_s, 1e3 * r.ci_low_s, 1e3 * r.ci_high_s,
           1e3 * r.median_s, 1e3 * r.p95_s);
    if (r.note[0])
        printf("%s\n", r.note);
    return 0;
}
