/* runjson_fuzz.c: any bytes as run.json, through the store and the reports. */
#include "rundir.h"

#include "store/list.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    rundir_make("{}");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run_list list;
    rundir_put("run.json", data, size);
    if (run_list_read(rundir_store, &list) == 0)
        run_list_release(&list);
    rundir_report();
    return 0;
}
