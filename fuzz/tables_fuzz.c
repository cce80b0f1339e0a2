/* tables_fuzz.c: a file of tables, whoever wrote it. */
#include <stdint.h>
#include <string.h>

#include "trace/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tablefile *file;
    if (tablefile_parse(data, size, &file) < 0)
        return 0;
    for (int table = 0; table < TABLES_MAX; table++)
        for (uint32_t i = 0; i < tablefile_count(file, table) && i < 5000; i++) {
            uint32_t row[64];
            if (tablefile_get(file, table, i, row, sizeof row))
                for (unsigned w = 0; w < 64; w += 7)
                    (void)strlen(tablefile_text(file, row[w]));
        }
    tablefile_free(file);
    return 0;
}
