/* cmd_plot.c: `sonde plot`: one picture of a run, or of several, for a page that is not
 * ours: SVG, and PNG where a converter is there. */
#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/runs.h"
#include "present/plot/plot.h"

struct plot_options {
    const char *kind, *output;
    uint64_t width;
};

#define FIELD(name) offsetof(struct plot_options, name)

static const struct option options[] = {
    { "kind", 'k', OPTION_TEXT, FIELD(kind), .value = "KIND",
      .help = "times, memory, calls, bottlenecks or compare (default times)" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write to FILE: SVG, or PNG when it ends in .png" },
    { "width", 0, OPTION_COUNT, FIELD(width), .value = "N",
      .help = "PNG: pixels across (default 1920)" },
};

static const struct command command = {
    .verb = "plot",
    .usage = "[options] [RUN…]",
    .summary = "a picture of a run: SVG or PNG",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more = "RUN defaults to @last; --kind compare takes several. PNG needs\n"
            "rsvg-convert (Debian: librsvg2-bin).\n",
};

extern char **environ;

_Static_assert((int)PLOT_RUNS_MOST <= (int)CLI_RUNS_MOST, "all of them are opened");

static bool is_png(const char *path)
{
    const size_t len = path ? strlen(path) : 0;
    return len > 4 && strcmp(path + len - 4, ".png") == 0;
}

/* rsvg-convert reads the SVG from a file beside and writes the PNG. */
static int convert(const char *svg, const char *png, uint64_t width)
{
    char wide[24];
    pid_t pid;
    int status;
    (void)snprintf(wide, sizeof wide, "%llu", (unsigned long long)width);
    char *const argv[] = { (char *)"rsvg-convert",
                           (char *)"-w",
                           wide,
                           (char *)"-o",
                           (char *)png,
                           (char *)svg,
                           NULL };
    const int rc = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (rc != 0)
        return -rc;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* In memory first: a run may have nothing for this picture. */
static int draw(const struct plot *plot, const struct cli_runs *r, char **ret_text,
                size_t *ret_len)
{
    FILE *memory = open_memstream(ret_text, ret_len);
    if (!memory)
        return -errno;
    const int rc = plot_write(plot, (const struct report *const *)r->reports, r->count,
                              memory);
    return fclose(memory) == 0 ? rc : -ENOMEM;
}

static int write_svg(const struct plot *plot, const struct cli_runs *r,
                     const char *path)
{
    struct output out;
    char *text = NULL;
    size_t len = 0;
    int status = CLI_FAILED;
    const int rc = draw(plot, r, &text, &len);
    if (rc == SONDE_E_NOTFOUND)
        cli_error("the run '%s' recorded nothing for a picture of kind '%s'",
                  r->runs[0]->id, plot->name);
    else if (rc < 0)
        cli_error("cannot draw: %s", error_text(rc));
    else if (output_open(&out, path)) {
        const int written = fwrite(text, 1, len, out.file) == len ? 0 : -EIO;
        if (output_close(&out, written, "the picture"))
            status = CLI_GOOD;
    }
    free(text);
    return status;
}

static int write_png(const struct plot *plot, const struct cli_runs *r,
                     const char *path, uint64_t width)
{
    struct buf svg = BUF_INIT;
    buf_printf(&svg, "%s.svg", path);
    int status = svg.error ? CLI_FAILED : write_svg(plot, r, svg.data);
    const int rc = status == CLI_GOOD ? convert(svg.data, path, width) : 0;
    if (rc == -ENOENT)
        cli_error("PNG needs rsvg-convert (apt install librsvg2-bin); the picture is "
                  "in '%s'",
                  svg.data);
    else if (rc < 0)
        cli_error("rsvg-convert could not write '%s'; the picture is in '%s'", path,
                  svg.data);
    else if (status == CLI_GOOD) {
        (void)chmod(path, 0600);
        (void)unlink(svg.data);
    }
    if (rc < 0)
        status = CLI_FAILED;
    buf_release(&svg);
    return status;
}

static int unknown_kind(const char *name)
{
    struct buf names = BUF_INIT;
    for (size_t i = 0; i < plot_count; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", plots[i].name);
    const int status = options_fail(&command, "--kind wants one of %s, got '%s'",
                                    names.data, name);
    buf_release(&names);
    return status;
}

int cmd_plot(int argc, char **argv)
{
    struct plot_options o = { .kind = "times", .width = 1920 };
    struct cli_runs r = { .count = 0 };
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    const struct plot *plot = plot_find(o.kind);
    if (!plot)
        return unknown_kind(o.kind);
    if ((size_t)argc - 1 > plot->most_runs)
        return options_fail(&command, "a picture of kind '%s' shows at most %zu run%s",
                            o.kind, plot->most_runs, plot->most_runs == 1 ? "" : "s");
    if (!o.output && isatty(STDOUT_FILENO))
        return options_fail(&command, "give -o FILE.svg or -o FILE.png");
    if (o.width < 100 || o.width > 20000)
        return options_fail(&command, "--width wants 100 to 20,000 pixels");
    status = CLI_FAILED;
    if (cli_runs_add_all(&r, argc, argv))
        status = is_png(o.output) ? write_png(plot, &r, o.output, o.width)
                                  : write_svg(plot, &r, o.output);
    cli_runs_release(&r);
    return status;
}
