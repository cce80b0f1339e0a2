/* frames.h: the frame that called us, and whether it may be suspended.
 *
 * A `with` block in a plain function is left before anything else runs on its thread's
 * stack. Only in a coroutine or an asynchronous generator can other code run between its
 * begin and its end, by way of the event loop. That is a property of the code object, so
 * one look at the running frame tells zones that nest from zones that need a span.
 * (A plain generator may also be suspended, but there its caller waits: the usual case is
 * @contextmanager, where the zone nests after all.)
 *
 * The frame's address stands for the coroutine: it does not move while the coroutine
 * lives. Up to 3.13 the layout is known from the interpreter's own headers; elsewhere,
 * and with the limited API, the frame object is asked for.
 */
#ifndef SONDE_PYTHON_FRAMES_H
#define SONDE_PYTHON_FRAMES_H

#include "module.h"

#if !defined(Py_LIMITED_API) && PY_VERSION_HEX >= 0x030B0000 &&                        \
    PY_VERSION_HEX < 0x030E0000
#define FRAMES_INTERNAL 1
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <internal/pycore_frame.h>
#endif

enum { MAY_AWAIT = 0x80 | 0x200 }; /* CO_COROUTINE, CO_ASYNC_GENERATOR */

#if defined(FRAMES_INTERNAL)
static inline const void *awaiting_frame(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    const struct _PyInterpreterFrame *f = PyThreadState_GetUnchecked()->current_frame;
    const PyObject *code = f ? f->f_executable : NULL;
    if (!code || !PyCode_Check(code))
        return NULL;
#else
    const struct _PyInterpreterFrame *f =
        _PyThreadState_UncheckedGet()->cframe->current_frame;
    const PyCodeObject *code = f ? f->f_code : NULL;
    if (!code)
        return NULL;
#endif
    return ((const PyCodeObject *)code)->co_flags & MAY_AWAIT ? f : NULL;
}
#elif !defined(Py_LIMITED_API) && PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
static inline const void *awaiting_frame(void)
{
    const PyFrameObject *f = _PyThreadState_UncheckedGet()->frame;
    return f && f->f_code->co_flags & MAY_AWAIT ? f : NULL;
}
#else
/* spans.c; asks the frame object and remembers the last answer. */
const void *awaiting_frame(void);
#define FRAMES_ASKED 1
#endif

#endif
