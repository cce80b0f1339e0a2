/* unknown_name.h: a name that no experiment has is most likely a misspelt one. */
#ifndef SONDE_CLI_UNKNOWN_NAME_H
#define SONDE_CLI_UNKNOWN_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "search/search.h"

/* Says so, and which name may have been meant; true then. Fields that every experiment
 * may have (duration_s …) are never unknown. */
bool cli_name_is_unknown(const struct index *index, const char *name, size_t len);

/* The same for every name of a filter. */
void cli_tell_unknown_names(const struct index *index, const struct filter *filter);

#endif
