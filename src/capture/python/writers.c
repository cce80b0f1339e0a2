/* writers.c: see writers.h.
 *
 * Names that mean something else as often (log of a number, save of a checkpoint, send to a
 * queue, execute of a query) are not here: a function that writes with them alone is
 * not known to. */
#include "capture/python/writers.h"

#include <string.h>

static const char *const names[] = {
    "print",       "write",       "writerow",    "writerows",     "writelines",
    "writeheader", "write_text",  "flush",       "fsync",         "dump",
    "savetxt",     "to_csv",      "to_json",     "commit",        "logger",
    "logging",     "add_scalar",  "add_scalars", "add_histogram", "add_text",
    "log_metric",  "log_metrics",
};

bool writers_has(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return true;
    return false;
}
