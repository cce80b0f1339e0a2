// link: so
/* zone_so.c: zone.c with the shared library, as packages and Python will load it. */
#include "zone.c" // NOLINT(bugprone-suspicious-include)
