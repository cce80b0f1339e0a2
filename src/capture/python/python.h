/* python.h: the Python stacks of a process, read from outside while it runs.
 *
 *     struct python *py;
 *     if (python_open(pid, &py, &why) == 0)
 *         while (…) {
 *             python_sample(py, now_ns, &sample);
 *             … sample.threads[i].frames[j] …
 *         }
 *
 * The program is not stopped, so its stack may change while we copy it. A copy counts only
 * when the thread is still in it afterwards, give or take the innermost call; it is tried
 * seven times, then called invalid and counted.
 */
#ifndef SONDE_CAPTURE_PYTHON_PYTHON_H
#define SONDE_CAPTURE_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PYTHON_FRAMES = 120, PYTHON_THREADS = 128, PYTHON_INTERPRETERS = 8 };

struct python_frame {
    int32_t code; /* for python_code() */
    int32_t line; /* 0 unknown */
};

struct python_thread {
    uint64_t state; /* address of its PyThreadState: its identity */
    uint32_t tid;   /* the kernel's number; 0 unknown */
    bool valid;     /* the frames are one consistent stack */
    bool has_gil;
    bool cut; /* deeper than PYTHON_FRAMES: the outermost are missing */
    unsigned count;
    struct python_frame frames[PYTHON_FRAMES]; /* innermost first */
};

struct python_sample {
    bool collecting; /* the garbage collector is at work */
    bool gil_held;
    unsigned invalid; /* threads whose stack could not be copied in one piece */
    size_t count;
    struct python_thread threads[PYTHON_THREADS];
};

struct python;

/* SONDE_E_NOTFOUND: no Python, or not started up yet; SONDE_E_UNSUPPORTED with *ret_why:
 * a Python we have no layout for; −EPERM: we may not read it. */
int python_open(pid_t pid, struct python **ret_python, const char **ret_why);
void python_free(struct python *python);
unsigned python_minor(const struct python *python);
/* Whether an address lies in the interpreter lock: a thread in a futex call there waits
 * for it. As of the last sample. */
bool python_is_lock(const struct python *python, uint64_t address);

/* Reads all threads for which `wanted` (NULL: all) says so; it is given the kernel's
 * number of the thread. −ESRCH: the process is gone; −EAGAIN: its threads could not be
 * listed this time. */
int python_sample(struct python *python, uint64_t now_ns,
                  bool (*wanted)(void *arg, uint32_t tid), void *arg,
                  struct python_sample *ret_sample);

struct python_code {
    const char *name, *file; /* name is the qualified one where there is one */
    int first_line;
    uint32_t flags; /* enum pystack_code_flags */
};
/* Valid until python_free(). */
struct python_code python_code(const struct python *python, int32_t code);

#endif
