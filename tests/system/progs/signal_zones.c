// link: a
// libs: -lrt
/* signal_zones: a timer's signal handler records zones while the loop it interrupts
 * does too.
 *
 *     signal_zones MILLISECONDS PERIOD_NS [names]
 *
 * Prints "MAIN INNER HANDLER": zones of the loop ("main" and "inner"), of the handler
 * ("handler"). With `names` both sides also keep registering new sites, which is the
 * slow path of the recorder: the loop has 40 × 100 names, the handler 16 sites it
 * meets for the first time in the handler.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sonde/sonde.h>

static volatile uint64_t handler_zones, main_zones, inner_zones;
static bool with_names;

#define NEW_SITE(n)                                                                    \
    case n:                                                                            \
        SONDE_ZONE("handler " #n, SONDE_NO_PHASE) {}                                   \
        break

static void first_use(uint64_t n)
{
    switch (n % 16) {
        NEW_SITE(0);
        NEW_SITE(1);
        NEW_SITE(2);
        NEW_SITE(3);
        NEW_SITE(4);
        NEW_SITE(5);
        NEW_SITE(6);
        NEW_SITE(7);
        NEW_SITE(8);
        NEW_SITE(9);
        NEW_SITE(10);
        NEW_SITE(11);
        NEW_SITE(12);
        NEW_SITE(13);
        NEW_SITE(14);
        NEW_SITE(15);
    }
}

static void on_timer(int signal)
{
    (void)signal;
    const uint64_t n = handler_zones++;
    SONDE_ZONE("handler", SONDE_OTHER) {
        sonde_value("calls", 1);
        if (with_names)
            first_use(n / 64);
    }
}

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void loop_once(void)
{
    main_zones++;
    SONDE_ZONE("main", SONDE_FORWARD) {
        for (int i = 0; i < 3; i++) {
            inner_zones++;
            SONDE_ZONE("inner", SONDE_NO_PHASE) {
                sonde_value("loops", 1);
            }
        }
    }
}

static void loop_names(uint64_t n)
{
    char name[32];
    (void)snprintf(name, sizeof name, "name %d", (int)(n / 50 % 4000));
    SONDE_ZONE_OF(sonde_site_named(name, SONDE_OTHER, NULL, NULL, NULL)) {}
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    with_names = argc > 3 && strcmp(argv[3], "names") == 0;
    struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    const long period = atol(argv[2]);
    const struct itimerspec every = { .it_interval = { 0, period },
                                      .it_value = { 0, period } };
    timer_t timer;
    (void)sigaction(SIGUSR1, &action, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &every, NULL) != 0)
        return 3;
    const uint64_t end = now_ms() + strtoull(argv[1], NULL, 10);
    for (uint64_t n = 0; n % 64 != 0 || now_ms() < end; n++) {
        loop_once();
        if (with_names)
            loop_names(n);
    }
    (void)timer_delete(timer);
    (void)signal(SIGUSR1, SIG_IGN);
    (void)printf("%llu %llu %llu\n", (unsigned long long)main_zones,
                 (unsigned long long)inner_zones, (unsigned long long)handler_zones);
    return 0;
}
