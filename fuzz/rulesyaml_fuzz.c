/* rulesyaml_fuzz.c: the key `rules` of sonde.yaml, whoever wrote it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyse/thresholds.h"
#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/sonde-fuzz-XXXXXX";
    char error[THRESHOLDS_ERROR_LEN] = "";
    struct thresholds t;
    const int fd = mkstemp(path);
    if (fd < 0)
        return 0;
    if (write(fd, data, size) == (ssize_t)size) {
        thresholds_init(&t);
        if (thresholds_read(&t, path, error) == SONDE_E_FORMAT && !error[0])
            abort(); /* what is wrong is told */
        for (size_t i = 0; i < threshold_count; i++) {
            double value;
            memcpy(&value, (char *)&t + threshold_infos[i].offset, sizeof value);
            if (!(value >= 0))
                abort();
        }
    }
    (void)close(fd);
    (void)unlink(path);
    return 0;
}
