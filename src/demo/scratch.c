/* scratch.c: see scratch.h. The handler uses nothing but unlink, rmdir and raise. */
#include "demo/scratch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 8, PATH_BYTES = 512 };

static char directory[PATH_BYTES - 64];
static char files[FILES_MAX][PATH_BYTES];
static volatile sig_atomic_t file_count, is_open;

static const int fatal[] = { SIGINT, SIGTERM, SIGHUP };
static struct sigaction before[sizeof fatal / sizeof *fatal];

static void scratch_remove(void)
{
    if (!is_open)
        return;
    is_open = 0;
    for (int i = 0; i < file_count; i++)
        (void)unlink(files[i]);
    (void)rmdir(directory);
}

static void on_fatal(int signal)
{
    scratch_remove();
    /* SA_RESETHAND has put the default action back: this ends the process as soon
     * as the handler returns, with the status its parent expects. */
    (void)raise(signal);
}

int scratch_open(void)
{
    if (is_open)
        return -EBUSY;
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent)
        parent = "/tmp";
    const int len = snprintf(directory, sizeof directory, "%s/sonde-demo-XXXXXX",
                             parent);
    if (len < 0 || (size_t)len >= sizeof directory)
        return -ENAMETOOLONG;
    if (!mkdtemp(directory))
        return -errno;
    file_count = 0;
    is_open = 1;

    struct sigaction action = { .sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        (void)sigaction(fatal[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* nohup stays nohup */
            (void)sigaction(fatal[i], &action, NULL);
    }
    return 0;
}

const char *scratch_file(const char *name)
{
    if (!is_open || file_count == FILES_MAX)
        return NULL;
    char *path = files[file_count];
    const int len = snprintf(path, PATH_BYTES, "%s/%s", directory, name);
    if (len < 0 || len >= PATH_BYTES)
        return NULL;
    file_count++;
    return path;
}

void scratch_close(void)
{
    if (!is_open)
        return;
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        (void)sigaction(fatal[i], &before[i], NULL);
    scratch_remove();
}
