/* hangpicture.h: what every process of a run is doing at one moment.
 *
 * Read from outside, nothing is stopped: of each thread its state, where it waits in the
 * kernel, its native stack while it sleeps (capture/sample/sleeper.h) and its Python
 * stack. Names of native frames are looked up at the end, for all at once.
 */
#ifndef SONDE_LAUNCH_HANGPICTURE_H
#define SONDE_LAUNCH_HANGPICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "launch/hangnames.h"
#include "launch/kin.h"

struct hang_frame {
    uint64_t address, offset;
    const char *path; /* of the module, "" for none */
    uint32_t name;    /* for hangnames_get() */
};

struct hang_python_frame {
    const char *function, *file;
    int line; /* 0 unknown */
};

struct hang_thread {
    struct hang_thread *next;
    pid_t tid;
    char state;       /* of /proc: S sleeps, R runs, … */
    const char *comm; /* with its parentheses; texts are "" when unknown */
    const char *wchan, *call, *kernel;
    const char *zones; /* "train > stuck" */
    const char *zone;  /* the innermost */
    struct hang_frame *frames;
    unsigned frame_count;
    bool whole; /* the stack was read to its end */
    bool woke;  /* while we looked: the stack may never have been */
    struct hang_python_frame *python;
    unsigned python_count;
    bool is_python, python_cut, python_torn;
    bool has_gil, waits_gil;
};

struct hang_process {
    struct hang_process *next;
    struct kin_process kin;
    const char *command;
    unsigned python_minor; /* 0: no Python we can read */
    const char *no_python; /* why not, where there is one; "" */
    struct hang_thread *threads;
};

struct hang_picture {
    struct arena arena;
    struct hangnames *names;
    struct hang_process *processes;
};

/* Takes some seconds at most. */
int hang_picture_take(const char *dir, const struct kin *kin,
                      struct hang_picture *ret_picture);
void hang_picture_release(struct hang_picture *picture);

/* The frame to tell a person: the innermost outside the C library, else the innermost with
 * a name; NULL without one. */
const struct symbolise_frame *hang_picture_place(const struct hang_picture *picture,
                                                 const struct hang_thread *thread);

/* hangpython.c: adds Python stacks to the threads of a process. */
void hang_python_read(struct hang_picture *picture, struct hang_process *process);
/* hangzones.c: adds zones. */
void hang_zones_read(struct hang_picture *picture, const char *dir);

#endif
