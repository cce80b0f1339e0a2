/* pyprofile.h: which Python functions and lines the time went to.
 *
 * Read from the file of tables of the kind "pystacks" (trace/pystack_rows.h), hostile as
 * everything in a run directory. Two clocks: CPU time of all threads and processes, and
 * wall time of the main thread of the process that trains: what a person waits for. */
#ifndef SONDE_ANALYSE_PYPROFILE_H
#define SONDE_ANALYSE_PYPROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report;

struct py_time {
    double cpu_ns;  /* all threads */
    double wall_ns; /* main thread */
};

struct py_function {
    const char *name, *file;
    uint32_t line; /* first of the function */
    struct py_time self, total;
};

struct py_line {
    const char *file, *function;
    uint32_t line;
    struct py_time self;
};

struct py_thread {
    uint32_t pid, tid;
    const char *name;
    bool forked; /* its process is, and has executed nothing since */
    double wall_ns, cpu_ns, gil_ns, gil_wait_ns, gc_ns, invalid_ns;
};

struct py_profile {
    bool present; /* there was a Python process that could be looked into */
    unsigned minor;
    double period_ns;
    uint64_t samples, invalid, processes, unknown, cut, other;
    double cost_ns;
    double cpu_ns, wall_ns;        /* of all functions together, as py_time has them */
    uint32_t main_pid;             /* whose main thread wall time is of; 0 none */
    struct py_function *functions; /* most CPU time of their own first */
    size_t function_count;
    struct py_line *lines; /* most wall time first */
    size_t line_count;
    const struct py_line **lines_by_cpu; /* the same, most CPU time first */
    struct py_thread *threads;
    size_t thread_count;
};

/* Fills report->python. A run without Python is none the worse. */
int pyprofile_read(struct report *report);

#endif
