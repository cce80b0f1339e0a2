/* locate.h: is a process a Python interpreter, which, and where is its state? */
#ifndef SONDE_CAPTURE_PYTHON_LOCATE_H
#define SONDE_CAPTURE_PYTHON_LOCATE_H

#include <stdint.h>
#include <sys/types.h>

struct python_place {
    uint64_t runtime; /* address of _PyRuntime */
    unsigned minor;   /* of version 3 */
    char path[1024];  /* of the program or library it is in */
};

/* SONDE_E_NOTFOUND: no Python (or not yet); SONDE_E_UNSUPPORTED: one without the symbol;
 * system errors. Reads /proc/PID/maps and the ELF file behind it: hostile input. */
int python_locate(pid_t pid, struct python_place *ret_place);

#endif
