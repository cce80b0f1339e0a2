/* triallog_fuzz.c: a line of trials.jsonl, whoever wrote it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "store/triallog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trial_entry e;
    if (triallog_parse((const char *)data, size, &e) &&
        !(e.low_ns <= e.step_ns && e.step_ns <= e.high_ns && isfinite(e.high_ns)))
        abort();
    return 0;
}
