// A thread that takes its place in one session and writes there two sessions later.
// link: a
//
//     late_store A B C
//
// Records into A, then B, then C. The thread has reserved a slot in A and is on a core all
// the while, as one that lost it between two instructions would be; it stores in C.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <sonde/sonde.h>

static volatile int stage; /* 1 the slot is taken, 2 write, 3 written */
static struct sonde_site *late, *plain;

static void *thread_main(void *arg)
{
    sonde_begin(late);
    sonde_end(late);
    const uint64_t slot = sonde_reserve_(sonde_lane_, 8);
    stage = 1;
    while (stage < 2)
        ;
    *(volatile uint64_t *)(uintptr_t)slot = sonde_ticks_() << 16 | late->word;
    stage = 3;
    return arg;
}

static int start(const char *dir)
{
    struct sonde_options o;
    sonde_options_standard(&o);
    o.output = dir;
    o.quiet = 1;
    return sonde_session_start(&o);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    const struct timespec moment = { 0, 50000000 };
    if (argc != 4 || start(argv[1]) != 0)
        return 1;
    late = sonde_site_named("late", SONDE_NO_PHASE, NULL, NULL, NULL);
    plain = sonde_site_named("plain", SONDE_NO_PHASE, NULL, NULL, NULL);
    sonde_begin(plain);
    sonde_end(plain);
    if (pthread_create(&thread, NULL, thread_main, NULL) != 0)
        return 1;
    while (stage < 1)
        (void)nanosleep(&moment, NULL);
    (void)sonde_session_stop();
    for (int i = 2; i <= 3; i++) {
        if (start(argv[i]) != 0)
            return 1;
        for (int k = 0; k < 100; k++) {
            sonde_begin(plain);
            sonde_end(plain);
        }
        if (i == 3) {
            stage = 2;
            while (stage < 3)
                ;
        }
        (void)sonde_session_stop();
    }
    (void)pthread_join(thread, NULL);
    return 0;
}
