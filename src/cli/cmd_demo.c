/* cmd_demo.c: `sonde demo`, a real training program, profiled.
 *
 * Without --train it is `sonde run -- sonde demo --train`: what the user sees is what
 * `sonde run` does with any program. With --train it is that program (src/demo/).
 */
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "demo/train.h"

struct demo_options {
    bool train, quiet;
    uint64_t steps, seed;
    const char *output, *name;
};

static const struct option options[] = {
    { "steps", 0, OPTION_COUNT, offsetof(struct demo_options, steps), .value = "N",
      .help = "train for N steps of 32 pictures (default 1,870)" },
    { "seed", 0, OPTION_COUNT, offsetof(struct demo_options, seed), .value = "N",
      .help = "draw other pictures, start from other weights (default 1)" },
    { "train", 0, OPTION_FLAG, offsetof(struct demo_options, train),
      .help = "only train, without `sonde run` around it" },
    { "output", 'o', OPTION_TEXT, offsetof(struct demo_options, output), .value = "DIR",
      .help = "place the run there" },
    { "name", 0, OPTION_TEXT, offsetof(struct demo_options, name), .value = "NAME",
      .help = "name of the run (default demo)" },
    { "quiet", 'q', OPTION_FLAG, offsetof(struct demo_options, quiet),
      .help = "no report at the end" },
};

static const struct command command = {
    .verb = "demo",
    .usage = "[options]",
    .summary = "train a small network on drawn digits and profile it",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more = "The program is src/demo/ of the source tree: an example of a training\n"
            "loop with <sonde/sonde.h>. It takes about ten seconds on two cores.",
};

static int demo_train(const struct demo_options *o)
{
    const struct train_options train = {
        .seed = o->seed,
        .steps = (unsigned)o->steps,
        .log = stdout,
    };
    struct train_result result;
    const int rc = train_run(&train, &result);
    if (rc < 0) {
        cli_error("demo: training failed: %s", strerror(-rc));
        return CLI_FAILED;
    }
    return CLI_GOOD;
}

/* sonde run [--quiet] --name NAME [--output DIR] -- EXE demo --train … */
static int demo_profile(const struct demo_options *o)
{
    char exe[PATH_MAX], steps[24], seed[24];
    const ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (len < 0) {
        cli_error("demo: cannot find my own program: /proc is not mounted (try "
                  "sonde run -- sonde demo --train)");
        return CLI_FAILED;
    }
    exe[len] = '\0';
    (void)snprintf(steps, sizeof steps, "%" PRIu64, o->steps);
    (void)snprintf(seed, sizeof seed, "%" PRIu64, o->seed);

    char *args[20];
    int count = 0;
    args[count++] = "run";
    if (o->quiet)
        args[count++] = "--quiet";
    args[count++] = "--name";
    args[count++] = (char *)(o->name ? o->name : "demo");
    if (o->output) {
        args[count++] = "--output";
        args[count++] = (char *)o->output;
    }
    args[count++] = "--";
    args[count++] = exe;
    args[count++] = "demo";
    args[count++] = "--train";
    if (o->steps > 0) {
        args[count++] = "--steps";
        args[count++] = steps;
    }
    if (o->seed > 0) {
        args[count++] = "--seed";
        args[count++] = seed;
    }
    args[count] = NULL;
    return cmd_run(count, args);
}

int cmd_demo(int argc, char **argv)
{
    struct demo_options o = { 0 };
    int status = CLI_GOOD;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    if (argc > 1)
        return options_fail(&command, "unexpected argument '%s'", argv[1]);
    if (o.steps > 1000000)
        return options_fail(&command, "--steps %" PRIu64 " is too many (at most %d)",
                            o.steps, 1000000);
    return o.train ? demo_train(&o) : demo_profile(&o);
}
