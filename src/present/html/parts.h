/* parts.h: the parts of the app's document. Private to present/html. */
#ifndef SONDE_PRESENT_HTML_PARTS_H
#define SONDE_PRESENT_HTML_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/report.h"
#include "base/json.h"
#include "base/strmap.h"
#include "present/html/sites.h"

/* timeline.c: lanes, steps, zones. */
int html_timeline(struct json_writer *w, const struct report *report,
                  struct site_names *sites);
/* flame.c: all trees. */
int html_flame(struct json_writer *w, const struct report *report,
               struct site_names *sites);
/* distributions.c */
void html_distributions(struct json_writer *w, const struct report *report,
                        struct site_names *sites);

/* courses.c */
int html_courses(struct json_writer *w, const struct report *report);

#endif
