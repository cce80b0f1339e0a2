// More call paths than a process keeps, and then phases of known lengths in new ones.
// link: a
//
//     beyond_paths MS
//
// Inside "train" 100 times "outer N", inside of it 60 times "inner N": 6,000 paths. Then, in
// paths of which none is kept, MS of forward with a third of it backward, MS of optimizer,
// and MS in a zone that has no phase.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sonde/sonde.h>

static struct sonde_site *site(const char *name, int number, int phase)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s %d", name, number);
    return sonde_site_named(text, phase, NULL, NULL, NULL);
}

static void wait_ms(double ms)
{
    struct timespec t = { 0, (long)(ms * 1e6) };
    (void)nanosleep(&t, NULL);
}

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fill(void)
{
    for (int i = 0; i < 100; i++) {
        struct sonde_site *outer = site("outer", i, SONDE_NO_PHASE);
        sonde_begin(outer);
        for (int k = 0; k < 60; k++) {
            struct sonde_site *inner = site("inner", k, SONDE_NO_PHASE);
            sonde_begin(inner);
            sonde_end(inner);
        }
        sonde_end(outer);
    }
}

int main(int argc, char **argv)
{
    const double ms = argc > 1 ? atof(argv[1]) : 20;
    double took[4] = { 0 };
    struct sonde_site *train = site("train", 0, SONDE_NO_PHASE);
    sonde_begin(train);
    fill();
    for (int i = 0; i < 20; i++) {
        struct sonde_site *forward = site("forward", i, SONDE_FORWARD);
        struct sonde_site *backward = site("backward", i, SONDE_BACKWARD);
        struct sonde_site *optimizer = site("optimizer", i, SONDE_OPTIMIZER);
        struct sonde_site *plain = site("plain", i, SONDE_NO_PHASE);
        const double t0 = seconds();
        sonde_begin(forward);
        wait_ms(ms * 2 / 3);
        const double t1 = seconds();
        sonde_begin(backward);
        wait_ms(ms / 3);
        sonde_end(backward);
        const double t2 = seconds();
        sonde_end(forward);
        sonde_begin(optimizer);
        wait_ms(ms);
        sonde_end(optimizer);
        const double t3 = seconds();
        sonde_begin(plain);
        wait_ms(ms);
        sonde_end(plain);
        const double t4 = seconds();
        took[0] += t1 - t0, took[1] += t2 - t1, took[2] += t3 - t2, took[3] += t4 - t3;
    }
    sonde_end(train);
    printf("%.9f %.9f %.9f %.9f\n", took[0], took[1], took[2], took[3]);
    return 0;
}
