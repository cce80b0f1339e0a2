/* alert_fuzz.c: an alert expression, whoever wrote it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/monitor/alert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct alert_rule rule, again;
    struct alert_error error = { 0 };
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (alert_parse(text, &rule, &error) == 0) {
        if (alert_parse(rule.text, &again, &error) < 0 || !rule.source || !rule.unit ||
            again.threshold != rule.threshold)
            abort(); /* what was understood once is understood again */
    } else if (error.position == 0 || error.position > strlen(text) + 1 ||
               !error.message[0]) {
        abort();
    }
    free(text);
    return 0;
}
