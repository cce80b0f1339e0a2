/* locate.h: is a process a Python interpreter, which, and where is its state? */
#ifndef SONDE_CAPTURE_PYTHON_LOCATE_H
#define SONDE_CAPTURE_PYTHON_LOCATE_H

#include <stdint.h>
#include <sys/types.h>

struct python_place {
    uint64_t runtime; /* address of _PyRuntime */
    unsigned minor;   /* of version 3 */
    uint64_t slide;   /* addresses of its symbols are so much higher in memory */
    char path[1024];  /* of the program or library it is in */
};

/* SONDE_E_NOTFOUND: no Python (or not yet); SONDE_E_UNSUPPORTED: one without the symbol;
 * system errors. Reads /proc/PID/maps and the ELF file behind it: hostile input. */
int python_locate(pid_t pid, struct python_place *ret_place);

struct python_range {
    uint64_t start, end;
};
/* Where the code of the interpreter's loop is, with the parts of it that the compiler put
 * elsewhere, as far as the file names them: how many there are, at most `max`. */
unsigned python_locate_loop(pid_t pid, const struct python_place *place,
                            struct python_range *ret_ranges, unsigned max);

#endif
