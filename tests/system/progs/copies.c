// link: a
// libs: -ldl
/* copies: a program with its own copy of the recorder loads a library that brings
 * libsonde.so and another that brings a third copy.
 *
 *     copies TIMES LIBRARY…
 *
 * host › first library › callback › second library …: one zone each, nested in one
 * another, recorded through different copies. A thread does the same besides.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <sonde/sonde.h>

enum { MOST = 8 };
typedef void visit_fn(void (*inside)(void *), void *arg);

static visit_fn *visit[MOST];
static int libraries, times;

struct level {
    int next; /* library to enter */
};

static void enter(void *arg)
{
    const struct level *level = arg;
    SONDE_ZONE("host", SONDE_FORWARD) {
        struct level inner = { level->next + 1 };
        if (level->next < libraries)
            visit[level->next](enter, &inner);
    }
}

static void *repeat(void *arg)
{
    for (int i = 0; i < times; i++)
        enter(&(struct level){ 0 });
    return arg;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc - 2 > MOST)
        return 2;
    times = atoi(argv[1]);
    for (int i = 2; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            (void)fprintf(stderr, "%s\n", dlerror());
            return 3;
        }
        *(void **)&visit[libraries++] = dlsym(library, "visit");
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, repeat, NULL) != 0)
        return 4;
    repeat(NULL);
    (void)pthread_join(thread, NULL);
    return 0;
}
