// link: none
// flags: -O2 -g
// libs: -ldl
/* hot_loader: hot_loader SECONDS LIBRARY: calls hot_plugin() of a library it loads. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    void *library = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;
    void (*work)(double) = NULL;
    if (library)
        *(void **)&work = dlsym(library, "hot_plugin");
    if (!work) {
        fprintf(stderr, "hot_loader: %s\n", argc > 2 ? dlerror() : "which library?");
        return 1;
    }
    work(atof(argv[1]));
    return 0;
}
