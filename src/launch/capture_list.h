/* capture_list.h: what captures.c lists; each is a file of its own, capture_X.c. */
#ifndef SONDE_LAUNCH_CAPTURE_LIST_H
#define SONDE_LAUNCH_CAPTURE_LIST_H

#include "launch/captures.h"

extern const struct capture_ops capture_preload;
extern const struct capture_ops capture_redact;

#endif
