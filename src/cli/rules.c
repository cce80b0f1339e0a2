/* rules.c: see rules.h. */
#include "cli/rules.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli/cli.h"

static bool read_config(struct thresholds *t)
{
    char error[THRESHOLDS_ERROR_LEN];
    const char *given = getenv("SONDE_CONFIG");
    const char *path = given && given[0] ? given : "sonde.yaml";
    const int rc = thresholds_read(t, path, error);
    if (rc == 0 || (rc == -ENOENT && path != given))
        return true;
    if (rc ==
        -ENOSYS) /* built without libyaml: only worth a word when it was asked for */
        return path != given || (cli_error("cannot read '%s': this sonde was built "
                                           "without libyaml",
                                           path),
                                 false);
    cli_error("cannot read '%s': %s", path,
              rc == SONDE_E_FORMAT ? error : error_text(rc));
    return false;
}

bool cli_thresholds(const char *set, struct thresholds *ret_thresholds)
{
    struct thresholds t;
    thresholds_init(&t);
    if (!read_config(&t))
        return false;
    if (set && thresholds_use_set(&t, set) < 0) {
        cli_error("no such set of rules: '%s' (default, reference)", set);
        return false;
    }
    *ret_thresholds = t;
    return true;
}
