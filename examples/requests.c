/* requests.c: a span begins on one thread, waits, and ends on another. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include <sonde/sonde.h>

enum { REQUESTS = 20 };

static void sleep_ms(long ms)
{
    const struct timespec t = { 0, ms * 1000000 };
    (void)nanosleep(&t, NULL);
}

static void *finish(void *arg)
{
    struct sonde_span *span = arg;
    sonde_span_resume(span);
    sleep_ms(2); /* active again, on another thread */
    sonde_span_end(span);
    return NULL;
}

int main(void)
{
    struct sonde_site *site = sonde_site_named("request", SONDE_NO_PHASE, "service",
                                               NULL, NULL);
    for (int i = 0; i < REQUESTS; i++) {
        struct sonde_span span;
        pthread_t thread;
        sonde_span_begin(&span, site);
        sleep_ms(1); /* active: accepted, parsed … */
        sonde_span_suspend(&span);
        sleep_ms(3); /* suspended: waits in a queue */
        if (pthread_create(&thread, NULL, finish, &span) != 0)
            return 1;
        (void)pthread_join(thread, NULL);
    }
    printf("%d requests\n", REQUESTS);
    return 0;
}
