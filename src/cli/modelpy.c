/* modelpy.c: see modelpy.h. Replacing the process keeps signals, terminal and exit status
 * exactly what the Python side makes of them. */
#include "cli/modelpy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "launch/ownplace.h"

/* In a build tree, as `make install` puts it, in a wheel. */
static const char *const places[] = { "%s/python", "%s/../lib/sonde/inject",
                                      ("%s/../" SONDE_LIBDIR "/sonde/inject"),
                                      "%s/../..", NULL };

char **modelpy_copy(int argc, char **argv)
{
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    for (int i = 0; copy && i < argc; i++)
        copy[i] = argv[i];
    return copy;
}

/* NAME.py of NAME.py:FACTORY is there. */
static int check_file(const char *model)
{
    char path[4096];
    const char *colon = strrchr(model, ':');
    const size_t len = colon ? (size_t)(colon - model) : 0;
    if (len == 0 || len >= sizeof path || !colon[1]) {
        cli_error("which function of '%s'? --model FILE.py:FACTORY", model);
        return CLI_FAILED;
    }
    memcpy(path, model, len);
    path[len] = '\0';
    if (access(path, R_OK) < 0) {
        cli_error("cannot read '%s': %s", path, strerror(errno));
        return CLI_FAILED;
    }
    return 0;
}

int modelpy_run(const char *model, char **arguments)
{
    char folder[4096];
    const char *python = getenv("SONDE_PYTHON_COMMAND");
    size_t count = 0;
    if (check_file(model))
        return CLI_FAILED;
    while (arguments && arguments[count])
        count++;
    char **argv = calloc(count + 4, sizeof *argv);
    if (!argv || !arguments) {
        free(argv);
        cli_error("out of memory");
        return CLI_FAILED;
    }
    char name[4096], flag[] = "-m", module[] = "sonde._modelrun";
    (void)snprintf(name, sizeof name, "%s", python && *python ? python : "python3");
    argv[0] = name;
    argv[1] = flag;
    argv[2] = module;
    memcpy(argv + 3, arguments + 1, count * sizeof *argv); /* with the final NULL */
    if (ownplace_find(getenv("SONDE_PACKAGE"), places, folder, sizeof folder))
        (void)ownplace_prepend("PYTHONPATH", folder, ':');
    (void)execvp(name, argv);
    cli_error("cannot run %s: %s (SONDE_PYTHON_COMMAND names another interpreter)",
              name, strerror(errno));
    free(argv);
    return CLI_FAILED;
}
