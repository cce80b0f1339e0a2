/* capture_inject.c: the Python layer comes along with the program.
 *
 * A folder that holds nothing but a sitecustomize.py goes in front of PYTHONPATH, which
 * the whole tree inherits: each interpreter in it, of whatever version and environment,
 * runs that file first. It brings the package that lies around it and hands over to the
 * interpreter's own sitecustomize. Interpreters told to ignore the environment (-I, -E)
 * or not to look for customisations (-S) run untouched; the report says so.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/capture_list.h"
#include "launch/ownplace.h"

#define FILE_NAME "sitecustomize.py"

/* Where the folder is, seen from the command: in a build tree, as `make install` puts it,
 * in a wheel. */
static const char *const places[] = { "%s/python/sonde/_site",
                                      "%s/../lib/sonde/inject/sonde/_site",
                                      "%s/../lib64/sonde/inject/sonde/_site",
                                      ("%s/../" SONDE_LIBDIR
                                       "/sonde/inject/sonde/_site"),
                                      "%s/../_site",
                                      NULL };

/* A command line that names Python or a script of it; what a shell script starts, we
 * cannot know. */
static bool names_python(const struct runfile *f)
{
    for (int i = 0; i < f->command_len; i++)
        if (strstr(f->command[i], "python") || strstr(f->command[i], ".py") ||
            strstr(f->command[i], "torchrun"))
            return true;
    return false;
}

static int prepare(const struct capture_context *c, void **ret_state)
{
    char folder[4096], file[4200];
    *ret_state = NULL;
    if (c->options->no_python)
        return 0;
    if (!ownplace_find(getenv("SONDE_PYTHON_LAYER"), places, folder, sizeof folder) ||
        snprintf(file, sizeof file, "%s/" FILE_NAME, folder) < 0 ||
        access(file, R_OK) < 0) {
        if (names_python(c->file))
            runfile_note(c->file,
                         "Python phases: the package was not found beside the "
                         "command (SONDE_PYTHON_LAYER tells where its _site is)");
        return 0;
    }
    if (strchr(folder, ':')) { /* separates folders in PYTHONPATH */
        runfile_note(c->file, "Python phases: the path of the package has a colon, "
                              "which PYTHONPATH cannot name");
        return 0;
    }
    return ownplace_prepend("PYTHONPATH", folder, ':');
}

const struct capture_ops capture_inject = {
    .name = "the Python layer",
    .prepare = prepare,
};
