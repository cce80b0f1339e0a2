// link: a
// flags: -O1 -fno-builtin
/* alloc_life: odd moments to allocate: signal handlers, thread exit, between snapshots.
 *
 *     alloc_life handler|exit|snapshots|steps|wait
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

enum { THREADS = 50 };

static volatile sig_atomic_t in_malloc, seen;

/* Allocates only when the interrupted code was not in malloc: libc forbids the rest. */
static void on_signal(int number)
{
    (void)number;
    if (!in_malloc) {
        free(malloc(3000));
        seen++;
    }
}

static int handler(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    const struct itimerval fast = { { 0, 200 }, { 0, 200 } },
                           none = { { 0, 0 }, { 0, 0 } };
    (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &fast, NULL);
    for (int i = 0; i < 300000; i++) {
        in_malloc = 1;
        void *p = malloc(6000);
        in_malloc = 0;
        in_malloc = 1;
        free(p);
        in_malloc = 0;
    }
    (void)setitimer(ITIMER_REAL, &none, NULL);
    char text[32];
    int n = 0;
    for (int v = (int)seen; v || !n; v /= 10)
        text[n++] = (char)('0' + v % 10);
    for (int i = n - 1; i >= 0; i--)
        (void)!write(1, &text[i], 1);
    return 0;
}

static pthread_key_t key;

static void at_end(void *p)
{
    static __thread int rounds;
    free(p);
    if (++rounds < 6) /* more often than there are rounds */
        (void)pthread_setspecific(key, malloc(3000));
}

static void *short_life(void *arg)
{
    (void)pthread_setspecific(key, malloc(3000));
    return arg;
}

static int thread_exit(void)
{
    if (pthread_key_create(&key, at_end) != 0)
        return 3;
    for (int i = 0; i < THREADS; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, short_life, NULL) != 0)
            return 3;
        (void)pthread_join(t, NULL);
    }
    return 0;
}

static void *held[4096];

__attribute__((noinline)) static void hold(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        held[i] = malloc(4000);
}

static int snapshots(void)
{
    hold(0, 1024);
    sonde_heap_snapshot("first");
    hold(1024, 3072);
    sonde_heap_snapshot("second");
    for (unsigned i = 0; i < 2048; i++)
        free(held[i]);
    sonde_heap_snapshot("third");
    return 0;
}

static void *kept[64];

/* Set-up before the first step, then a block of 64 KiB kept in every step. */
static int steps(void)
{
    const struct timespec nap = { 0, 1000000 };
    hold(0, 4096);
    for (int i = 0; i < 64; i++) {
        sonde_step();
        SONDE_ZONE("step", SONDE_FORWARD) {
            kept[i] = malloc(65536);
        }
        (void)nanosleep(&nap, NULL);
    }
    return kept[63] == NULL;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "handler") == 0)
        return handler();
    if (strcmp(what, "exit") == 0)
        return thread_exit();
    if (strcmp(what, "snapshots") == 0)
        return snapshots();
    if (strcmp(what, "steps") == 0)
        return steps();
    if (strcmp(what, "wait") == 0) {
        hold(0, 1000);
        (void)!write(1, "x", 1);
        pause();
    }
    return 2;
}
