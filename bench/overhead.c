// link: all
/* overhead.c: what `sonde run` costs a whole program.
 *
 *     overhead sonde=PATH output=DIR pairs=20 steps=1000
 *     overhead mode=loop steps=N work=N      the program itself, used by the above
 *
 * The program trains nothing, but in the rhythm of training: five zones and a metric
 * per step of about a millisecond, always the same work. It is run plainly and under
 * `sonde run` in pairs, in alternating order. The result is the median of the ratios
 * with its 95 % interval (ranktest.h, on logarithms): of the loop's wall time, of its
 * CPU time, and, as milliseconds, of the command from start to exit.
 */
#include <math.h>

#include <sonde/sonde.h>

#include "measure.h"
#include "num/ranktest.h"

/* ---- The program ------------------------------------------------------------- */

enum { VECTOR = 4096, MAX_PAIRS = 200 };

static float work(unsigned long rounds)
{
    static float x[VECTOR], y[VECTOR];
    for (unsigned long r = 0; r < rounds; r++) {
        for (int i = 0; i < VECTOR; i++)
            y[i] = 0.5f * y[i] + 1e-3f * x[i] + 1.0f;
        OPAQUE();
    }
    return y[0];
}

static float step(unsigned long rounds)
{
    float loss = 0;
    sonde_step_samples(32);
    SONDE_ZONE("load", SONDE_DATA_LOADING) {
        loss += work(rounds);
    }
    SONDE_ZONE("forward", SONDE_FORWARD) {
        SONDE_ZONE("layer", SONDE_NO_PHASE) {
            loss += work(rounds);
        }
    }
    SONDE_ZONE("backward", SONDE_BACKWARD) {
        loss += work(2 * rounds);
    }
    SONDE_ZONE("optimizer", SONDE_OPTIMIZER) {
        loss += work(rounds);
    }
    sonde_metric("loss", loss);
    return loss;
}

static int loop_main(char **argv)
{
    const unsigned long steps = argument_number(argv, "steps", 1000);
    const unsigned long rounds = argument_number(argv, "work", 100);
    float loss = step(rounds);
    const double cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const double start = clock_ns(CLOCK_MONOTONIC);
    for (unsigned long i = 1; i < steps; i++)
        loss += step(rounds);
    (void)printf("%.9f %.9f %g\n", (clock_ns(CLOCK_MONOTONIC) - start) / 1e9,
                 (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / 1e9, (double)loss);
    return 0;
}

/* ---- Pairs ------------------------------------------------------------------- */

struct times {
    double loop_s, cpu_s, command_s;
};

static struct times run_command(const char *command)
{
    struct times t;
    const double start = clock_ns(CLOCK_MONOTONIC);
    FILE *out = popen(command, "re");
    if (!out || fscanf(out, "%lf %lf", &t.loop_s, &t.cpu_s) != 2 || pclose(out) != 0)
        die(command, "failed");
    t.command_s = (clock_ns(CLOCK_MONOTONIC) - start) / 1e9;
    return t;
}

struct setting {
    const char *self, *sonde, *dir;
    unsigned long steps, rounds;
};

static struct times run_plain(const struct setting *s)
{
    char command[8192];
    (void)snprintf(command, sizeof command, "exec '%s' mode=loop steps=%lu work=%lu",
                   s->self, s->steps, s->rounds);
    return run_command(command);
}

static struct times run_recorded(const struct setting *s)
{
    static unsigned number;
    char command[16384];
    (void)snprintf(command, sizeof command,
                   "exec '%s' run --quiet -o '%s/%u' -- '%s' mode=loop steps=%lu "
                   "work=%lu",
                   s->sonde, s->dir, number++, s->self, s->steps, s->rounds);
    return run_command(command);
}

/* Rounds that make a step of about a millisecond: six parts of work. */
static unsigned long calibrate(void)
{
    (void)work(100);
    double best = INFINITY;
    for (int i = 0; i < 20; i++) {
        const double start = clock_ns(CLOCK_MONOTONIC);
        (void)work(100);
        best = fmin(best, clock_ns(CLOCK_MONOTONIC) - start);
    }
    return 1 + (unsigned long)(1e6 / 6 / (best / 100));
}

static void put_ratio(const char *key, const double *logs, unsigned count)
{
    struct ranktest r;
    if (ranktest_paired(logs, count, 0.95, &r) < 0)
        die(key, "no interval");
    const double values[3] = { exp(r.estimate), exp(r.low), exp(r.high) };
    put_numbers(key, values, 3);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (strcmp(argument(argv, "mode", ""), "loop") == 0)
        return loop_main(argv);
    char self[4096] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        die("/proc/self/exe", "cannot read it");
    unsigned pairs = (unsigned)argument_number(argv, "pairs", 20);
    pairs = pairs < MAX_PAIRS ? pairs : MAX_PAIRS;
    const struct setting s = {
        .self = self,
        .sonde = argument(argv, "sonde", "build/sonde"),
        .dir = argument(argv, "output", "."),
        .steps = argument_number(argv, "steps", 1000),
        .rounds = calibrate(),
    };
    double loop[MAX_PAIRS], cpu[MAX_PAIRS], extra_ms[MAX_PAIRS], plain_s[MAX_PAIRS];
    for (unsigned i = 0; i < pairs; i++) {
        const bool first = i & 1;
        struct times on, off;
        if (first)
            on = run_recorded(&s);
        off = run_plain(&s);
        if (!first)
            on = run_recorded(&s);
        loop[i] = log(on.loop_s / off.loop_s);
        cpu[i] = log(on.cpu_s / off.cpu_s);
        extra_ms[i] = 1e3 * (on.command_s - on.loop_s - (off.command_s - off.loop_s));
        plain_s[i] = off.loop_s;
    }
    put_ratio("loop_ratio", loop, pairs);
    put_ratio("cpu_ratio", cpu, pairs);
    put_numbers("extra_ms", extra_ms, pairs);
    put_numbers("plain_s", plain_s, pairs);
    put_number("zones", (double)(pairs * s.steps * 5));
    put_end();
    return 0;
}
