// link: a
/* fork_storm: forks while other threads record and register names: at any instant.
 *
 *     fork_storm FORKS CHILD_ZONES
 *
 * THREADS threads record "busy" and ever new names; the main thread forks. A child
 * records CHILD_ZONES zones "child", one of them of a new name, and is gone. Prints the
 * number of "busy" zones.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sonde/sonde.h>

enum {
    THREADS = 4,
    NAMES = 500
}; /* all paths together stay below the 4,096 of a process */
static atomic_bool stop;
static atomic_ulong busy;

static void *record(void *arg)
{
    const int number = (int)(intptr_t)arg;
    unsigned long n = 0;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); n++) {
        SONDE_ZONE("busy", SONDE_FORWARD) {}
        if (n % 100 == 0) {
            char name[32];
            (void)snprintf(name, sizeof name, "name %d.%d", number,
                           (int)(n / 100 % NAMES));
            SONDE_ZONE_OF(sonde_site_named(name, SONDE_OTHER, NULL, NULL, NULL)) {}
        }
    }
    atomic_fetch_add(&busy, n);
    return NULL;
}

static void child(int fork_number, int zones)
{
    char name[32];
    (void)snprintf(name, sizeof name, "only in child %d", fork_number % 50);
    SONDE_ZONE_OF(sonde_site_named(name, SONDE_OTHER, NULL, NULL, NULL)) {}
    for (int i = 0; i < zones; i++)
        SONDE_ZONE("child", SONDE_BACKWARD) {}
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const int forks = atoi(argv[1]), zones = atoi(argv[2]);
    pthread_t thread[THREADS];
    int failed = 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, record, (void *)(intptr_t)i) != 0)
            return 3;
    for (int i = 0; i < forks; i++) {
        const pid_t pid = fork();
        if (pid == 0)
            child(i, zones);
        int status = -1;
        failed += pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(thread[i], NULL);
    (void)printf("%lu\n", atomic_load(&busy));
    return failed > 0;
}
