/* rawfile.h: a process file as a killed program leaves it, full of events of which
 * nothing is folded; and the programs that fill it.
 *
 * A child records without a drain thread and with more space than it needs, then
 * leaves by _exit(): no handler runs, nobody has counted anything.
 */
#ifndef BENCH_RAWFILE_H
#define BENCH_RAWFILE_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include <sonde/sonde.h>

#include "measure.h"

/* ---- Patterns: each records about n zones ----------------------------------- */

static inline uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

static inline void spin(unsigned turns)
{
    for (unsigned i = 0; i < turns; i++)
        OPAQUE();
}

/* Nothing but zones. */
static inline void pattern_tight(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        SONDE_ZONE("tight", SONDE_NO_PHASE) {}
}

/* Eight paths, three deep; durations from some ten nanoseconds to microseconds. */
static inline void pattern_nested(unsigned long n)
{
    uint32_t r = 1;
    for (unsigned long i = 0; i < n; i += 8)
        SONDE_ZONE("step", SONDE_NO_PHASE) {
            SONDE_ZONE("load", SONDE_DATA_LOADING) {
                SONDE_ZONE("read", SONDE_NO_PHASE) {
                    spin(next_random(&r) % 500);
                }
            }
            SONDE_ZONE("forward", SONDE_FORWARD) {
                SONDE_ZONE("attention", SONDE_NO_PHASE) {
                    spin(next_random(&r) % 900);
                }
                SONDE_ZONE("mlp", SONDE_NO_PHASE) {
                    spin(next_random(&r) % 400);
                }
            }
            SONDE_ZONE("backward", SONDE_BACKWARD) {
                spin(next_random(&r) % 2000);
            }
            SONDE_ZONE("optimizer", SONDE_OPTIMIZER) {
                spin(next_random(&r) % 100);
            }
        }
}

/* As many paths as a process can have, in random order: no cache line is warm. */
static inline void pattern_random(unsigned long n)
{
    enum { OUTER = 64, INNER = 62 };
    struct sonde_site *sites[OUTER + INNER];
    for (int i = 0; i < OUTER + INNER; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "site %d", i);
        sites[i] = sonde_site_named(name, SONDE_NO_PHASE, NULL, NULL, NULL);
    }
    uint32_t r = 1;
    for (unsigned long i = 0; i < n; i += 2) {
        struct sonde_site *outer = sites[next_random(&r) % OUTER];
        struct sonde_site *inner = sites[OUTER + next_random(&r) % INNER];
        sonde_begin(outer);
        sonde_begin(inner);
        sonde_end(inner);
        sonde_end(outer);
    }
}

static inline void sleep_us(unsigned us)
{
    const struct timespec ts = { 0, us * 1000L };
    (void)nanosleep(&ts, NULL);
}

/* Six zones of about a millisecond per step, with or without values. */
static inline void train(unsigned long steps, bool values)
{
    uint32_t r = (uint32_t)getpid();
    for (unsigned long i = 0; i < steps; i++) {
        if (values)
            sonde_step_samples(32);
        SONDE_ZONE("load", SONDE_DATA_LOADING) {
            sleep_us(200 + next_random(&r) % 800);
            if (values)
                sonde_value("batch", 32);
        }
        SONDE_ZONE("forward", SONDE_FORWARD) {
            SONDE_ZONE("attention", SONDE_NO_PHASE) {
                sleep_us(400);
            }
            SONDE_ZONE("mlp", SONDE_NO_PHASE) {
                sleep_us(300);
            }
        }
        SONDE_ZONE("backward", SONDE_BACKWARD) {
            sleep_us(1400);
        }
        SONDE_ZONE("optimizer", SONDE_OPTIMIZER) {
            sleep_us(100);
        }
        if (values)
            sonde_metric("loss", 1.0 / (double)(i + 1));
    }
}

enum { TRAINERS = 16, TRAIN_ZONES = 6 };
static unsigned long train_steps;

static inline void *train_plain(void *arg)
{
    train(train_steps, false);
    return arg;
}

static inline void *train_values(void *arg)
{
    train(train_steps, true);
    return arg;
}

/* The time is slept away, so sixteen at once take no longer than one. */
static inline void train_all(unsigned long n, void *(*trainer)(void *))
{
    pthread_t thread[TRAINERS];
    train_steps = n / TRAINERS / TRAIN_ZONES;
    for (int i = 0; i < TRAINERS; i++)
        if (pthread_create(&thread[i], NULL, trainer, NULL) != 0)
            die("pthread_create", "no more threads");
    for (int i = 0; i < TRAINERS; i++)
        (void)pthread_join(thread[i], NULL);
}

static inline void pattern_training(unsigned long n)
{
    train_all(n, train_plain);
}

static inline void pattern_values(unsigned long n)
{
    train_all(n, train_values);
}

static inline loop_fn *pattern_named(const char *name)
{
    static const struct {
        const char *name;
        loop_fn *pattern;
    } patterns[] = {
        { "tight", pattern_tight },   { "nested", pattern_nested },
        { "random", pattern_random }, { "training", pattern_training },
        { "values", pattern_values },
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (strcmp(patterns[i].name, name) == 0)
            return patterns[i].pattern;
    die(name, "no such pattern");
}

/* ---- The file ---------------------------------------------------------------- */

static inline void record_and_vanish(const char *dir, loop_fn *pattern, unsigned long n)
{
    const struct sonde_options options = {
        .size = sizeof options,
        .output = dir,
        .max_trace = 8ULL << 30,
        .no_drainer = 1,
        .quiet = 1,
    };
    if (sonde_session_start(&options) < 0)
        die("cannot record", sonde_session_error());
    pattern(n);
    _exit(sonde_lost() == 0 ? 0 : 1);
}

/* The one process file in `dir`. */
static inline void find_process_file(const char *dir, char *ret_path, size_t size)
{
    ret_path[0] = '\0';
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
            (void)snprintf(ret_path, size, "%s/%s", dir, e->d_name);
    if (d)
        (void)closedir(d);
    if (!ret_path[0])
        die(dir, "no process file was written");
}

/* Records into `dir`, which must be new, and gives the file's path. */
static inline void rawfile_make(const char *dir, loop_fn *pattern, unsigned long n,
                                char *ret_path, size_t size)
{
    const pid_t child = fork();
    if (child == 0)
        record_and_vanish(dir, pattern, n);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        die(dir, "the recording child failed");
    find_process_file(dir, ret_path, size);
}

#endif
