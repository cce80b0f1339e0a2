/* modelrun.c: see modelrun.h. */
#include "cli/modelrun.h"

#include <stdio.h>
#include <unistd.h>

static bool shown(const struct progress *p)
{
    return !p->quiet && isatty(STDERR_FILENO);
}

void progress_point(void *arg, size_t done, size_t count, const char *label)
{
    enum { COLUMNS = 24 };
    const struct progress *p = arg;
    if (!shown(p))
        return;
    (void)fputs("\r\033[K[", stderr);
    for (size_t i = 0; i < COLUMNS; i++)
        (void)fputs(i * count < done * COLUMNS ? "█" : "·", stderr);
    (void)fprintf(stderr, "] %zu of %zu · %s%s%s", done + 1, count,
                  p->what ? p->what : "", p->what ? " " : "", label);
    (void)fflush(stderr);
}

void progress_clear(const struct progress *p)
{
    if (shown(p))
        (void)fputs("\r\033[K", stderr);
}
