/* status.h: one line that tells how a run goes, at the bottom of the terminal.
 *
 * The program writes to the same terminal and knows nothing of us. So the line does not
 * share a row with it: the last row is taken out of the scrolling region, everything
 * the program prints scrolls above, and each drawing is one write, which the kernel
 * does not mix with others. The cursor is put back where it was.
 *
 * Never on a pipe, never on a dumb terminal, never while the program has the terminal
 * in raw mode (editors, debuggers, full-screen programs), never from the background.
 * What it costs: looking at one trace once a second, less often when that is dear.
 */
#ifndef SONDE_CLI_STATUS_H
#define SONDE_CLI_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <sonde/sonde.h>

struct status_line {
    int fd;
    bool color, unicode;
    bool drawn;
    int rows, columns;   /* while drawn */
    uint64_t started_ns; /* monotonic, as all here */
    /* The rate is of the last seconds: a ring of (moment, steps). */
    struct {
        uint64_t at_ns, steps;
    } marks[16];
    unsigned mark_count;
    /* What was read of the trace, and when to read again. */
    uint64_t read_ns;
    char file[256]; /* the trace that has the steps; "" not found yet */
    uint64_t total_steps;
    double share[SONDE_PHASE_COUNT];
    bool has_phases;
    double total_ns[SONDE_PHASE_COUNT]; /* at the reading before */
};

/* False: fd is no terminal that could show it. */
bool status_line_init(struct status_line *status, int fd);

/* struct launch_watcher's. */
void status_line_tick(void *arg, const char *dir, pid_t pid, uint64_t steps);
void status_line_hide(void *arg);

/* Takes the line away and gives the row back. */
void status_line_release(struct status_line *status);

#endif
