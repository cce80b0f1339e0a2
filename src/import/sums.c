/* sums.c: what profiles without a timeline share. */
#include "import/sums.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "trace/packwriter.h"

enum { SUMS_PID = 1 };

int sums_open(const char *dir, const char *exe, struct packwriter **ret_writer,
              struct built *ret_built)
{
    struct timespec now;
    char path[1100];
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t start = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    const struct packwriter_about about = {
        .pid = SUMS_PID, .start_ns = start, .exe = exe, .role = "main"
    };
    if (snprintf(path, sizeof path, "%s/%020llu-%d-00000000.sonde", dir,
                 (unsigned long long)start, SUMS_PID) >= (int)sizeof path)
        return -ENAMETOOLONG;
    const int rc = packwriter_new(path, &about, ret_writer);
    if (rc == 0) {
        packwriter_lane(*ret_writer, 0, SUMS_PID, "main");
        *ret_built = (struct built){ .start_ns = (int64_t)start,
                                     .end_ns = (int64_t)start,
                                     .main_pid = SUMS_PID,
                                     .processes = 1 };
    }
    return rc;
}

int source_slurp(struct import_source *source, size_t most, char **ret_data,
                 size_t *ret_len)
{
    size_t len = 0, cap = 1 << 16;
    char *data = malloc(cap);
    for (;;) {
        if (!data)
            return -ENOMEM;
        const long got = import_source_read(source, data + len, cap - len);
        if (got < 0) {
            free(data);
            return (int)got;
        }
        len += (size_t)got;
        if (got == 0)
            break;
        if (len < cap)
            continue;
        if (cap >= most) {
            free(data);
            return SONDE_E_LIMIT;
        }
        cap *= 2;
        char *grown = realloc(data, cap);
        if (!grown)
            free(data);
        data = grown;
    }
    *ret_data = data;
    *ret_len = len;
    return 0;
}
