/* glue.c: see glue.h. */
#include "analyse/glue.h"

#include <stddef.h>
#include <string.h>

/* Beginnings of names, of CPython 3.9 to 3.13. */
static const char *const calls[] = {
    "_PyEval_",
    "PyEval_",
    "_PyFunction_",
    "PyObject_Call",
    "_PyObject_Call",
    "PyObject_Vectorcall",
    "_PyObject_Vectorcall",
    "_PyObject_FastCall",
    "_PyObject_MakeTpCall",
    "PyVectorcall",
    "_PyVectorcall",
    "PyCFunction_",
    "_PyCFunction_",
    "cfunction_",
    "method_vectorcall",
    "method_call",
    "vectorcall_",
    "object_vacall",
    "function_code_fastcall",
    "call_function",
    "do_call_core",
    "trace_call_function",
    "slot_tp_",
    "type_call",
    "wrap_",
    "wrapperdescr_",
    "wrapper_call",
    "partial_vectorcall",
    "partial_call",
    "gen_send",
    "gen_iternext",
    "_PyGen_",
    "PyRun_",
    "_PyRun_",
    "pyrun_",
    "run_mod",
    "run_eval_code_obj",
    "pymain_",
    "Py_RunMain",
    "Py_BytesMain",
    "Py_Main",
    "thread_run",
    "t_bootstrap",
    "pythread_wrapper",
};

/* What starts a program or a thread, outside of the interpreter. */
static const char *const starts[] = { "_start",       "__libc_start_", "start_thread",
                                      "clone",        "__clone",       "[libc.so",
                                      "[libpthread.", "_dl_start" };

static bool begins(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(name, list[i], strlen(list[i])) == 0)
            return true;
    return false;
}

static bool is_call(const char *name)
{
    return begins(name, calls, sizeof calls / sizeof *calls);
}

static bool is_start(const char *name)
{
    return begins(name, starts, sizeof starts / sizeof *starts);
}

static bool is_same(const struct glue_frame *a, const struct glue_frame *b)
{
    return strcmp(a->name, b->name) == 0;
}

/* The next inner frame that is kept; NULL: none. */
static const struct glue_frame *kept_before(const struct glue_frame *frames,
                                            const bool *keep, unsigned i)
{
    while (i-- > 0)
        if (keep[i])
            return &frames[i];
    return NULL;
}

/* `first` and `last`: the innermost and the outermost Python function. */
static bool is_kept(const struct glue_frame *frames, unsigned i, unsigned first,
                    unsigned last, const struct glue_frame *inner)
{
    const struct glue_frame *f = &frames[i];
    const bool unnamed = f->name[0] == '[' || f->name[0] == '(';
    if (f->python)
        return !(unnamed && inner && inner->python && is_same(f, inner));
    if (i > last)
        return !f->interpreter && !is_start(f->name);
    if (!f->interpreter)
        return true;
    if (i > first)
        return !unnamed && !is_call(f->name);
    return !is_call(f->name) && !(unnamed && inner && is_same(f, inner));
}

void glue_strip(const struct glue_frame *frames, unsigned count, bool *ret_keep)
{
    unsigned first = count, last = 0;
    for (unsigned i = 0; i < count; i++) {
        ret_keep[i] = true;
        if (!frames[i].python)
            continue;
        first = first < i ? first : i;
        last = i;
    }
    for (unsigned i = 0; first < count && i < count; i++)
        ret_keep[i] = is_kept(frames, i, first, last, kept_before(frames, ret_keep, i));
}
