/* chrome.h: reads a trace in Chrome's JSON form into events. */
#ifndef SONDE_IMPORT_CHROME_H
#define SONDE_IMPORT_CHROME_H

#include "import/events.h"
#include "import/source.h"

/* ret_problem says what is wrong and where, after an error. */
int chrome_read(struct import_source *source, struct events *events, char *ret_problem,
                size_t len);

#endif
