/* enter.h: enter and leave a zone, from `with` and from begin() and end(). */
#ifndef SONDE_PYTHON_ENTER_H
#define SONDE_PYTHON_ENTER_H

#include "frames.h"
#include "module.h"

static inline void enter(struct sonde_site *site)
{
    if (!sonde_on_())
        return;
    if (!SONDE_LIKELY_(sonde_lane_ != NULL))
        name_thread();
    const void *frame = awaiting_frame();
    if (SONDE_LIKELY_(!frame))
        sonde_begin_on_(site);
    else
        spans_begin(frame, site);
}

static inline void leave(struct sonde_site *site)
{
    if (SONDE_LIKELY_(!spans_open)) {
        end_zone(site);
        return;
    }
    const void *frame = awaiting_frame();
    if (!frame || !spans_end(frame, site))
        end_zone(site);
}

#endif
