/* capture_list.h: the captures by name, for captures.c. */
#ifndef SONDE_LAUNCH_CAPTURE_LIST_H
#define SONDE_LAUNCH_CAPTURE_LIST_H

#include "launch/captures.h"

extern const struct capture_ops capture_monitors;
extern const struct capture_ops capture_python;
extern const struct capture_ops capture_stacks;
extern const struct capture_ops capture_preload;
extern const struct capture_ops capture_inject;
extern const struct capture_ops capture_redact;
extern const struct capture_ops capture_syscalls;

#endif
