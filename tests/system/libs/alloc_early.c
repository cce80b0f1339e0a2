// link: none
// flags: -O1 -fno-builtin
/* alloc_early: a library whose constructor and destructor allocate and start a thread.
 * Preloaded behind Sonde's library, its constructor runs before Sonde's. */
#include <pthread.h>
#include <stdlib.h>

static void *worker(void *arg)
{
    for (int i = 0; i < 500; i++)
        free(malloc(3000));
    return arg;
}

__attribute__((constructor)) static void early(void)
{
    pthread_t t;
    for (int i = 0; i < 500; i++)
        free(malloc(3000));
    if (pthread_create(&t, NULL, worker, NULL) == 0)
        (void)pthread_join(t, NULL);
}

__attribute__((destructor)) static void late(void)
{
    for (int i = 0; i < 500; i++)
        free(malloc(3000));
}
