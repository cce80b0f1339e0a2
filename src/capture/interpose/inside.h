/* inside.h: what the parts of libsonde-preload.so share.
 *
 * The library lives in front of libc in other people's programs, from before main()
 * until after exit(). Three rules keep that safe:
 *  - Nothing of Sonde's own doing is recorded, and nothing is recorded twice: while
 *    inside_busy is set on a thread, interposed calls go straight through.
 *  - Until inside_ready() says so (early start-up, a child that has not re-armed,
 *    SONDE_DISABLE, setuid, sanitised programs), calls go straight through too.
 *  - errno is the program's: whatever an interposer does around the real call leaves it
 *    as the real call set it.
 *
 *     inside.c    start-up, fork, per-thread state, the table file of this process
 *     heap*.c     malloc family (tables "heap")
 *     io*.c       files and sockets (tables "io")
 */
#ifndef SONDE_CAPTURE_INTERPOSE_INSIDE_H
#define SONDE_CAPTURE_INTERPOSE_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/control.h"

#define EXPORTED __attribute__((visibility("default")))

/* > 0: this thread is in our code. */
extern __thread uint32_t inside_busy __attribute__((tls_model("initial-exec")));

/* Whether this process is to be captured; the first call in a process (also in the child
 * of any kind of fork) sets things up on a cold path. Async-signal-safe enough to be
 * called from malloc in a handler: never waits for a lock that its own thread holds. */
bool inside_ready(void);
/* The run directory and its control file; valid while inside_ready(). */
const char *inside_dir(void);
struct control *inside_control(void);

/* The innermost open zone of the calling thread as the site's number in this process's
 * trace (0: none), from sonde_lane_ (include/sonde/sonde.h). */
uint32_t inside_zone(void);

/* A dense number of the calling thread, below INSIDE_THREADS, kept for as long as it
 * lives and reused after; INSIDE_THREADS when all are taken (use atomic adds on a shared
 * slot then). */
enum { INSIDE_THREADS = 1024 };
uint32_t inside_thread(void);

/* The real function behind `name`, looked up once; NULL when there is none. Callable
 * before libc is ready: dlsym may itself allocate, so the malloc family has a small
 * arena for that time. */
void *inside_real(const char *name);

/* Return addresses of the caller's stack, innermost first, without allocation or locks;
 * at most `max`. Frame pointers where the code has them, else unwinding tables. */
unsigned inside_stack(uint64_t *ret_frames, unsigned max);

/* Tells of new modules (dlopen) so that frames can be resolved later: writes them to the
 * given tables file (rows of struct module_row in interpose_rows.h). */

#endif
