/* sites.h: names that zones and frames share, each once. */
#ifndef SONDE_PRESENT_HTML_SITES_H
#define SONDE_PRESENT_HTML_SITES_H

#include <stdint.h>

#include "base/json.h"
#include "base/strmap.h"

struct site_name {
    const char *name, *file; /* "" unknown */
    uint32_t line;           /* 0 unknown */
    int phase;               /* enum sonde_phase; 0 none */
};

struct site_names {
    struct strmap index;
    struct buf key;
    int error;
};

void site_names_init(struct site_names *names);
void site_names_release(struct site_names *names);

/* Its number. Errors stick in `error`, then 0. */
uint32_t site_number(struct site_names *names, const struct site_name *site);
/* The key `sites` and all that got a number. */
void site_names_put(struct json_writer *w, const struct site_names *names);

#endif
