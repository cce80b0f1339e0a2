/* cli.c: what the verbs share. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "launch/adopt.h"
#include "store/list.h"

void cli_error(const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&b, fmt, args);
    va_end(args);
    (void)fprintf(stderr, "sonde: %s\n", b.data);
    buf_release(&b);
}

void cli_adopt_orphans(int quiet)
{
    struct adopt_result result;
    if (adopt_orphans(store_directory(), &result) < 0 || quiet)
        return;
    if (result.adopted > 0)
        cli_error("finished %u run%s whose supervisor had died", result.adopted,
                  result.adopted == 1 ? "" : "s");
    if (result.failed > 0)
        cli_error("%u run%s could not be finished: %s", result.failed,
                  result.failed == 1 ? "" : "s", result.first_problem);
}
