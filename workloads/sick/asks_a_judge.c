// truth: sync_stall
// about: after every step the program sends its weights to another process that judges them, and waits for the answer before it goes on
// cure: --every 50
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sonde/sonde.h>

enum { WEIGHTS = 4096, STEPS = 600, ROUNDS = 40 };

static float weights[WEIGHTS];

static void move(int fd, void *data, size_t len, int out)
{
    for (size_t done = 0; done < len;) {
        const ssize_t n = out ? write(fd, (char *)data + done, len - done)
                              : read(fd, (char *)data + done, len - done);
        if (n <= 0)
            _exit(out ? 2 : 0); /* the other one has gone */
        done += (size_t)n;
    }
}

/* The judge: smooths what it gets and says how far it is from flat. */
static void judge(int in, int out)
{
    for (;;) {
        double sum = 0;
        move(in, weights, sizeof weights, 0);
        for (int round = 0; round < 3 * ROUNDS; round++)
            for (int i = 1; i < WEIGHTS; i++)
                weights[i] = 0.5F * (weights[i] + weights[i - 1]) + 1e-6F;
        for (int i = 0; i < WEIGHTS; i++)
            sum += fabs((double)weights[i]);
        move(out, &sum, sizeof sum, 1);
    }
}

static void train(int step)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 1; i < WEIGHTS; i++)
            weights[i] = weights[i] * 0.999F +
                         weights[i - 1] * 0.001F * (float)(step % 7);
}

int main(int argc, char **argv)
{
    const int every = argc > 2 && strcmp(argv[1], "--every") == 0 ? atoi(argv[2]) : 1;
    int to[2], from[2];
    double verdict = 0;
    if (pipe(to) < 0 || pipe(from) < 0)
        return 1;
    const pid_t child = fork();
    if (child < 0)
        return 1;
    if (child == 0) {
        (void)close(to[1]);
        judge(to[0], from[1]);
    }
    (void)close(to[0]);
    for (int i = 0; i < WEIGHTS; i++)
        weights[i] = (float)(i % 13);
    for (int step = 0; step < STEPS; step++) {
        sonde_step();
        SONDE_ZONE("train", SONDE_FORWARD) {
            train(step);
        }
        if (step % every == 0) {
            SONDE_ZONE("judgement", SONDE_SYNC) {
                move(to[1], weights, sizeof weights, 1);
                move(from[0], &verdict, sizeof verdict, 0);
            }
        }
    }
    (void)close(to[1]);
    (void)waitpid(child, NULL, 0);
    printf("%g\n", verdict);
    return 0;
}
