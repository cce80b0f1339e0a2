// link: none
/* context_switches: threads that wait a known number of times.
 *
 *     context_switches THREADS WAITS
 *
 * Each thread sleeps WAITS times and then stays until the end; then the kernel's own
 * count of the whole process is printed, and the program goes on for a while so that who
 * looks from outside sees the end of it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static pthread_barrier_t done, leave;
static int waits;

static void *wait_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < waits; i++)
        (void)nanosleep(&(struct timespec){ 0, 100000 }, NULL);
    (void)pthread_barrier_wait(&done);
    (void)pthread_barrier_wait(&leave);
    return NULL;
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 2;
    waits = argc > 2 ? atoi(argv[2]) : 500;
    pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&leave, NULL, (unsigned)threads + 1);
    pthread_t t;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&t, NULL, wait_often, NULL) != 0)
            return 3;
    (void)pthread_barrier_wait(&done);
    (void)usleep(20000); /* all of them are in the second barrier */
    struct rusage use;
    (void)getrusage(RUSAGE_SELF, &use);
    printf("{\"pid\": %d, \"voluntary\": %ld, \"involuntary\": %ld}\n", (int)getpid(),
           use.ru_nvcsw, use.ru_nivcsw);
    (void)fflush(stdout);
    (void)sleep(1);
    (void)pthread_barrier_wait(&leave);
    return 0;
}
