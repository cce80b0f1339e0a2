// link: a
/* many_workers: WORKERS short-lived forked workers, each recording ZONES zones.
 *
 *     many_workers WORKERS ZONES [AT_ONCE]
 *
 * Prints the pid of each worker, one a line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sonde/sonde.h>

static void work(int zones)
{
    for (int i = 0; i < zones; i++)
        SONDE_ZONE("work", SONDE_PREPROCESSING) {}
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const int workers = atoi(argv[1]), zones = atoi(argv[2]);
    const int at_once = argc > 3 ? atoi(argv[3]) : 16;
    int running = 0, failed = 0, status = 0;
    SONDE_ZONE("main", SONDE_OTHER) {}
    for (int i = 0; i < workers; i++) {
        if (running == at_once) {
            failed += wait(&status) < 0 || status != 0;
            running--;
        }
        const pid_t pid = fork();
        if (pid < 0)
            return 2;
        if (pid == 0) {
            work(zones);
            _exit(0);
        }
        running++;
        (void)printf("%d\n", (int)pid);
        (void)fflush(stdout);
    }
    for (; running > 0; running--)
        failed += wait(&status) < 0 || status != 0;
    return failed > 0;
}
