/* cmd_import.c: `sonde import`: other tools' profiles become runs. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/unfinished.h"
#include "import/import.h"
#include "store/list.h"

struct import_arguments {
    const char *output, *name;
    int format;
    bool quiet;
    uint64_t rate;
    struct option_list tags;
};

static const char *const kinds[] = { [IMPORT_DETECT] = "auto",
                                     [IMPORT_CHROME] = "chrome",
                                     [IMPORT_CPROFILE] = "cprofile",
                                     [IMPORT_FOLDED] = "folded",
                                     NULL };

#define FIELD(name) offsetof(struct import_arguments, name)

static const struct option options[] = {
    { "format", 0, OPTION_CHOICE, FIELD(format), .value = "FORMAT",
      .help = "auto (by the content), chrome, cprofile or folded", .choices = kinds },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "DIR",
      .help = "put the run into DIR, which must be new or empty" },
    { "name", 0, OPTION_TEXT, FIELD(name), .value = "NAME",
      .help = "name of the run (default: the file's)" },
    { "tag", 0, OPTION_PAIRS, FIELD(tags), .value = "KEY=VALUE",
      .help = "tag the run; may be repeated" },
    { "rate", 0, OPTION_COUNT, FIELD(rate), .value = "HZ",
      .help = "samples per second of folded stacks (default 100)" },
    { "quiet", 'q', OPTION_FLAG, FIELD(quiet), .help = "only the id of the run" },
};

static const struct command command = {
    .verb = "import",
    .usage = "[options] FILE…",
    .summary = "make runs of other tools' profiles",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "chrome: traces of torch.profiler (*.pt.trace.json, also .gz) and of all that\n"
        "write Chrome's JSON; steps, loader, forward, backward, optimizer and kernels\n"
        "are recognised. cprofile: python -m cProfile -o FILE. folded: flame graph\n"
        "stacks. The result is a run: sonde report, compare, export … work on it.\n",
};

static void tell(const struct import_result *r, const char *path, bool quiet)
{
    if (quiet) {
        (void)printf("%s\n", r->id);
        return;
    }
    (void)printf("%s  from %s (%s): %llu events", r->id, path,
                 import_kind_name(r->kind), (unsigned long long)r->events);
    if (r->steps)
        (void)printf(", %llu steps", (unsigned long long)r->steps);
    if (r->processes > 1)
        (void)printf(", %llu processes and cards", (unsigned long long)r->processes);
    if (r->left_out)
        (void)printf("; %llu entries left out", (unsigned long long)r->left_out);
    (void)printf("\n      sonde report %s\n", r->id);
}

static bool import_one(const char *path, const struct import_arguments *a)
{
    struct progress progress;
    const struct import_options o = {
        .kind = (enum import_kind)a->format,
        .sonde_dir = store_directory(),
        .output = a->output,
        .name = a->name,
        .tags = a->tags.items,
        .tag_count = a->tags.count,
        .rate_hz = (double)a->rate,
        .progress = progress_share,
        .progress_arg = &progress,
        .begun = unfinished_folder,
    };
    struct import_result result;
    progress_begin(&progress, "reading", a->quiet);
    unfinished_hold();
    const int rc = import_file(path, &o, &result);
    unfinished_done();
    progress_end(&progress);
    if (rc == 0)
        tell(&result, path, a->quiet);
    else if (result.problem[0])
        cli_error("cannot import '%s': %s", path, result.problem);
    else if (rc == -ENOTEMPTY)
        cli_error("cannot import into '%s': it is not empty (try another --output)",
                  a->output);
    else
        cli_error("cannot import '%s': %s", path, error_text(rc));
    import_result_release(&result);
    return rc == 0;
}

int cmd_import(int argc, char **argv)
{
    struct import_arguments a = { 0 };
    int status;
    if (!options_parse(&command, &argc, argv, &a, &status))
        return status;
    if (argc < 2)
        return options_fail(&command, "which file?");
    if (argc > 2 && a.output)
        return options_fail(&command, "--output takes one file only");
    bool good = true;
    for (int i = 1; i < argc; i++)
        good = import_one(argv[i], &a) && good;
    return good ? CLI_GOOD : CLI_FAILED;
}
