// link: a
/* zoo: one of everything the report shows.
 *
 *     zoo good     20 steps, two threads, a forked child, hostile names; exits 0
 *     zoo exit     calls exit(3) inside train › save
 *     zoo hang     prints "ready" inside train › epoch › stuck, and waits to be killed
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

enum { STEPS = 20, DECODES = 50, CHILD_ZONES = 30 };

static void spin(long us)
{
    struct timespec from, now;
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    do
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 <
           us);
}

static void *load_thread(void *arg)
{
    (void)arg;
    sonde_thread_name("loader");
    for (int i = 0; i < DECODES; i++)
        SONDE_ZONE_EX("decode", SONDE_PREPROCESSING, "loader", "io", "kind=jpeg") {
            spin(100);
        }
    return NULL;
}

static void step(int i)
{
    sonde_step_samples(8);
    SONDE_ZONE("load", SONDE_DATA_LOADING) {
        spin(300);
        sonde_value("batch", 8);
    }
    SONDE_ZONE("forward", SONDE_FORWARD) {
        for (int k = 0; k < 2; k++)
            SONDE_ZONE("layer", SONDE_NO_PHASE) {
                spin(200);
            }
        spin(100);
    }
    SONDE_ZONE("backward", SONDE_BACKWARD) {
        spin(600);
    }
    sonde_counter("queue", i % 4);
    sonde_metric("loss", 1.0 / (i + 1));
}

static void child_work(void)
{
    for (int i = 0; i < CHILD_ZONES; i++)
        SONDE_ZONE("in child", SONDE_AUGMENTATION) {
            spin(20);
        }
}

static void hostile(void)
{
    static const char *const names[] = { "=cmd|'/C calc'!A0", "\033]0;owned\a\033[2J",
                                         "quote\"comma,newline\n",
                                         "\xff\xfe\xe2\x80\xae" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct sonde_site *site = sonde_site_named(names[i], 0, names[i], names[i],
                                                   names[i]);
        sonde_begin(site);
        spin(50);
        sonde_end(site);
    }
}

static void spans(void)
{
    struct sonde_site *site = sonde_site_named("request", 0, "server", NULL, NULL);
    struct sonde_span ended, left;
    sonde_span_begin(&ended, site);
    sonde_span_suspend(&ended);
    spin(500);
    sonde_span_resume(&ended);
    sonde_span_end(&ended);
    sonde_span_begin(&left, site);
}

static int good(void)
{
    pthread_t thread;
    struct sonde_operation op;
    sonde_tag("team", "program");
    sonde_param("depth", "12");
    if (pthread_create(&thread, NULL, load_thread, NULL) != 0)
        return 1;
    const pid_t child = fork();
    if (child == 0) {
        child_work();
        _exit(0);
    }
    SONDE_ZONE("train", SONDE_NO_PHASE) {
        sonde_mark("epoch 1");
        for (int i = 0; i < STEPS; i++)
            step(i);
    }
    sonde_operation_begin(&op, "experiment", SONDE_EVALUATION, "evolution", "n=1");
    spin(2000);
    sonde_operation_value(&op, "accuracy", 0.93);
    sonde_operation_end(&op);
    hostile();
    spans();
    (void)pthread_join(thread, NULL);
    return waitpid(child, NULL, 0) == child ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "good";
    if (strcmp(mode, "good") == 0)
        return good();
    SONDE_ZONE("train", SONDE_NO_PHASE) {
        sonde_step();
        sonde_step();
        if (strcmp(mode, "exit") == 0)
            SONDE_ZONE("save", SONDE_CHECKPOINT) {
                exit(3);
            }
        SONDE_ZONE("epoch", SONDE_NO_PHASE) {
            SONDE_ZONE("stuck", SONDE_FORWARD) {
                (void)puts("ready");
                (void)fflush(stdout);
                for (;;)
                    (void)pause();
            }
        }
    }
    return 0;
}
