/* pylayer_fuzz.c: any bytes as python.jsonl, what Python processes tell, through the
 * reports. */
#include "rundir.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    rundir_make("{}"); /* or it would be no run */
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rundir_put("python.jsonl", data, size);
    rundir_report();
    return 0;
}
