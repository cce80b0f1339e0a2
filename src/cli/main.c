/* main.c: the command `sonde`: a table of verbs.
 *
 * A new verb is a cmd_*.c, a line in cli.h and a line in `verbs`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "cli/cli.h"

static int cmd_help(int argc, char **argv);

enum group { FIRST_PAGE, REST };

static const struct verb {
    const char *name;
    enum group group;
    int (*run)(int argc, char **argv);
    const char *summary;
} verbs[] = {
    { "run", FIRST_PAGE, cmd_run, "run a program and report where its time went" },
    { "report", FIRST_PAGE, cmd_report,
      "the report of a run: text, HTML, JSON or CSV" },
    { "compare", FIRST_PAGE, cmd_compare,
      "what differs between runs, and what that did" },
    { "check", FIRST_PAGE, cmd_check,
      "fail when a change made it slower, and only then" },
    { "top", FIRST_PAGE, cmd_top, "watch a run, or any process, as it happens" },
    { "doctor", FIRST_PAGE, cmd_doctor,
      "what can be measured here, and how to mend it" },
    { "demo", FIRST_PAGE, cmd_demo, "train a small model and profile it" },
    { "attach", REST, cmd_attach, "watch a program that already runs, then report" },
    { "list", REST, cmd_list, "the runs kept here" },
    { "show", REST, cmd_show, "what is known about one run" },
    { "search", REST, cmd_search,
      "find experiments by what they are and what they resemble" },
    { "trends", REST, cmd_trends,
      "what the experiments say together: correlations, best, course" },
    { "log", REST, cmd_log, "remember an experiment: parameters, results, tags" },
    { "store", REST, cmd_store, "look after the store of experiments" },
    { "baseline", REST, cmd_baseline, "named references for sonde check" },
    { "bench", REST, cmd_bench, "time a command over several runs" },
    { "flops", REST, cmd_flops, "what a model costs, by formula" },
    { "model", REST, cmd_model, "profile a model: runtime, memory, FLOPs, scaling" },
    { "scale", REST, cmd_scale, "how time and memory grow along one size" },
    { "export", REST, cmd_export, "a run's timeline for other tools" },
    { "plot", REST, cmd_plot, "a picture of a run: SVG or PNG" },
    { "import", REST, cmd_import, "make runs of other tools' profiles" },
    { "recover", REST, cmd_recover, "finish runs after a crash; compact them" },
    { "help", REST, cmd_help, "this text, or that of a verb" },
};
enum { VERB_COUNT = sizeof verbs / sizeof verbs[0] };

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static int unknown_verb(const char *name)
{
    const char *names[VERB_COUNT];
    for (size_t i = 0; i < VERB_COUNT; i++)
        names[i] = verbs[i].name;
    const char *near = cli_nearest(name, names, VERB_COUNT);
    if (near)
        cli_error("there is no verb '%s'; did you mean '%s'?", name, near);
    else if (access(name, X_OK) == 0 || strchr(name, '/'))
        cli_error("there is no verb '%s'; to profile it: sonde run -- %s", name, name);
    else
        cli_error("there is no verb '%s' (sonde help all lists them)", name);
    return CLI_FAILED;
}

static void print_verbs(enum group group)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (verbs[i].group == group)
            printf("  %-9s %s\n", verbs[i].name, verbs[i].summary);
}

static int print_help(bool all)
{
    puts("sonde: where the time, memory and energy of a training run went\n\n"
         "Usage: sonde VERB [options]\n");
    print_verbs(FIRST_PAGE);
    if (all) {
        (void)putchar('\n');
        print_verbs(REST);
        puts("\nA RUN is @last (or @0), @1 the one before, an id or the beginning of "
             "one,\na name, or the path of a run directory. Runs live in .sonde here, "
             "or in\n$SONDE_DIR. SONDE_DISABLE=1 turns Sonde off.");
    }
    puts(all ? "\n  sonde VERB --help       what a verb can do"
             : "\n  sonde VERB --help       what a verb can do\n"
               "  sonde help all          the other verbs");
    puts("\nTo begin:  sonde run -- ./train");
    return CLI_GOOD;
}

static int cmd_help(int argc, char **argv)
{
    if (argc < 2)
        return print_help(false);
    if (strcmp(argv[1], "all") == 0 || strcmp(argv[1], "help") == 0 ||
        argv[1][0] == '-')
        return print_help(true);
    const struct verb *verb = find_verb(argv[1]);
    if (!verb)
        return unknown_verb(argv[1]);
    char help[] = "--help";
    char *arguments[] = { argv[1], help, NULL };
    return verb->run(2, arguments);
}

/* A program may be started with stdin, stdout or stderr closed. The next file we
 * open would take that number, and a message would end up in a trace. The
 * placeholders close on exec: the profiled program finds what we found. */
static void occupy_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return print_help(false);
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return print_help(false);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return puts("sonde " SONDE_VERSION) < 0 ? CLI_FAILED : CLI_GOOD;
    const struct verb *verb = find_verb(name);
    return verb ? verb->run(argc - 1, argv + 1) : unknown_verb(name);
}

int main(int argc, char **argv)
{
    occupy_standard_descriptors();
    const int status = dispatch(argc, argv);
    /* An answer that did not reach its reader is no answer: a full disk, say. */
    if (fflush(stdout) != 0 && status == CLI_GOOD && errno != EPIPE) {
        cli_error("cannot write to the standard output: %s", strerror(errno));
        return CLI_FAILED;
    }
    return status;
}
