/* jitmap_fuzz.c: /tmp/perf-PID.map, whoever wrote it. */
#include <stdint.h>
#include <string.h>

#include "capture/symbol/jitmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jitmap *map;
    uint64_t address = 0;
    if (jitmap_parse((const char *)data, size, &map) < 0)
        return 0;
    if (size >= 8)
        memcpy(&address, data + size - 8, 8);
    for (unsigned i = 0; i < 64; i++)
        (void)strlen(jitmap_find(map, i % 2 ? address >> i : (uint64_t)i << i));
    jitmap_free(map);
    return 0;
}
