/* import_fuzz.c: profiles of other tools, whoever wrote them: JSON traces, cProfile dumps,
 * folded stacks, plain and gzipped. The first byte says what to take them for. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], dir[64] = "/dev/shm/sonde-fuzz-XXXXXX", output[80];
    if (size < 2 || !mkdtemp(dir))
        return 0;
    const int fd = memfd_create("import", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        (void)snprintf(output, sizeof output, "%s/run", dir);
        const struct import_options o = { .kind = (enum import_kind)(data[0] % 4),
                                          .output = output };
        struct import_result result = { 0 };
        (void)import_file(path, &o, &result);
        import_result_release(&result);
    }
    if (fd >= 0)
        (void)close(fd);
    (void)file_remove_tree(dir);
    return 0;
}
