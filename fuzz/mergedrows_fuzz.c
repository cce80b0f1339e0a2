/* mergedrows_fuzz.c: any bytes as a file of stacks, native and merged, walked and reported. */
#include "rundir.h"

#include "analyse/stacks.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    rundir_make(RUNDIR_RUN_JSON);
    return 0;
}

static int see(void *arg, const struct stack_task *task,
               const struct stack_entry *entries, unsigned count, uint64_t samples)
{
    const struct stacks *stacks = arg;
    (void)task, (void)samples;
    if (count > STACK_ENTRIES)
        abort();
    for (unsigned i = 0; i < count; i++)
        if (entries[i].function >= stacks->function_count ||
            !stacks->functions[entries[i].function].name[0])
            abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stacks *stacks;
    rundir_put("stacks-1-2-3.tables", data, size);
    if (stacks_open(rundir, &stacks) == 0) {
        (void)stacks_walk(stacks, see, stacks);
        (void)stacks_walk_merged(stacks, see, stacks);
        stacks_free(stacks);
    }
    rundir_report();
    return 0;
}
