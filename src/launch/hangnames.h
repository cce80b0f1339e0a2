/* hangnames.h: names for the frames of many processes, looked up in one go.
 *
 * Workers share their modules: each place in a file is asked for once, whoever stands
 * there, and the lookup of everything takes some seconds at most.
 */
#ifndef SONDE_LAUNCH_HANGNAMES_H
#define SONDE_LAUNCH_HANGNAMES_H

#include <stdint.h>

#include "capture/sample/sleeper.h"
#include "launch/symbolise.h"

struct hangnames;

struct hangnames *hangnames_new(void);
void hangnames_free(struct hangnames *names);

/* A number for hangnames_get(); UINT32_MAX: no room, it stays without a name. */
uint32_t hangnames_add(struct hangnames *names, const struct sleeper_frame *frame);
/* Looks all of them up, once. */
void hangnames_find(struct hangnames *names);
/* The frames at a place: several where calls were inlined; innermost first. 0: none. */
unsigned hangnames_get(const struct hangnames *names, uint32_t number,
                       const struct symbolise_frame **ret_frames);

#endif
