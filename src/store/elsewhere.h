/* elsewhere.h: where runs are that are in no store.
 *
 * `sonde run -o DIR` leaves its run where it was told to, and no store lists it. What was
 * advised there is advice all the same: DIR/elsewhere has the paths of such runs, one a
 * line, oldest first, so that a later run of the same program finds them (analyse/trials.h).
 * Lines that lead nowhere are passed over. No store is made for it.
 */
#ifndef SONDE_STORE_ELSEWHERE_H
#define SONDE_STORE_ELSEWHERE_H

#include "store/list.h"

/* Notes a run's directory; the newest ELSEWHERE_MOST are kept. −ENOENT without a store. */
enum { ELSEWHERE_MOST = 64 };
int elsewhere_note(const char *sonde_dir, const char *run_dir);

/* Adds those that are still there to the list, and sorts it. */
int elsewhere_add(const char *sonde_dir, struct run_list *list);

#endif
