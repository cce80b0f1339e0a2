/* rules.h: which limits findings are judged by: flag, environment, sonde.yaml. */
#ifndef SONDE_CLI_RULES_H
#define SONDE_CLI_RULES_H

#include <stdbool.h>

#include "analyse/thresholds.h"

/* Defaults, then the key `rules` of $SONDE_CONFIG or ./sonde.yaml, then `set` ("default",
 * "reference"; NULL: not asked for). False: said why on stderr. A missing file is none. */
bool cli_thresholds(const char *set, struct thresholds *ret_thresholds);

#endif
