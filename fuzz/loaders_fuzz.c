/* loaders_fuzz.c: any bytes as a file of data loaders, through analysis and both reports. */
#include "rundir.h"

#include "trace/control.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    rundir_make(RUNDIR_RUN_JSON);
    /* Without a clock times would not be looked at. */
    struct control *control = NULL;
    if (control_create(rundir, &(struct control_options){ .run_id = "x" }, &control) <
        0)
        abort();
    (void)usleep(2000);
    control_append_clock(control);
    control_unmap(control);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rundir_put("loader-1-2-3.tables", data, size);
    rundir_report();
    return 0;
}
