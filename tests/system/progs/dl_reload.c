// link: so
// libs: -ldl
/* dl_reload: loads and unloads an instrumented library TIMES times.
 *
 *     dl_reload LIBRARY TIMES
 *
 * Each time plugin_work() records 5 zones "plugin"; the host records one "host" around
 * it. While it is away another mapping takes its place, so that stale pointers into it
 * do not go unnoticed.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <sonde/sonde.h>

static int reload(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void (*work)(int);
    if (!library) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    *(void **)&work = dlsym(library, "plugin_work");
    if (!work)
        return 4;
    SONDE_ZONE("host", SONDE_FORWARD) {
        work(5);
    }
    return dlclose(library) == 0 ? 0 : 5;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const int times = atoi(argv[2]);
    for (int i = 0; i < times; i++) {
        const int rc = reload(argv[1]);
        if (rc != 0)
            return rc;
        char *filler = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (filler != MAP_FAILED && i % 3 == 0)
            memset(filler, 0xa5, 1 << 16);
        else if (filler != MAP_FAILED)
            (void)munmap(filler, 1 << 16);
    }
    return 0;
}
