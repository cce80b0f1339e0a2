/* doctor.h: what Sonde can measure here. A list of checks, one probe each.
 *
 * A probe really tries what the capture will do, where it can: opens the counter, reads
 * a child's memory, loads the library. It fills in what it found, and when that is less
 * than everything, why, and the command that mends it. Probes never fail and leave
 * nothing behind. Those that only read files take the roots of /proc and /sys, so that
 * tests can lay out machines we do not have.
 *
 * A new check is a function in doctor_*.c and a row in its list.
 */
#ifndef SONDE_CLI_DOCTOR_H
#define SONDE_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum doctor_state { DOCTOR_OK, DOCTOR_LIMITED, DOCTOR_UNAVAILABLE };

struct doctor_roots {
    const char *proc, *sys; /* "/proc", "/sys" */
};

struct doctor_answer {
    enum doctor_state state;
    char found[200]; /* never "" */
    char why[200];   /* what is missing for it; "" when ok */
    char fix[200];   /* a command or setting; "" when nothing helps */
};

struct doctor_check {
    const char *id;   /* stable, for --json */
    const char *name; /* at most 15 columns */
    bool essential;   /* without it nothing works */
    void (*probe)(const struct doctor_roots *roots, struct doctor_answer *ret_answer);
};

struct doctor_group {
    const char *title;
    const struct doctor_check *checks; /* ends with an id of NULL */
};

extern const struct doctor_check doctor_core[];     /* doctor_core.c */
extern const struct doctor_check doctor_kernel[];   /* doctor_kernel.c */
extern const struct doctor_check doctor_machine[];  /* doctor_machine.c */
extern const struct doctor_check doctor_software[]; /* doctor_software.c */

/* Ends with a title of NULL. */
extern const struct doctor_group doctor_groups[];

/* ---- For probes (doctor.c) ---------------------------------------------------------- */

void doctor_found(struct doctor_answer *a, enum doctor_state state, const char *fmt,
                  ...) __attribute__((format(printf, 3, 4)));
void doctor_why(struct doctor_answer *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_fix(struct doctor_answer *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A small file below a root, its end cut; false when it cannot be read. */
bool doctor_read(const char *root, const char *name, char *ret_text, size_t len);
/* What a command prints on stdout (all of it if `both`, stderr too), at most len − 1
 * bytes; its exit status, −1 when it could not be run or took more than five seconds. */
int doctor_run(char *const argv[], bool both, char *ret_text, size_t len);

#endif
