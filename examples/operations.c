/* operations.c: records you can read yourself, with CPU time and memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

static char *fill(size_t mib)
{
    char *at = malloc(mib << 20);
    if (!at)
        exit(1);
    memset(at, 1, mib << 20);
    return at;
}

int main(void)
{
    struct sonde_operation op;

    sonde_operation_begin(&op, "experiment 7", SONDE_NO_PHASE, "evolution", "team=x");
    char *kept = fill(32);
    printf("%d ms so far\n", (int)(1e3 * sonde_operation_elapsed(&op)));
    sonde_operation_value(&op, "accuracy", 0.93);
    sonde_operation_end(&op);
    printf("%s: memory %+.0f MiB, peak %+.0f MiB, %d value\n", op.name,
           op.mem_after_mb - op.mem_before_mb, op.mem_peak_mb - op.mem_before_mb,
           op.value_count);

    /* Only an operation that takes more than 16 MiB appears in the report. */
    sonde_operation_begin(&op, "greedy", SONDE_OTHER, NULL, NULL);
    char *more = fill(64);
    if (sonde_operation_end_if_memory(&op, 16))
        printf("%s took more than 16 MiB\n", op.name);

    /* Switched off: accepts everything, measures nothing. */
    sonde_operation_disabled(&op, "not today");
    sonde_operation_value(&op, "accuracy", 0.5);
    sonde_operation_end(&op);

    free(kept);
    free(more);
    return 0;
}
