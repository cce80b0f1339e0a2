/* hangrows_fuzz.c: any bytes as a file of hangs, through analysis and both reports. */
#include "rundir.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    rundir_make(RUNDIR_RUN_JSON);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rundir_put("hangs-1-2-3.tables", data, size);
    rundir_report();
    return 0;
}
