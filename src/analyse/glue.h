/* glue.h: what of a merged stack is nobody's function but the interpreter's way to call one.
 *
 * Between a Python function and what it calls in C stand a handful of functions of the
 * interpreter that are the same in every stack (PyObject_Vectorcall, cfunction_call …),
 * and around the outermost one those that start it. They are left out. Functions of the
 * interpreter that somebody would recognise as work (list_sort, long_pow, builtin_sorted)
 * stay, and so does everything of other files.
 */
#ifndef SONDE_ANALYSE_GLUE_H
#define SONDE_ANALYSE_GLUE_H

#include <stdbool.h>

struct glue_frame {
    const char *name; /* "[file]" for code without one */
    bool python;      /* a Python function */
    bool interpreter; /* native code of the interpreter's file */
};

/* Which of the frames, innermost first, to keep. A stack without Python is kept whole. */
void glue_strip(const struct glue_frame *frames, unsigned count, bool *ret_keep);

#endif
