/* ledger_fuzz.c: a line of ledger.jsonl, whoever wrote it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "store/ledger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ledger_entry e;
    if (ledger_parse((const char *)data, size, &e) && !isfinite(ledger_error(&e)))
        abort();
    return 0;
}
