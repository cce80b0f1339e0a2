/* demangle.c: C++ names through the C++ library of the machine, where there is one.
 *
 * Loaded at run time: Sonde does not depend on C++, and programs with mangled names come
 * from machines that have it.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "capture/symbol/symbol.h"

/* Long names take __cxa_demangle time and memory without end. */
enum { LONGEST = 4096 };

typedef char *demangle_fn(const char *name, char *buffer, size_t *length, int *status);

static demangle_fn *find_demangler(void)
{
    static demangle_fn *found;
    static bool looked;
    if (!looked) {
        looked = true;
        void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
        if (library)
            *(void **)&found = dlsym(library, "__cxa_demangle");
    }
    return found;
}

char *symbol_demangle(const char *name)
{
    if (strncmp(name, "_Z", 2) != 0 || strlen(name) > LONGEST)
        return NULL;
    demangle_fn *demangle = find_demangler();
    int status = -1;
    char *text = demangle ? demangle(name, NULL, NULL, &status) : NULL;
    if (status == 0)
        return text;
    free(text);
    return NULL;
}
